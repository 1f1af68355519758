#include "bootstrap/nodeconfig.h"

#include "support/test.h"

static void expect_merged(const char *base, const char *over, const char *want)
{
    AUTO_BUF got = { 0 };
    nodeconfig_merge(str_of(base), str_of(over), &got);
    EXPECT_STR(buf_str(&got), want);
}

TEST(later_fields_win_unless_they_are_empty)
{
    expect_merged("{\"spec\":{\"cluster\":{\"cidr\":\"a\",\"id\":\"1\",\"name\":\"x\"}}}",
                  "{\"spec\":{\"cluster\":{\"id\":\"\",\"name\":\"y\"}}}",
                  "{\"spec\":{\"cluster\":{\"cidr\":\"a\",\"id\":\"1\",\"name\":\"y\"}}}");
    expect_merged("{\"spec\":{\"instance\":{\"localStorage\":{\"strategy\":\"Mount\"}}}}",
                  "{\"spec\":{\"instance\":null}}",
                  "{\"spec\":{\"instance\":{\"localStorage\":{\"strategy\":\"Mount\"}}}}");
    expect_merged("{\"spec\":{\"cluster\":{\"enableOutpost\":true}}}",
                  "{\"spec\":{\"cluster\":{\"enableOutpost\":false}}}",
                  "{\"spec\":{\"cluster\":{\"enableOutpost\":true}}}");
}

TEST(the_kubelets_configuration_merges_deeply_and_zero_counts)
{
    expect_merged(
        "{\"spec\":{\"kubelet\":{\"config\":{\"a\":{\"x\":1,\"y\":2},\"b\":[1,2],"
        "\"c\":true,\"d\":[3],\"n\":5}}}}",
        "{\"spec\":{\"kubelet\":{\"config\":{\"a\":{\"y\":0,\"z\":\"\"},\"b\":[9],"
        "\"c\":false,\"d\":[],\"n\":null}}}}",
        "{\"spec\":{\"kubelet\":{\"config\":{\"a\":{\"x\":1,\"y\":0,\"z\":\"\"},\"b\":[9],"
        "\"c\":false,\"d\":[3],\"n\":5}}}}");
    expect_merged("{\"spec\":{\"featureGates\":{\"A\":true,\"B\":true}}}",
                  "{\"spec\":{\"featureGates\":{\"A\":false,\"C\":true}}}",
                  "{\"spec\":{\"featureGates\":{\"A\":false,\"B\":true,\"C\":true}}}");
}

TEST(flags_are_appended_and_other_lists_replaced)
{
    expect_merged("{\"spec\":{\"instance\":{\"network\":{\"domains\":[\"a\"]}},"
                  "\"kubelet\":{\"flags\":[\"--a\",\"--b\"]}}}",
                  "{\"spec\":{\"instance\":{\"network\":{\"domains\":[\"b\"]}},"
                  "\"kubelet\":{\"flags\":[\"--a\"]}}}",
                  "{\"spec\":{\"instance\":{\"network\":{\"domains\":[\"b\"]}},"
                  "\"kubelet\":{\"flags\":[\"--a\",\"--b\",\"--a\"]}}}");
}

TEST(texts_of_containerd_stand_one_after_the_other)
{
    expect_merged("{\"spec\":{\"containerd\":{\"config\":\"a = 1\"}}}",
                  "{\"spec\":{\"containerd\":{\"config\":\"b = 2\\n\"}}}",
                  "{\"spec\":{\"containerd\":{\"config\":\"a = 1\\nb = 2\\n\"}}}");
    expect_merged("{\"spec\":{\"containerd\":{\"config\":\"a = 1\"}}}",
                  "{\"spec\":{\"containerd\":{\"config\":\"\"}}}",
                  "{\"spec\":{\"containerd\":{\"config\":\"a = 1\"}}}");
}

TEST(merging_with_nothing_changes_nothing)
{
    static const char config[] = "{\"spec\":{\"kubelet\":{\"config\":{\"a\":[]}}}}";
    expect_merged("", config, config);
    expect_merged("{}", config, config);
    expect_merged(config, "{}", config);
    expect_merged(config, "{\"spec\":{\"kubelet\":{}}}", config);
}

TEST(only_what_starts_like_a_nodeconfig_is_one)
{
    static const struct {
        const char *text;
        bool strict, any; /* without and with any_mapping */
    } cases[] = {
        { "apiVersion: node.eks.aws/v1alpha1\n", true, true },
        { "apiVersion: broken: yaml: [\n", true, true },
        { "# c\n\n---\n\"kind\" : NodeConfig\n", true, true },
        { "spec: {}\nkind: NodeConfig\n", true, true },
        { "{\"spec\": {}, \"apiVersion\": \"x\"}", true, true },
        { "kubelet: {}\n", false, true },
        { "apiVersion=3\necho $apiVersion\n", false, false },
        { "kindly: [\n", false, false },
        { "echo hello\n", false, false },
        { "- a\n- b\n", false, false },
        { "# only a comment\n", false, false },
        { "", false, false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        EXPECT_EQ(nodeconfig_is(str_of(cases[i].text), false), cases[i].strict);
        EXPECT_EQ(nodeconfig_is(str_of(cases[i].text), true), cases[i].any);
    }
}

TEST(a_nodeconfig_beyond_the_limit_is_refused_unread)
{
    AUTO_BUF text = { 0 };
    struct docs docs;
    struct text_pos at;
    struct err err = { 0 };
    buf_addz(&text, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n#");
    while (text.len <= NODECONFIG_BYTES_MAX)
        buf_addc(&text, 'x');
    EXPECT_ERR(nodeconfig_read(buf_str(&text), &docs, &at, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "longer than 65536 bytes");
    EXPECT_TRUE(nodeconfig_is(buf_str(&text), true));
}
