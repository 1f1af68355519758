#include "cloud/catalogue_labels.h"
#include "cloud/catalogue_testing.h"

TEST(catalogue_gives_a_general_purpose_type_its_labels)
{
    WORLD w;
    world_init(&w, "", NULL);
    const char *t = "m7g.xlarge";
    expect_label(&w, t, LABEL_INSTANCE_TYPE, "m7g.xlarge");
    expect_label(&w, t, LABEL_ARCH, "arm64");
    expect_label(&w, t, LABEL_OS, "linux");
    expect_label(&w, t, LABEL_REGION, "us-east-1");
    expect_label(&w, t, LABEL_ZONE, "us-east-1a us-east-1b us-east-1c us-east-1d us-east-1f");
    expect_label(&w, t, LABEL_ZONE_ID, "use1-az1 use1-az2 use1-az4 use1-az5 use1-az6");
    expect_label(&w, t, LABEL_WINDOWS_BUILD, "-");
    expect_label(&w, t, LABEL_CAPACITY_TYPE, "on-demand spot");
    expect_label(&w, t, LABEL_AWS("capacity-reservation-id"), "-");
    expect_label(&w, t, LABEL_AWS("capacity-reservation-type"), "-");
    expect_label(&w, t, LABEL_AWS("capacity-reservation-interruptible"), "-");
    expect_label(&w, t, LABEL_AWS("instance-category"), "m");
    expect_label(&w, t, LABEL_AWS("instance-generation"), "7");
    expect_label(&w, t, LABEL_AWS("instance-family"), "m7g");
    expect_label(&w, t, LABEL_AWS("instance-size"), "xlarge");
    expect_label(&w, t, LABEL_AWS("instance-capability-flex"), "false");
    expect_label(&w, t, LABEL_AWS("instance-cpu"), "4");
    expect_label(&w, t, LABEL_AWS("instance-cpu-manufacturer"), "aws");
    expect_label(&w, t, LABEL_AWS("instance-cpu-sustained-clock-speed-mhz"), "2600");
    expect_label(&w, t, LABEL_AWS("instance-memory"), "16384");
    expect_label(&w, t, LABEL_AWS("instance-ebs-bandwidth"), "10000");
    expect_label(&w, t, LABEL_AWS("instance-network-bandwidth"), "1876");
    expect_label(&w, t, LABEL_AWS("instance-local-nvme"), "-");
    expect_label(&w, t, LABEL_AWS("instance-gpu-name"), "-");
    expect_label(&w, t, LABEL_AWS("instance-accelerator-name"), "-");
    expect_label(&w, t, LABEL_AWS("instance-hypervisor"), "nitro");
    expect_label(&w, t, LABEL_AWS("instance-encryption-in-transit-supported"), "true");
    expect_label(&w, t, LABEL_AWS("nitro-sandbox"), "true");
    expect_label(&w, t, LABEL_AWS("instance-tenancy"), "dedicated default");
    expect_label(&w, t, LABEL_AWS("placement-group-id"), "-");
    expect_label(&w, t, LABEL_AWS("placement-group-partition"), "-");
}

