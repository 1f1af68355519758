/* A family's name is letters, a generation, perhaps the letter of the processor's maker, and options: c6gd is
 * c, 6, g and d. The first three, with the options that are known to change nothing, give the processor; what
 * does not fit a pattern is not guessed at. (x2iezn has an older processor than x2idn: no pattern takes it.)
 * Accelerators are found by the family's whole name.
 *
 * A processor's flags are bits over a table of names. "Everything in the table that it does not have" is what
 * is known to be absent; the table has only such names for which that holds.
 */
#include "compat/predict_table.h"

/* clang-format off */

/* --- flags of x86 --- */

/* As NFD names them; SSE4 is SSE4.1. All processors with AVX2 have these. */
#define X86_BASE(F)                                                                                \
    F(MMX) F(SSE) F(SSE2) F(SSE3) F(SSSE3) F(SSE4) F(SSE42) F(CMOV) F(CX16) F(POPCNT) F(LZCNT)     \
    F(MOVBE) F(BMI1) F(BMI2) F(F16C) F(FMA3) F(AESNI) F(CLMUL) F(AVX) F(AVX2)                      \
    F(X86_64_V1) F(X86_64_V2) F(X86_64_V3)
#define X86_LATER(F)                                                                               \
    F(X86_64_V4) F(AVX512F) F(AVX512BW) F(AVX512CD) F(AVX512DQ) F(AVX512VL) F(AVX512IFMA)          \
    F(AVX512VBMI) F(AVX512VBMI2) F(AVX512VNNI) F(AVX512BITALG) F(AVX512VPOPCNTDQ) F(AVX512BF16)    \
    F(AVX512FP16) F(AVX512VP2INTERSECT) F(AVXVNNI) F(AVX10_VERSION) F(AMXTILE) F(AMXINT8)          \
    F(AMXBF16) F(AMXFP16) F(GFNI) F(VAES) F(VPCLMULQDQ) F(SHA) F(HYPERVISOR)

/* --- flags of arm64 --- */

#define ARM_BASE(F) F(FP) F(ASIMD) F(AES) F(PMULL) F(SHA1) F(SHA2) F(CRC32) F(CPUID)
#define ARM_2(F) F(ATOMICS) F(FPHP) F(ASIMDHP) F(ASIMDRDM) F(LRCPC) F(DCPOP) F(ASIMDDP) F(SSBS)
#define ARM_3(F)                                                                                   \
    F(SVE) F(SVEBF16) F(SVEI8MM) F(BF16) F(I8MM) F(RNG) F(PACA) F(PACG) F(JSCVT) F(FCMA) F(SHA3)   \
    F(SHA512) F(ASIMDFHM) F(DIT) F(FLAGM)
#define ARM_4(F)                                                                                   \
    F(SVE2) F(SVEAES) F(SVEPMULL) F(SVEBITPERM) F(SVESHA3) F(BTI) F(FLAGM2) F(FRINT)
#define ARM_5(F) F(AFP) F(WFXT)

#define X86_ALL(F) X86_BASE(F) X86_LATER(F)
#define ARM_ALL(F) ARM_BASE(F) ARM_2(F) ARM_3(F) ARM_4(F) ARM_5(F)

#define X86_NUMBER(name) X86_##name,
#define ARM_NUMBER(name) ARM_##name,
enum { X86_ALL(X86_NUMBER) X86_FLAG_COUNT };
enum { ARM_ALL(ARM_NUMBER) ARM_FLAG_COUNT };
_Static_assert(X86_FLAG_COUNT <= 64, "a processor's flags fit a word");
_Static_assert(ARM_FLAG_COUNT <= 64, "a processor's flags fit a word");

#define NAME(name) { #name, sizeof(#name) - 1 },
static const struct str x86_names[] = { X86_ALL(NAME) };
static const struct str arm_names[] = { ARM_ALL(NAME) };

#define X(name) (UINT64_C(1) << X86_##name)
#define X_OR(name) | X(name)
#define A_OR(name) | (UINT64_C(1) << ARM_##name)

/* --- processors --- */

