#include "compat/predict_table.h"

#include "cloud/catalogue.h"
#include "compat/predict_testing.h"

static const struct feature_set *table_set(struct world *w, const char *type,
                                           const char *architecture)
{
    AUTO(predictor) predictor = predictor_new((struct predictor_options){ 0 });
    struct machine_kind machine = kind_of(type, architecture, "");
    return world_predict(w, predictor, &machine);
}

/* What is known of each flag in turn: 'y', 'n' or '?'. */
static void expect_flags(const char *type, const char *architecture, const char *const *flags,
                         const char *want)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = table_set(&w, type, architecture);
    for (size_t i = 0; flags[i]; i++) {
        char got = world_has(&w, set, "cpu.cpuid", flags[i]);
        if (got != want[i])
            print_message("# %s %s: %c, not %c\n", type, flags[i], got, want[i]);
        EXPECT_EQ(got, want[i]);
    }
}

TEST(every_x86_row_knows_its_vector_flags)
{
    static const char *const flags[] = { "AVX2",          "X86_64_V3",  "AVX512F",
                                         "X86_64_V4",     "AVX512VNNI", "AVX512IFMA",
                                         "AVX512BITALG",  "AVX512BF16", "AVX512FP16",
                                         "AMXTILE",       "AMXFP16",    "AVX512VP2INTERSECT",
                                         "AVXVNNI",       "VAES",       "GFNI",
                                         "AVX10_VERSION", NULL };
    static const struct {
        const char *type, *want;
    } rows[] = {
        { "m4.large", "yynnnnnnnnnnnnnn" },       { "t2.micro", "yynnnnnnnnnnnnnn" },
        { "m5.large", "yyyy?nnnnnnnnnnn" },       { "c5n.xlarge", "yyyy?nnnnnnnnnnn" },
        { "r5dn.large", "yyyy?nnnnnnnnnnn" },     { "z1d.large", "yyyy?nnnnnnnnnnn" },
        { "t3.nano", "yyyy?nnnnnnnnnnn" },        { "m5zn.large", "yyyy?nnnnnnnnnnn" },
        { "g4dn.xlarge", "yyyyynnnnnnnnnnn" },    { "p4d.24xlarge", "yyyyynnnnnnnnnnn" },
        { "c6in.large", "yyyyyyynnnnnnyyn" },     { "x2iedn.xlarge", "yyyyyyynnnnnnyyn" },
        { "i4i.large", "yyyyyyynnnnnnyyn" },      { "m7i.large", "yyyyyyyyyynnyyyn" },
        { "m7i-flex.large", "yyyyyyyyyynnyyyn" }, { "r7iz.large", "yyyyyyyyyynnyyyn" },
        { "i7ie.large", "yyyyyyyyyynnyyyn" },     { "p5en.48xlarge", "yyyyyyyyyynnyyyn" },
        { "c8i-flex.large", "yyyyyyyyyyynyyy?" }, { "m5a.large", "yynnnnnnnnnnnnnn" },
        { "t3a.small", "yynnnnnnnnnnnnnn" },      { "c5ad.large", "yynnnnnnnnnnnnnn" },
        { "g5.xlarge", "yynnnnnnnnnnnnnn" },      { "m6a.large", "yynnnnnnnnnnnynn" },
        { "p5.48xlarge", "yynnnnnnnnnnnynn" },    { "inf2.xlarge", "yynnnnnnnnnnnynn" },
        { "m7a.large", "yyyyyyyynnnnnyyn" },      { "hpc7a.12xlarge", "yyyyyyyynnnnnyyn" },
        { "r8a.large", "yyyyyyyynnnyyyyn" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++)
        expect_flags(rows[i].type, "amd64", flags, rows[i].want);
}

TEST(every_graviton_has_the_flags_of_those_before_it)
{
    static const char *const flags[] = { "ASIMD", "ATOMICS", "SSBS", "SVE",  "BF16", "PACA",
                                         "SVE2",  "BTI",     "AFP",  "WFXT", NULL };
    static const struct {
        const char *type, *want;
    } rows[] = {
        { "a1.large", "ynnnnnnnnn" },    { "m6g.large", "yyynnnnnnn" },
        { "c6gn.large", "yyynnnnnnn" },  { "t4g.small", "yyynnnnnnn" },
        { "x2gd.large", "yyynnnnnnn" },  { "g5g.xlarge", "yyynnnnnnn" },
        { "im4gn.large", "yyynnnnnnn" }, { "is4gen.large", "yyynnnnnnn" },
        { "m7gd.large", "yyyyyynnnn" },  { "hpc7g.4xlarge", "yyyyyynnnn" },
        { "r8g.large", "yyyyyyyynn" },   { "i8ge.large", "yyyyyyyynn" },
        { "m9gd.large", "yyyyyyyy??" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++)
        expect_flags(rows[i].type, "arm64", flags, rows[i].want);
}

/* A name that looks like a listed family is not one, and other clouds have names of their own. */
TEST(families_that_are_not_listed_have_what_the_architecture_guarantees)
{
    static const char *const flags[] = { "SSE2", "X86_64_V1", "AVX2", "AVX512F", NULL };
    static const char *const types[] = {
        "x2iezn.large",
        "u7i-12tb.224xlarge",
        "p5e.48xlarge",
        "m7i-turbo.large",
        "m7ii.large",
        "m77i.large",
        "c-4x-amd64-linux",
        "",
        ".",
        "m.large",
        "7i.large",
        "p6-b200.48xlarge",
        "m99999999999999999999i.large",
        "m5dd.large",
        "m6i-flex.large",
    };
    for (size_t i = 0; i < KV_COUNT_OF(types); i++)
        expect_flags(types[i], "amd64", flags, "yy??");
    static const char *const arm_flags[] = { "ASIMD", "FP", "SVE", "ATOMICS", NULL };
    expect_flags("z9g.large", "arm64", arm_flags, "yy??");
    expect_flags("s-16x-arm64-linux", "arm64", arm_flags, "yy??");
    expect_flags("m5.large", "riscv64", flags, "????");
}

TEST(no_machine_has_flags_of_another_architecture)
{
    static const char *const flags[] = {
        "AVX2", "AVX512F", "AMXTILE", "SVE", "ASIMD", "PACA", NULL
    };
    expect_flags("m7g.large", "arm64", flags, "nnnyyy");
    expect_flags("z9g.large", "arm64", flags, "nnn?y?");
    expect_flags("m7i.large", "amd64", flags, "yyynnn");
    expect_flags("z9i.large", "amd64", flags, "???nnn");
    expect_flags("m5.large", "riscv64", flags, "??????");
}

TEST(labels_that_contradict_the_table_are_believed)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) predictor = predictor_new((struct predictor_options){ 0 });
    struct machine_kind m = kind_of("m7i.large", "amd64", "");
    m.cpu_manufacturer = STR("intel");
    EXPECT_EQ(world_has(&w, world_predict(&w, predictor, &m), "cpu.cpuid", "AVX512F"), 'y');
    m.cpu_manufacturer = STR("amd");
    EXPECT_EQ(world_has(&w, world_predict(&w, predictor, &m), "cpu.cpuid", "AVX512F"), '?');
    m.cpu_manufacturer = STR("");
    m.architecture = STR("arm64");
    EXPECT_EQ(world_has(&w, world_predict(&w, predictor, &m), "cpu.cpuid", "AVX512F"), 'n');
    m.os = STR("windows"); /* NFD does not run there */
    EXPECT_EQ(feature_set_count(world_predict(&w, predictor, &m)), 0);
}