TEST(catalogue_gives_unusual_types_their_labels)
{
    WORLD w;
    world_init(&w, "", NULL);
    expect_label(&w, "g4ad.8xlarge", LABEL_AWS("instance-gpu-name"), "radeon-pro-v520");
    expect_label(&w, "g4ad.8xlarge", LABEL_AWS("instance-gpu-manufacturer"), "amd");
    expect_label(&w, "g4ad.8xlarge", LABEL_AWS("instance-gpu-count"), "2");
    expect_label(&w, "g4ad.8xlarge", LABEL_AWS("instance-gpu-memory"), "8192");
    expect_label(&w, "inf2.24xlarge", LABEL_AWS("instance-accelerator-name"), "inferentia2");
    expect_label(&w, "inf2.24xlarge", LABEL_AWS("instance-accelerator-manufacturer"), "aws");
    expect_label(&w, "inf2.24xlarge", LABEL_AWS("instance-accelerator-count"), "6");
    expect_label(&w, "inf2.24xlarge", LABEL_AWS("instance-category"), "inf");
    expect_label(&w, "u-6tb1.56xlarge", LABEL_AWS("instance-category"), "u");
    expect_label(&w, "u-6tb1.56xlarge", LABEL_AWS("instance-generation"), "1");
    expect_label(&w, "u7i-12tb.224xlarge", LABEL_AWS("instance-generation"), "7");
    expect_label(&w, "u7i-12tb.224xlarge", LABEL_CAPACITY_TYPE, "on-demand");
    expect_label(&w, "p6-b200.48xlarge", LABEL_AWS("instance-generation"), "6");
    expect_label(&w, "p6-b200.48xlarge", LABEL_AWS("instance-family"), "p6-b200");
    expect_label(&w, "c7i-flex.large", LABEL_AWS("instance-capability-flex"), "true");
    expect_label(&w, "m5.metal", LABEL_AWS("instance-hypervisor"), ""); /* there, and empty */
    expect_label(&w, "m5.metal", LABEL_AWS("nitro-sandbox"), "-");
    expect_label(&w, "t2.micro", LABEL_AWS("instance-ebs-bandwidth"), "-");
    expect_label(&w, "t2.micro", LABEL_AWS("instance-network-bandwidth"), "-");
    expect_label(&w, "i3en.metal", LABEL_AWS("instance-local-nvme"), "60000");
    expect_label(&w, "d2.xlarge", LABEL_AWS("instance-local-nvme"), "-");
}

static struct str label_of(struct arena *arena, const char *name, const char *key)
{
    struct machine m = { .name = str_of(name) };
    struct requirements set = machine_labels(arena, &m, &(struct type_placement){ 0 });
    const struct requirement *r = requirements_find(&set, str_of(key));
    return r->values.count ? r->values.items[0] : STR("-");
}

TEST(catalogue_reads_category_and_generation_as_the_pattern_does)
{
    static const struct {
        const char *name, *category, *generation;
    } cases[] = {
        { "m5.large", "m", "5" },
        { "u-24tb1.metal", "u", "1" },
        { "mac2-m2.metal", "mac", "2" },
        { "mac-m4.metal", "-", "-" },
        { "im4gn.large", "im", "4" },
        { "m5", "-", "-" },
        { "5m.large", "-", "-" },
        { "u-6tb.metal", "-", "-" },
        { "u-tb1.metal", "-", "-" },
        { "g12x3.large", "g", "12" },
        { "", "-", "-" },
        { "m-5.large", "-", "-" },
        { "hpc7g.4xlarge", "hpc", "7" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        EXPECT_STR(label_of(&arena, cases[i].name, LABEL_AWS("instance-category")),
                   cases[i].category);
        EXPECT_STR(label_of(&arena, cases[i].name, LABEL_AWS("instance-generation")),
                   cases[i].generation);
    }
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(label_of(&arena, "a.b.c", LABEL_AWS("instance-family")), "-");
    EXPECT_STR(label_of(&arena, "a.b.c", LABEL_AWS("instance-size")), "-");
}

TEST(catalogue_types_define_every_label_that_is_well_known_for_ec2)
{
    WORLD w;
    world_init(&w, "", NULL);
    const struct label_rules *rules = label_rules_for(STR(AWS_GROUP));
    for (uint32_t i = 0; i < rules->well_known.count; i++) {
        struct str key = rules->well_known.items[i];
        if (str_eqz(key, LABEL_NODEPOOL)) /* comes from the pool */
            continue;
        const struct label_column *column = instance_types_label(w.types, key);
        EXPECT_TRUE(column != NULL);
        EXPECT_EQ(bitset_popcount(&column->defined), w.types->type_count);
    }
    for (uint32_t i = 0; i < w.types->key_count; i++)
        EXPECT_TRUE(label_is_well_known(rules, w.types->labels[i].key));
}