#define FLAGS_AVX2 (UINT64_C(0) X86_BASE(X_OR))
#define FLAGS_SKYLAKE                                                                              \
    (FLAGS_AVX2 | X(X86_64_V4) | X(AVX512F) | X(AVX512BW) | X(AVX512CD) | X(AVX512DQ) | X(AVX512VL))
#define FLAGS_AVX512_LATER                                                                         \
    (X(AVX512IFMA) | X(AVX512VBMI) | X(AVX512VBMI2) | X(AVX512VNNI) | X(AVX512BITALG) |            \
     X(AVX512VPOPCNTDQ))
#define FLAGS_WIDE_CRYPTO (X(GFNI) | X(VAES) | X(VPCLMULQDQ) | X(SHA))
#define FLAGS_ICE_LAKE (FLAGS_SKYLAKE | FLAGS_AVX512_LATER | FLAGS_WIDE_CRYPTO)
#define FLAGS_SAPPHIRE                                                                             \
    (FLAGS_ICE_LAKE | X(AVX512BF16) | X(AVX512FP16) | X(AVXVNNI) | X(AMXTILE) | X(AMXINT8) |       \
     X(AMXBF16))
#define FLAGS_ZEN (FLAGS_AVX2 | X(SHA))
#define FLAGS_ZEN_4 (FLAGS_SKYLAKE | FLAGS_AVX512_LATER | FLAGS_WIDE_CRYPTO | X(AVX512BF16))

#define FLAGS_ARM_1 (UINT64_C(0) ARM_BASE(A_OR))
#define FLAGS_ARM_2 (FLAGS_ARM_1 ARM_2(A_OR))
#define FLAGS_ARM_3 (FLAGS_ARM_2 ARM_3(A_OR))
#define FLAGS_ARM_4 (FLAGS_ARM_3 ARM_4(A_OR))

enum cpu {
    CPU_HASWELL, CPU_SKYLAKE, CPU_CASCADE_LAKE, CPU_ICE_LAKE, CPU_SAPPHIRE_RAPIDS,
    CPU_EMERALD_RAPIDS, CPU_GRANITE_RAPIDS, CPU_ZEN_1, CPU_ZEN_2, CPU_ZEN_3, CPU_ZEN_4, CPU_ZEN_5,
    CPU_GRAVITON_1, CPU_GRAVITON_2, CPU_GRAVITON_3, CPU_GRAVITON_4, CPU_GRAVITON_5,
};

enum cpu_vendor { INTEL, AMD, ARM };

struct cpu_row {
    enum cpu_vendor vendor;
    const char *family, *id; /* decimal; NULL: not known, or several */
    uint64_t flags, unsure;
    uint8_t threads; /* per core; 0: not known */
    bool xen;
};