TEST(models_topology_and_hypervisors_are_known)
{
    static const struct {
        const char *type, *architecture, *vendor, *family, *id, *hypervisor, *threads;
    } rows[] = {
        { "m4.large", "amd64", "Intel", "6", NULL, "xenhvm", NULL },
        { "m5.large", "amd64", "Intel", "6", "85", "kvm", "true" },
        { "m5.metal", "amd64", "Intel", "6", "85", "none", "true" },
        { "m7i.metal-24xl", "amd64", "Intel", "6", "143", "none", "true" },
        { "m6a.large", "amd64", "AMD", "25", "1", "kvm", "true" },
        { "m7a.medium", "amd64", "AMD", "25", "17", "kvm", "false" },
        { "m8a.large", "amd64", "AMD", "26", "2", "kvm", "false" },
        { "m7g.large", "arm64", "ARM", NULL, NULL, "none", "false" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        WORLD w;
        world_init(&w);
        const struct feature_set *set = table_set(&w, rows[i].type, rows[i].architecture);
        bool metal = strstr(rows[i].type, ".metal") != NULL;
        EXPECT_EQ(world_equals(&w, set, "cpu.model", "vendor_id", rows[i].vendor), MATCH_YES);
        EXPECT_EQ(world_equals(&w, set, "cpu.model", "hypervisor", rows[i].hypervisor), MATCH_YES);
        EXPECT_EQ(
            world_equals(&w, set, "cpu.model", "family", rows[i].family ? rows[i].family : ""),
            rows[i].family ? MATCH_YES : MATCH_UNKNOWN);
        EXPECT_EQ(world_equals(&w, set, "cpu.model", "id", rows[i].id ? rows[i].id : ""),
                  rows[i].id ? MATCH_YES : MATCH_UNKNOWN);
        EXPECT_EQ(world_equals(&w, set, "cpu.topology", "hardware_multithreading",
                               rows[i].threads ? rows[i].threads : "true"),
                  rows[i].threads ? MATCH_YES : MATCH_UNKNOWN);
        EXPECT_EQ(world_has(&w, set, "cpu.topology", "socket_count"), '?');
        if (strcmp(rows[i].architecture, "amd64") == 0)
            EXPECT_EQ(world_has(&w, set, "cpu.cpuid", "HYPERVISOR"), metal ? 'n' : 'y');
    }
}

TEST(one_virtual_cpu_has_no_second_thread)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) predictor = predictor_new((struct predictor_options){ 0 });
    struct machine_kind m = kind_of("m5.small", "amd64", "");
    m.cpu = 1;
    EXPECT_EQ(world_equals(&w, world_predict(&w, predictor, &m), "cpu.topology",
                           "hardware_multithreading", "false"),
              MATCH_YES);
}

