#include "control/settings.h"
#include "support/test.h"

static int set(struct control_settings *s, const char *name, const char *value, struct err *err)
{
    return control_setting_parse(s, str_of(name), str_of(value), err);
}

TEST(every_setting_reads_back_what_it_wrote)
{
    struct control_settings s = control_settings_default;
    struct err err = { 0 };
    EXPECT_OK(set(&s, "batch-idle-duration", "2s", &err), err);
    EXPECT_OK(set(&s, "batch-max-duration", "1m30s", &err), err);
    EXPECT_OK(set(&s, "preference-policy", "Ignore", &err), err);
    EXPECT_OK(set(&s, "min-values-policy", "BestEffort", &err), err);
    EXPECT_OK(set(&s, "registration-health-policy", "window", &err), err);
    EXPECT_OK(set(&s, "registration-health-window", "4", &err), err);
    EXPECT_OK(set(&s, "registration-health-threshold", "3", &err), err);
    EXPECT_OK(set(&s, "registration-cooldown", "1m", &err), err);
    EXPECT_OK(set(&s, "feature-gates", "NodeRepair=true, NodeOverlay=false", &err), err);
    EXPECT_OK(set(&s, "plan-effort", "1000", &err), err);
    EXPECT_OK(set(&s, "threads", "3", &err), err);
    EXPECT_EQ(s.batch_idle_ns, 2000000000);
    EXPECT_EQ(s.health.threshold, 3);
    EXPECT_TRUE(s.node_repair);
    EXPECT_FALSE(s.node_overlays);

    struct control_settings again = control_settings_default;
    for (uint32_t i = 0; i < control_setting_count; i++) {
        AUTO_BUF text = { 0 };
        control_setting_format(&s, i, &text);
        EXPECT_OK(control_setting_parse(&again, str_of(control_setting_table[i].name),
                                        buf_str(&text), &err),
                  err);
    }
    for (uint32_t i = 0; i < control_setting_count; i++) {
        AUTO_BUF a = { 0 }, b = { 0 };
        control_setting_format(&s, i, &a);
        control_setting_format(&again, i, &b);
        EXPECT_STR(buf_str(&a), buf_str(&b).p);
    }
}

TEST(a_misspelt_setting_is_told_its_name)
{
    struct control_settings s = control_settings_default;
    struct err err = { 0 };
    EXPECT_ERR(set(&s, "batch-idle-durations", "1s", &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "did you mean \"batch-idle-duration\"?");
    EXPECT_ERR(set(&s, "colour", "1s", &err), err, ERR_NOT_FOUND);
    EXPECT_Z(err.text, "unknown setting");
}

TEST(a_value_that_makes_no_sense_changes_nothing)
{
    static const char *const wrong[][2] = {
        { "batch-idle-duration", "0s" },
        { "batch-idle-duration", "-1s" },
        { "batch-max-duration", "25h" },
        { "preference-policy", "respect" },
        { "registration-health-window", "0" },
        { "registration-health-window", "65" },
        { "feature-gates", "NodeRepair" },
        { "feature-gates", "NodeRepair=yes" },
        { "feature-gates", "NodeRepair=true,Nonsense=true" },
        { "feature-gates", "StaticCapacity=true" },
        { "plan-effort", "much" },
        { "threads", "1000" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(wrong); i++) {
        struct control_settings s = control_settings_default;
        struct err err = { 0 };
        EXPECT_ERR(set(&s, wrong[i][0], wrong[i][1], &err), err, ERR_INVALID);
        EXPECT_EQ(memcmp(&s, &control_settings_default, sizeof s), 0);
    }
}

TEST(gates_of_upstream_may_ask_for_what_karve_does_anyway)
{
    struct control_settings s = control_settings_default;
    struct err err = { 0 };
    EXPECT_OK(set(&s, "feature-gates",
                  "ReservedCapacity=true,StaticCapacity=false,CapacityBuffer=false", &err),
              err);
}

TEST(variables_have_the_names_that_upstream_reads)
{
    AUTO_BUF name = { 0 };
    control_variable("batch-idle-duration", &name);
    EXPECT_STR(buf_str(&name), "BATCH_IDLE_DURATION");
    uint32_t shared = 0;
    for (uint32_t i = 0; i < control_setting_count; i++)
        shared += control_setting_table[i].karpenter;
    EXPECT_EQ(shared, 5);
}

TEST(what_only_upstream_has_may_ask_for_what_karve_does_anyway)
{
    static const struct {
        const char *name, *value;
        bool fits;
    } cases[] = {
        { "karpenter-service", "karpenter", true },
        { "memory-limit", "1073741824", true },
        { "cpu-requests", "500", true },
        { "enable-profiling", "false", true },
        { "enable-profiling", "true", false },
        { "disable-controller-warmup", "true", true },
        { "disable-controller-warmup", "false", false },
        { "log-output-paths", "stdout", true },
        { "log-output-paths", "/var/log/karpenter", false },
        { "ignore-dra-requests", "true", true },
        { "ignore-dra-requests", "false", false },
        { "scheduler-config", "", true },
        { "scheduler-config", "podTopologySpread: {}", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        uint32_t ix = 0;
        struct err err = { 0 };
        while (ix < karpenter_only_count &&
               strcmp(karpenter_only_table[ix].name, cases[i].name) != 0)
            ix++;
        EXPECT_TRUE(ix < karpenter_only_count);
        if (cases[i].fits)
            EXPECT_OK(karpenter_only_check(ix, str_of(cases[i].value), &err), err);
        else
            EXPECT_ERR(karpenter_only_check(ix, str_of(cases[i].value), &err), err, ERR_INVALID);
    }
}

TEST(no_setting_is_in_both_tables)
{
    for (uint32_t i = 0; i < karpenter_only_count; i++) {
        struct control_settings s = control_settings_default;
        struct err err = { 0 };
        EXPECT_ERR(set(&s, karpenter_only_table[i].name, "1", &err), err, ERR_NOT_FOUND);
    }
}