static const struct cpu_row cpus[] = {
    /* 6/63 or 6/79 */
    [CPU_HASWELL]         = { INTEL, "6", NULL, FLAGS_AVX2, 0, 0, .xen = true },
    /* Skylake or Cascade Lake: some have VNNI */
    [CPU_SKYLAKE]         = { INTEL, "6", "85", FLAGS_SKYLAKE, X(AVX512VNNI), 2 },
    [CPU_CASCADE_LAKE]    = { INTEL, "6", "85", FLAGS_SKYLAKE | X(AVX512VNNI), 0, 2 },
    [CPU_ICE_LAKE]        = { INTEL, "6", "106", FLAGS_ICE_LAKE, 0, 2 },
    [CPU_SAPPHIRE_RAPIDS] = { INTEL, "6", "143", FLAGS_SAPPHIRE, 0, 2 },
    [CPU_EMERALD_RAPIDS]  = { INTEL, "6", "207", FLAGS_SAPPHIRE, 0, 2 },
    /* AVX10 is the processor's; whether guests are told is not known */
    [CPU_GRANITE_RAPIDS]  = { INTEL, "6", "173", FLAGS_SAPPHIRE | X(AMXFP16), X(AVX10_VERSION), 2 },
    [CPU_ZEN_1]           = { AMD, "23", "1", FLAGS_ZEN, 0, 2 },
    [CPU_ZEN_2]           = { AMD, "23", "49", FLAGS_ZEN, 0, 2 },
    [CPU_ZEN_3]           = { AMD, "25", "1", FLAGS_ZEN | X(VAES) | X(VPCLMULQDQ), 0, 2 },
    [CPU_ZEN_4]           = { AMD, "25", "17", FLAGS_ZEN_4, 0, 1 },
    [CPU_ZEN_5]           = { AMD, "26", "2", FLAGS_ZEN_4 | X(AVX512VP2INTERSECT) | X(AVXVNNI), 0, 1 },
    [CPU_GRAVITON_1]      = { ARM, NULL, NULL, FLAGS_ARM_1, 0, 1 },
    [CPU_GRAVITON_2]      = { ARM, NULL, NULL, FLAGS_ARM_2, 0, 1 },
    [CPU_GRAVITON_3]      = { ARM, NULL, NULL, FLAGS_ARM_3, 0, 1 },
    [CPU_GRAVITON_4]      = { ARM, NULL, NULL, FLAGS_ARM_4, 0, 1 },
    /* AFP and WFXT only if the kernel exports them */
    [CPU_GRAVITON_5]      = { ARM, NULL, NULL, FLAGS_ARM_4, UINT64_C(0) ARM_5(A_OR), 1 },
};

/* --- families --- */

struct family_pattern {
    const char *letters; /* one of these words */
    uint8_t generation;
    char maker;          /* of the processor: a, i, g; 0: the name does not say */
    const char *options; /* of these letters, each at most once; "=en": exactly so */
    bool flex;           /* also with "-flex" */
    enum cpu cpu;
    bool disks;          /* all sizes have local NVMe disks; so have all with option d */
};

static const struct family_pattern patterns[] = {
    { "m c r",   4,   0, "",     false, CPU_HASWELL, false },
    { "t",       2,   0, "",     false, CPU_HASWELL, false },
    { "m c r",   5,   0, "bdnz", false, CPU_SKYLAKE, false },
    { "t",       3,   0, "",     false, CPU_SKYLAKE, false },
    { "z",       1,   0, "=d",   false, CPU_SKYLAKE, false },
    { "m c r",   6, 'i', "dn",   false, CPU_ICE_LAKE, false },
    { "x",       2, 'i', "den",  false, CPU_ICE_LAKE, false },
    { "i",       4, 'i', "",     false, CPU_ICE_LAKE, true },
    { "m c r",   7, 'i', "z",    true,  CPU_SAPPHIRE_RAPIDS, false },
    { "i",       7, 'i', "e",    false, CPU_EMERALD_RAPIDS, true },
    { "m c r",   8, 'i', "bdn",  true,  CPU_GRANITE_RAPIDS, false },
    { "m r",     5, 'a', "d",    false, CPU_ZEN_1, false },
    { "t",       3, 'a', "",     false, CPU_ZEN_1, false },
    { "c",       5, 'a', "d",    false, CPU_ZEN_2, false },
    { "m c r",   6, 'a', "",     false, CPU_ZEN_3, false },
    { "m c r hpc", 7, 'a', "",   false, CPU_ZEN_4, false },
    { "m c r",   8, 'a', "",     false, CPU_ZEN_5, false },
    { "a",       1,   0, "",     false, CPU_GRAVITON_1, false },
    { "m c r",   6, 'g', "dn",   false, CPU_GRAVITON_2, false },
    { "t",       4, 'g', "",     false, CPU_GRAVITON_2, false },
    { "x",       2, 'g', "=d",   false, CPU_GRAVITON_2, false },
    { "g",       5, 'g', "",     false, CPU_GRAVITON_2, false },
    { "i",       4, 'g', "",     false, CPU_GRAVITON_2, true },
    { "im",      4, 'g', "=n",   false, CPU_GRAVITON_2, true },
    { "is",      4, 'g', "=en",  false, CPU_GRAVITON_2, true },
    { "m c r hpc", 7, 'g', "dn", false, CPU_GRAVITON_3, false },
    { "m c r x", 8, 'g', "bdn",  false, CPU_GRAVITON_4, false },
    { "i",       8, 'g', "en",   false, CPU_GRAVITON_4, true },
    { "m c",     9, 'g', "d",    false, CPU_GRAVITON_5, false },
    /* hosts of accelerators; those that are not here have hosts that are not known */
    { "g",       4,   0, "=dn",  false, CPU_CASCADE_LAKE, false },
    { "p",       4,   0, "=d",   false, CPU_CASCADE_LAKE, false },
    { "g",       5,   0, "",     false, CPU_ZEN_2, false },
    { "g",       6,   0, "e",    false, CPU_ZEN_3, false },
    { "p",       5,   0, "",     false, CPU_ZEN_3, false },
    { "inf",     2,   0, "",     false, CPU_ZEN_3, false },
    { "p",       5,   0, "=en",  false, CPU_SAPPHIRE_RAPIDS, false },
};