static enum match has_device(struct world *w, const struct feature_set *set, const char *class_,
                             const char *vendor, const char *device)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "class: {op: In, value: ['%s']}, vendor: {op: In, value: ['%s']}, device: {op: In, "
             "value: ['%s']}",
             class_, vendor, device);
    return world_ask(w, set, "pci.device", text.p);
}

TEST(devices_are_known_in_part)
{
    static const struct {
        const char *type, *architecture, *class_, *vendor, *device;
        enum match want;
    } rows[] = {
        { "p5.48xlarge", "amd64", "0302", "10de", "2330", MATCH_YES },
        { "p5en.48xlarge", "amd64", "0302", "10de", "2335", MATCH_YES },
        { "p6-b200.48xlarge", "amd64", "0302", "10de", "2901", MATCH_YES },
        { "g5g.xlarge", "arm64", "0302", "10de", "1eb4", MATCH_YES },
        { "g4ad.xlarge", "amd64", "0380", "1002", "7362", MATCH_YES },
        { "inf1.xlarge", "amd64", "0880", "1d0f", "7064", MATCH_YES },
        { "trn3.48xlarge", "amd64", "0880", "1d0f", "7564", MATCH_UNKNOWN },
        { "dl1.24xlarge", "amd64", "1200", "1da3", "1000", MATCH_YES },
        { "m5.large", "amd64", "0302", "10de", "2330", MATCH_UNKNOWN }, /* one never knows */
        { "m5.large", "amd64", "0200", "1d0f", "ec20", MATCH_YES },
        { "m7g.large", "arm64", "0108", "1d0f", "8061", MATCH_YES },
        { "m7g.large", "arm64", "0108", "1d0f", "cd01", MATCH_UNKNOWN },
        { "m7gd.large", "arm64", "0108", "1d0f", "cd01", MATCH_YES },
        { "i4i.large", "amd64", "0108", "1d0f", "cd01", MATCH_YES },
        { "m6a.large", "amd64", "0600", "8086", "1237", MATCH_YES }, /* AMD's have it, too */
        { "m5.metal", "amd64", "0600", "8086", "1237", MATCH_UNKNOWN },
        { "m7g.large", "arm64", "0600", "8086", "1237", MATCH_UNKNOWN },
        { "m4.large", "amd64", "0200", "1d0f", "ec20", MATCH_UNKNOWN },
        { "p3.2xlarge", "amd64", "0302", "10de", "1db1", MATCH_YES },
        { "p3.2xlarge", "amd64", "0108", "1d0f", "8061", MATCH_UNKNOWN },
        { "p3dn.24xlarge", "amd64", "0108", "1d0f", "8061", MATCH_YES },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        WORLD w;
        world_init(&w);
        const struct feature_set *set = table_set(&w, rows[i].type, rows[i].architecture);
        enum match got = has_device(&w, set, rows[i].class_, rows[i].vendor, rows[i].device);
        if (got != rows[i].want)
            print_message("# %s %s\n", rows[i].type, rows[i].device);
        EXPECT_EQ(got, rows[i].want);
    }
}

