#include "support/test.h"

#include "api/labels.h"

static const char *const groups[] = { "", "karpenter.k8s.aws", "karpenter.kwok.sh" };

TEST(label_lists_are_sorted_and_have_no_duplicates)
{
    for (size_t g = 0; g < KV_COUNT_OF(groups); g++) {
        const struct label_rules *rules = label_rules_for(str_of(groups[g]));
        const struct str_list lists[] = { rules->well_known, rules->restricted_domains };
        for (size_t l = 0; l < 2; l++) {
            for (uint32_t i = 1; i < lists[l].count; i++)
                EXPECT_TRUE(str_cmp(lists[l].items[i - 1], lists[l].items[i]) < 0);
        }
    }
}

TEST(label_rules_of_every_provider_include_those_of_karpenter)
{
    const struct label_rules *core = label_rules_for(STR("example.com"));
    EXPECT_EQ(core->well_known.count, 8);
    for (size_t g = 0; g < KV_COUNT_OF(groups); g++) {
        const struct label_rules *rules = label_rules_for(str_of(groups[g]));
        for (uint32_t i = 0; i < core->well_known.count; i++)
            EXPECT_TRUE(label_is_well_known(rules, core->well_known.items[i]));
        EXPECT_TRUE(label_is_restricted(rules, STR("karpenter.sh/registered")));
    }
}

TEST(label_is_restricted_unless_well_known_when_its_domain_or_a_parent_of_it_is)
{
    const struct label_rules *core = label_rules_for(STR_NONE);
    const struct label_rules *aws = label_rules_for(STR("karpenter.k8s.aws"));
    const struct label_rules *kwok = label_rules_for(STR("karpenter.kwok.sh"));

    EXPECT_FALSE(label_is_restricted(core, STR(LABEL_CAPACITY_TYPE)));
    EXPECT_FALSE(label_is_restricted(core, STR(LABEL_NODEPOOL)));
    EXPECT_TRUE(label_is_restricted(core, STR("karpenter.sh/initialized")));
    EXPECT_TRUE(label_is_restricted(core, STR("compatibility.karpenter.sh/provider")));
    EXPECT_FALSE(label_is_restricted(core, STR("notkarpenter.sh/x")));
    EXPECT_FALSE(label_is_restricted(core, STR("karpenter.sh")));
    EXPECT_FALSE(label_is_restricted(core, STR("sh/x")));
    EXPECT_FALSE(label_is_restricted(core, STR("team")));
    EXPECT_TRUE(label_is_restricted(core, STR(LABEL_HOSTNAME)));

    EXPECT_FALSE(label_is_restricted(core, STR("karpenter.k8s.aws/anything")));
    EXPECT_TRUE(label_is_restricted(aws, STR("karpenter.k8s.aws/ec2nodeclass")));
    EXPECT_FALSE(label_is_restricted(aws, STR("karpenter.k8s.aws/instance-cpu")));
    EXPECT_TRUE(label_is_restricted(kwok, STR("karpenter.kwok.sh/instance-gpu")));
    EXPECT_FALSE(label_is_restricted(kwok, STR("karpenter.kwok.sh/instance-cpu")));
}

TEST(label_aliases_become_the_current_names)
{
    EXPECT_STR(label_normalise(STR("failure-domain.beta.kubernetes.io/zone")), LABEL_ZONE);
    EXPECT_STR(label_normalise(STR("failure-domain.beta.kubernetes.io/region")), LABEL_REGION);
    EXPECT_STR(label_normalise(STR("beta.kubernetes.io/arch")), LABEL_ARCH);
    EXPECT_STR(label_normalise(STR("beta.kubernetes.io/os")), LABEL_OS);
    EXPECT_STR(label_normalise(STR("beta.kubernetes.io/instance-type")), LABEL_INSTANCE_TYPE);
    EXPECT_STR(label_normalise(STR("topology.ebs.csi.aws.com/zone")), LABEL_ZONE);
    EXPECT_STR(label_normalise(STR("beta.kubernetes.io/other")), "beta.kubernetes.io/other");
    EXPECT_STR(label_normalise(STR(LABEL_ZONE)), LABEL_ZONE);
}

TEST(label_rules_can_be_extended_by_the_keys_of_a_catalogue)
{
    AUTO_ARENA arena = { 0 };
    const struct label_rules *core = label_rules_for(STR_NONE);
    const struct str keys[] = { STR("size"), STR(LABEL_ZONE), STR("beta.kubernetes.io/os"),
                                STR("karpenter.sh/integer") };
    struct label_rules more =
        label_rules_extend(&arena, core, (struct str_list){ keys, KV_COUNT_OF(keys) });
    EXPECT_EQ(more.well_known.count, core->well_known.count + 2);
    EXPECT_TRUE(label_is_well_known(&more, STR("size")));
    EXPECT_TRUE(label_is_well_known(&more, STR(LABEL_ZONE)));
    EXPECT_FALSE(label_is_restricted(&more, STR("karpenter.sh/integer")));
    EXPECT_TRUE(label_is_restricted(core, STR("karpenter.sh/integer")));
    for (uint32_t i = 1; i < more.well_known.count; i++)
        EXPECT_TRUE(str_cmp(more.well_known.items[i - 1], more.well_known.items[i]) < 0);
}