/* --- devices --- */

/* Attributes in the order of their names, as str_map wants them. */
#define PAIR(key, value) { { key, sizeof(key) - 1 }, { value, sizeof(value) - 1 } }
#define DEVICE(vendor_, device_, class_)                                                           \
    { (const struct str_pair[]){ PAIR("class", class_), PAIR("device", device_),                   \
                                 PAIR("vendor", vendor_) }, 3 }

static const struct str_map nitro_network = DEVICE("1d0f", "ec20", "0200");
static const struct str_map nitro_volume  = DEVICE("1d0f", "8061", "0108");
static const struct str_map nitro_disk    = DEVICE("1d0f", "cd01", "0108");
static const struct str_map nitro_chipset[] = { /* of x86, AMD's too */
    DEVICE("8086", "1237", "0600"), DEVICE("8086", "7000", "0601"),
};

struct accelerator_row {
    const char *family;
    struct str_map device;
    bool xen;
};

static const struct accelerator_row accelerators[] = {
    { "p2",      DEVICE("10de", "102d", "0302"), true }, /* K80 */
    { "g3",      DEVICE("10de", "13f2", "0300"), true }, /* M60 */
    { "p3",      DEVICE("10de", "1db1", "0302"), true }, /* V100, 16 GB */
    { "p3dn",    DEVICE("10de", "1db5", "0302"), false }, /* V100, 32 GB */
    { "g4dn",    DEVICE("10de", "1eb8", "0302"), false }, /* T4 */
    { "g5g",     DEVICE("10de", "1eb4", "0302"), false }, /* T4G */
    { "p4d",     DEVICE("10de", "20b0", "0302"), false }, /* A100, 40 GB */
    { "p4de",    DEVICE("10de", "20b2", "0302"), false }, /* A100, 80 GB */
    { "g5",      DEVICE("10de", "2237", "0302"), false }, /* A10G */
    { "g6",      DEVICE("10de", "27b8", "0302"), false }, /* L4 */
    { "g6e",     DEVICE("10de", "26b9", "0302"), false }, /* L40S */
    { "p5",      DEVICE("10de", "2330", "0302"), false }, /* H100 */
    { "p5e",     DEVICE("10de", "2335", "0302"), false }, /* H200 */
    { "p5en",    DEVICE("10de", "2335", "0302"), false },
    { "p6-b200", DEVICE("10de", "2901", "0302"), false }, /* B200 */
    { "g4ad",    DEVICE("1002", "7362", "0380"), false }, /* Radeon Pro V520 */
    { "inf1",    DEVICE("1d0f", "7064", "0880"), false }, /* Neuron, to trn3 */
    { "trn1",    DEVICE("1d0f", "7164", "0880"), false },
    { "inf2",    DEVICE("1d0f", "7264", "0880"), false },
    { "trn2",    DEVICE("1d0f", "7364", "0880"), false },
    /* 7564 or 7565 */
    { "trn3",    { (const struct str_pair[]){ PAIR("class", "0880"), PAIR("vendor", "1d0f") }, 2 },
                 false },
    { "dl1",     DEVICE("1da3", "1000", "1200"), false }, /* Gaudi */
};