TEST(gpu_label_tells_the_vendor_of_a_family_that_is_not_listed)
{
    WORLD w;
    world_init(&w);
    AUTO(predictor) predictor = predictor_new((struct predictor_options){ 0 });
    struct machine_kind m = kind_of("g9.xlarge", "amd64", "");
    m.gpu_manufacturer = STR("nvidia");
    const struct feature_set *set = world_predict(&w, predictor, &m);
    EXPECT_EQ(world_equals(&w, set, "pci.device", "vendor", "10de"), MATCH_YES);
    EXPECT_EQ(world_equals(&w, set, "pci.device", "class", "0302"), MATCH_UNKNOWN);
}

TEST(kernel_and_system_are_not_in_the_tables)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = table_set(&w, "m5.large", "amd64");
    EXPECT_EQ(world_has(&w, set, "kernel.version", "full"), '?');
    EXPECT_EQ(world_has(&w, set, "system.osrelease", "ID"), '?');
    EXPECT_EQ(world_has(&w, set, "memory.numa", "is_numa"), '?');
}

/* Two lists of the same machines, made apart. */
TEST(tables_agree_with_the_catalogue_of_instance_types)
{
    uint32_t listed = 0;
    AUTO(predictor) predictor = predictor_new((struct predictor_options){ 0 });
    for (uint32_t i = 0; i < catalogue_machine_count(); i++) {
        const struct machine *machine = &catalogue_machines()[i].machine;
        WORLD w;
        world_init(&w);
        struct machine_kind m = { .instance_type = machine->name, .cpu = machine->vcpus };
        const struct feature_set *set = world_predict(&w, predictor, &m);
        const struct set_feature *model = feature_set_find(set, STR("cpu.model"));
        if (!model)
            continue;
        struct str vendor = feature_set_value(set, model->attributes, STR("vendor_id"));
        struct str hypervisor = feature_set_value(set, model->attributes, STR("hypervisor"));
        struct str maker = str_eqz(vendor, "ARM") ? STR("AWS") : vendor;
        const char *expected = machine->arch == MACHINE_ARM64 || machine->hypervisor.len == 0
                                   ? "none"
                               : str_eqz(machine->hypervisor, "xen") ? "xenhvm"
                                                                     : "kvm";
        bool disk = has_device(&w, set, "0108", "1d0f", "cd01") == MATCH_YES;
        bool wrong = !str_eq(maker, machine->cpu_manufacturer) || !str_eqz(hypervisor, expected) ||
                     (disk && machine->local_nvme_gb == 0) ||
                     (machine->arch == MACHINE_ARM64) != str_eqz(vendor, "ARM");
        if (wrong)
            print_message("# %.*s: %.*s, %.*s\n", STR_ARG(machine->name), STR_ARG(maker),
                          STR_ARG(hypervisor));
        EXPECT_FALSE(wrong);
        listed++;
    }
    print_message("# %u of %u types are listed\n", listed, catalogue_machine_count());
    EXPECT_TRUE(listed > catalogue_machine_count() * 3 / 4);
}

TEST(family_is_what_is_before_the_size)
{
    EXPECT_STR(instance_family(STR("m7i-flex.large")), "m7i-flex");
    EXPECT_STR(instance_family(STR("u-12tb1.112xlarge")), "u-12tb1");
    EXPECT_STR(instance_family(STR("c-4x-amd64-linux")), "");
    EXPECT_STR(instance_family(STR("")), "");
}
