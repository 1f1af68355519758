#include "cloud/provider.h"
#include "support/test.h"

static const struct node_class_kind two_classes[] = {
    { "karpenter.k8s.aws", "EC2NodeClass" },
    { "karpenter.kwok.sh", "KWOKNodeClass" },
};
static const struct cloud_provider provider = {
    .node_classes = two_classes,
    .node_class_count = KV_COUNT_OF(two_classes),
};

static struct node_class_ref ref(const char *group, const char *kind, const char *name)
{
    return (struct node_class_ref){ str_of(group), str_of(kind), str_of(name) };
}

static bool supports(const char *group, const char *kind)
{
    struct node_class_ref r = ref(group, kind, "default");
    return cloud_provider_supports(&provider, &r);
}

static uint64_t hash(const char *group, const char *kind, const char *name)
{
    struct node_class_ref r = ref(group, kind, name);
    return node_class_ref_hash(&r);
}

TEST(a_node_class_is_supported_by_group_and_kind_together)
{
    EXPECT_TRUE(supports("karpenter.k8s.aws", "EC2NodeClass"));
    EXPECT_TRUE(supports("karpenter.kwok.sh", "KWOKNodeClass"));
    EXPECT_FALSE(supports("karpenter.kwok.sh", "EC2NodeClass"));
    EXPECT_FALSE(supports("karpenter.k8s.aws", "ec2nodeclass"));
    EXPECT_FALSE(supports("", ""));
}

TEST(a_provider_without_node_classes_supports_none)
{
    const struct cloud_provider none = { 0 };
    struct node_class_ref r = ref("karpenter.kwok.sh", "KWOKNodeClass", "default");
    EXPECT_FALSE(cloud_provider_supports(&none, &r));
}

TEST(equal_references_have_equal_hashes_and_every_part_counts)
{
    uint64_t h = hash("g", "k", "n");
    EXPECT_EQ(hash("g", "k", "n"), h);
    EXPECT_TRUE(hash("G", "k", "n") != h);
    EXPECT_TRUE(hash("g", "K", "n") != h);
    EXPECT_TRUE(hash("g", "k", "N") != h);
}

TEST(texts_that_only_together_are_equal_have_different_hashes)
{
    EXPECT_TRUE(hash("ab", "c", "d") != hash("a", "bc", "d"));
    EXPECT_TRUE(hash("a", "bc", "d") != hash("a", "b", "cd"));
    EXPECT_TRUE(hash("", "a", "") != hash("a", "", ""));
}