/* Of a GPU in a family that is not listed the label tells the vendor. */
static const struct {
    const char *manufacturer;
    struct str_map device;
} gpu_vendors[] = {
    { "nvidia", { (const struct str_pair[]){ PAIR("vendor", "10de") }, 1 } },
    { "amd",    { (const struct str_pair[]){ PAIR("vendor", "1002") }, 1 } },
    { "habana", { (const struct str_pair[]){ PAIR("vendor", "1da3") }, 1 } },
};

/* clang-format on */

const struct str table_feature_names[TABLE_FEATURE_COUNT] = {
    [TABLE_CPUID] = { "cpu.cpuid", 9 },
    [TABLE_MODEL] = { "cpu.model", 9 },
    [TABLE_TOPOLOGY] = { "cpu.topology", 12 },
    [TABLE_PCI] = { "pci.device", 10 },
};

/* --- from a name to its rows --- */

struct str instance_family(struct str instance_type)
{
    struct str family, size;
    return str_cut(instance_type, '.', &family, &size) ? family : STR("");
}

/* The hypervisor of a whole machine is none. */
static bool is_metal(struct str instance_type)
{
    struct str family, size;
    return str_cut(instance_type, '.', &family, &size) && str_starts(size, STR("metal"));
}

struct family_parts {
    struct str letters;
    int64_t generation;
    struct str rest; /* the maker's letter, options */
    bool flex;
};

static bool family_split(struct str family, struct family_parts *out)
{
    static const struct str flex = { "-flex", 5 };
    size_t len = 0;
    *out = (struct family_parts){ .flex = str_ends(family, flex) };
    if (out->flex)
        family.len -= flex.len;
    while (len < family.len && char_is_alpha(family.p[len]))
        len++;
    out->letters = str_sub(family, 0, len);
    out->rest = str_sub(family, len, family.len - len);
    return str_to_i64(str_take_digits(&out->rest), &out->generation);
}

static bool has_word(const char *words, struct str word)
{
    struct str head, tail = str_of(words);
    for (bool more = true; more;) {
        more = str_cut(tail, ' ', &head, &tail);
        if (str_eq(head, word))
            return true;
    }
    return false;
}

static bool options_fit(const char *allowed, struct str options)
{
    if (allowed[0] == '=')
        return str_eqz(options, allowed + 1);
    for (size_t i = 0; i < options.len; i++) {
        if (!strchr(allowed, options.p[i]) || str_find(options, options.p[i]) != (ptrdiff_t)i)
            return false;
    }
    return true;
}

static const struct family_pattern *find_pattern(struct str family)
{
    struct family_parts parts;
    if (!family_split(family, &parts))
        return NULL;
    for (size_t i = 0; i < KV_COUNT_OF(patterns); i++) {
        const struct family_pattern *p = &patterns[i];
        struct str options = parts.rest;
        if (p->generation != parts.generation || (parts.flex && !p->flex) ||
            !has_word(p->letters, parts.letters))
            continue;
        if (p->maker) {
            if (options.len == 0 || options.p[0] != p->maker)
                continue;
            options = str_sub(options, 1, options.len - 1);
        }
        if (options_fit(p->options, options))
            return p;
    }
    return NULL;
}

static const struct accelerator_row *find_accelerator(struct str family)
{
    for (size_t i = 0; i < KV_COUNT_OF(accelerators); i++) {
        if (str_eqz(family, accelerators[i].family))
            return &accelerators[i];
    }
    return NULL;
}

/* A name may be reused by another cloud: what the labels say must not contradict the row. */
static bool row_fits(const struct cpu_row *row, const struct machine_kind *machine)
{
    static const char *const makers[] = { [INTEL] = "intel", [AMD] = "amd", [ARM] = NULL };
    struct str maker = machine->cpu_manufacturer;
    if (machine->architecture.len &&
        !str_eqz(machine->architecture, row->vendor == ARM ? "arm64" : "amd64"))
        return false;
    if (maker.len == 0)
        return true;
    return makers[row->vendor] ? str_eqz(maker, makers[row->vendor])
                               : !str_eqz(maker, "intel") && !str_eqz(maker, "amd");
}

/* Everything that the name of a machine's type tells. */
struct table_rows {
    const struct family_pattern *maybe_pattern;
    const struct cpu_row *maybe_cpu;
    const struct accelerator_row *maybe_accelerator;
    bool metal;
};

static struct table_rows find_rows(const struct machine_kind *machine)
{
    struct str family = instance_family(machine->instance_type);
    struct table_rows rows = { .metal = is_metal(machine->instance_type),
                               .maybe_accelerator = find_accelerator(family),
                               .maybe_pattern = find_pattern(family) };
    if (rows.maybe_pattern && row_fits(&cpus[rows.maybe_pattern->cpu], machine))
        rows.maybe_cpu = &cpus[rows.maybe_pattern->cpu];
    else
        rows.maybe_pattern = NULL;
    return rows;
}

/* --- features --- */

/* The user says that the element is there. */
static bool is_declared(const struct machine_kind *machine, struct str feature, struct str element)
{
    if (!machine->maybe_declared)
        return false;
    const struct feature_flags *flags = features_flags(machine->maybe_declared, feature);
    const struct str_map *attributes = features_attributes(machine->maybe_declared, feature);
    for (uint32_t i = 0; flags && i < flags->elements.count; i++) {
        if (str_eq(flags->elements.items[i].key, element))
            return true;
    }
    return attributes && str_map_get(attributes, element).p;
}

static void unsure_unless_declared(const struct machine_kind *machine, struct str feature,
                                   struct str element, struct feature_draft *draft)
{
    if (!is_declared(machine, feature, element))
        feature_draft_unsure(draft, feature, element);
}

/* No processor has flags of another architecture; no name is in both tables. */
static void draft_not_of(bool arm, struct feature_draft *draft)
{
    const struct str *names = arm ? x86_names : arm_names;
    size_t count = arm ? KV_COUNT_OF(x86_names) : KV_COUNT_OF(arm_names);
    for (size_t i = 0; i < count; i++)
        feature_draft_absent(draft, table_feature_names[TABLE_CPUID], names[i]);
}

/* What every processor of the architecture has, and none. */
static bool draft_architecture(struct str architecture, struct feature_draft *draft)
{
    static const char *const amd64[] = { "CMOV", "MMX", "SSE", "SSE2", "X86_64_V1", NULL };
    static const char *const arm64[] = { "ASIMD", "FP", NULL };
    static const char *const none[] = { NULL };
    const char *const *flags = str_eqz(architecture, "amd64")   ? amd64
                               : str_eqz(architecture, "arm64") ? arm64
                                                                : none;
    bool some = flags[0] != NULL;
    if (some)
        draft_not_of(flags == arm64, draft);
    for (; *flags; flags++)
        feature_draft_flag(draft, table_feature_names[TABLE_CPUID], str_of(*flags));
    return some;
}

static bool draft_cpuid(const struct table_rows *rows, const struct machine_kind *machine,
                        struct feature_draft *draft)
{
    const struct cpu_row *cpu = rows->maybe_cpu;
    struct str feature = table_feature_names[TABLE_CPUID];
    if (!cpu)
        return draft_architecture(machine->architecture, draft);
    bool arm = cpu->vendor == ARM;
    const struct str *names = arm ? arm_names : x86_names;
    size_t count = arm ? KV_COUNT_OF(arm_names) : KV_COUNT_OF(x86_names);
    uint64_t flags = cpu->flags | (arm || rows->metal ? 0 : X(HYPERVISOR));
    for (size_t i = 0; i < count; i++) {
        if (flags >> i & 1)
            feature_draft_flag(draft, feature, names[i]);
        else if (cpu->unsure >> i & 1)
            unsure_unless_declared(machine, feature, names[i], draft);
        else
            feature_draft_absent(draft, feature, names[i]);
    }
    draft_not_of(arm, draft);
    return true;
}

static bool draft_model(const struct table_rows *rows, struct feature_draft *draft)
{
    static const char *const vendors[] = { [INTEL] = "Intel", [AMD] = "AMD", [ARM] = "ARM" };
    const struct cpu_row *cpu = rows->maybe_cpu;
    struct str feature = table_feature_names[TABLE_MODEL];
    if (!cpu)
        return false;
    const char *hypervisor = rows->metal || cpu->vendor == ARM ? "none"
                             : cpu->xen                        ? "xenhvm"
                                                               : "kvm";
    feature_draft_attribute(draft, feature, STR("vendor_id"), str_of(vendors[cpu->vendor]));
    feature_draft_attribute(draft, feature, STR("hypervisor"), str_of(hypervisor));
    if (cpu->family)
        feature_draft_attribute(draft, feature, STR("family"), str_of(cpu->family));
    if (cpu->id)
        feature_draft_attribute(draft, feature, STR("id"), str_of(cpu->id));
    return true;
}

static bool draft_topology(const struct table_rows *rows, const struct machine_kind *machine,
                           struct feature_draft *draft)
{
    if (!rows->maybe_cpu || rows->maybe_cpu->threads == 0)
        return false;
    bool threads = rows->maybe_cpu->threads > 1 && machine->cpu != 1;
    feature_draft_attribute(draft, table_feature_names[TABLE_TOPOLOGY],
                            STR("hardware_multithreading"), threads ? STR("true") : STR("false"));
    return true;
}

static bool draft_pci(const struct table_rows *rows, const struct machine_kind *machine,
                      struct feature_draft *draft)
{
    struct str feature = table_feature_names[TABLE_PCI];
    const struct family_pattern *pattern = rows->maybe_pattern;
    const struct accelerator_row *accelerator = rows->maybe_accelerator;
    size_t before = draft->facts.count;
    if (accelerator)
        feature_draft_instance(draft, feature, &accelerator->device);
    for (size_t i = 0; !accelerator && i < KV_COUNT_OF(gpu_vendors); i++) {
        if (str_eqz(machine->gpu_manufacturer, gpu_vendors[i].manufacturer))
            feature_draft_instance(draft, feature, &gpu_vendors[i].device);
    }
    if (rows->maybe_cpu ? !rows->maybe_cpu->xen : accelerator && !accelerator->xen) {
        feature_draft_instance(draft, feature, &nitro_network);
        feature_draft_instance(draft, feature, &nitro_volume);
    }
    if (pattern) {
        struct family_parts parts;
        family_split(instance_family(machine->instance_type), &parts);
        if (pattern->disks || str_find(parts.rest, 'd') >= 0)
            feature_draft_instance(draft, feature, &nitro_disk);
    }
    if (rows->maybe_cpu && rows->maybe_cpu->vendor != ARM && !rows->maybe_cpu->xen &&
        !rows->metal) {
        feature_draft_instance(draft, feature, &nitro_chipset[0]);
        feature_draft_instance(draft, feature, &nitro_chipset[1]);
    }
    return draft->facts.count > before;
}

static bool draft_rows(const struct table_rows *rows, const struct machine_kind *machine,
                       enum table_feature feature, struct feature_draft *draft)
{
    switch (feature) {
    case TABLE_CPUID:
        return draft_cpuid(rows, machine, draft);
    case TABLE_MODEL:
        return draft_model(rows, draft);
    case TABLE_TOPOLOGY:
        return draft_topology(rows, machine, draft);
    case TABLE_PCI:
        return draft_pci(rows, machine, draft);
    case TABLE_FEATURE_COUNT:
        break;
    }
    KV_UNREACHABLE();
}

bool predict_table_draft(const struct machine_kind *machine, enum table_feature feature,
                         struct feature_draft *draft)
{
    struct str name = table_feature_names[feature];
    if (!feature_draft_keeps(draft, name) || (machine->os.len && !str_eqz(machine->os, "linux")))
        return false;
    struct table_rows rows = find_rows(machine);
    if (!draft_rows(&rows, machine, feature, draft))
        return false;
    feature_draft_completeness(draft, name, FEATURE_PARTIAL);
    return true;
}
