/* What a node boots with: how many user data texts are rendered in a second, family by family, and
 * what one costs in memory; what allocatable costs per machine; and that the time for hostile TOML
 * grows with its length and no faster.
 *
 * A rendering is what a launch asks for: the user's text, a kubelet configuration, twenty labels,
 * four taints. The arena is reset between renderings, as a controller would do it; `bytes` is what
 * one rendering takes from it. The hostile texts are far beyond what EC2 takes, and are refused for
 * that at the very end: all of the reading, merging and writing has been done by then.
 */
#include "bootstrap/allocatable.h"
#include "bootstrap/boot.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define LABELS 20
#define TAINTS 4
#define ROUNDS 5

static struct str_pair labels[LABELS];
static struct taint taints[TAINTS];

static void make_node(struct arena *arena)
{
    for (size_t i = 0; i < LABELS; i++) {
        labels[i].key = arena_strf(arena, "example.com/label-%02zu", i);
        labels[i].value = arena_strf(arena, "value-%zu", i * 7919);
    }
    for (size_t i = 0; i < TAINTS; i++)
        taints[i] = (struct taint){ .key = arena_strf(arena, "example.com/taint-%zu", i),
                                    .value = STR("yes"),
                                    .effect = EFFECT_NO_SCHEDULE };
}

static const struct boot_cluster cluster = {
    .name = { "orchard", 7 },
    .endpoint = { "https://A1B2.gr7.eu-west-1.eks.amazonaws.com", 44 },
    .ca = { "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", 36 },
    .service_cidr = { "172.20.0.0/16", 13 },
    .dns = { "172.20.0.10", 11 },
};

static const struct {
    enum ami_family family;
    const char *user_data, *kubelet;
} cases[] = {
#define KUBELET                                                                                    \
    "{\"evictionHard\":{\"memory.available\":\"5%\"},\"kubeReserved\":{\"cpu\":\"100m\"},"         \
    "\"maxPods\":58}"
    { AMI_FAMILY_AL2, "#!/bin/bash\nsysctl -w vm.max_map_count=262144\n", KUBELET },
    { AMI_FAMILY_AL2023, "#!/bin/bash\nsysctl -w vm.max_map_count=262144\n", KUBELET },
    { AMI_FAMILY_BOTTLEROCKET,
      "[settings.kubernetes]\nmax-pods = 5\nshiny-new-key = 1\n"
      "[settings.kubernetes.node-labels]\n\"karpenter.sh/nodepool\" = \"mine\"\nshelf = \"top\"\n"
      "[settings.ntp]\ntime-servers = [\"169.254.169.123\"]\n",
      KUBELET },
    { AMI_FAMILY_WINDOWS2022, "Write-Host \"install agent\"\n", KUBELET },
    { AMI_FAMILY_CUSTOM, "#!/bin/sh\nexec /opt/start\n", KUBELET },
};

static struct boot boot_of(enum ami_family family, struct str user_data,
                           const struct kubelet_config *kubelet)
{
    return (struct boot){
        .cluster = &cluster,
        .family = family,
        .user_data = user_data,
        .kubelet = kubelet,
        .labels = { labels, LABELS },
        .taints = { taints, TAINTS },
        .max_pods = { 29, true },
    };
}

/* Of this program alone: a large text takes longer than a turn on a busy machine, a small one does
 * not, and that must not look like growth. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "userdata: %s: %s\n", what, err->text);
    exit(1);
}

/* --- renderings --- */

static void bench_family(size_t which, size_t count)
{
    AUTO_ARENA lasting = { 0 }, arena = { 0 };
    struct kubelet_config kubelet;
    struct boot_text text = { 0 };
    struct err err = { 0 };
    enum ami_family family = cases[which].family;
    const char *name = family_of(family)->name;
    int64_t best = INT64_MAX;
    size_t bytes = 0;

    if (kubelet_config_read(&lasting, str_of(cases[which].kubelet), family, &kubelet, &err) < 0)
        die(name, &err);
    struct boot boot = boot_of(family, str_of(cases[which].user_data), &kubelet);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = cpu_ns();
        for (size_t i = 0; i < count; i++) {
            arena_reset(&arena);
            if (boot_render(&arena, &boot, &text, &err) < 0)
                die(name, &err);
            bytes = arena.used_bytes;
        }
        int64_t took = cpu_ns() - start;
        best = took < best ? took : best;
    }
    printf("userdata render family=%s per_s=%.0f us=%.2f bytes=%zu text=%zu peak_kb=%ld "
           "hash=%016" PRIx64 "\n",
           name, (double)count / ((double)best / 1e9), (double)best / (double)count / 1e3, bytes,
           text.text.len, peak_kb(), kv_hash(text.text.p, text.text.len));
    fflush(stdout);
}

/* --- allocatable --- */

static void bench_allocatable(size_t count)
{
    AUTO_ARENA lasting = { 0 }, arena = { 0 };
    struct kubelet_config kubelet;
    struct allocatable_options options = ALLOCATABLE_DEFAULTS;
    struct allocatable_rules rules;
    struct node_resources r;
    struct err err = { 0 };
    int64_t best = INT64_MAX, sum = 0;

    if (kubelet_config_read(&lasting, str_of(cases[1].kubelet), AMI_FAMILY_AL2023, &kubelet, &err) <
        0)
        die("allocatable", &err);
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023, .maybe_kubelet = &kubelet };
    if (allocatable_prepare(&class_, &options, &rules, &err) < 0)
        die("allocatable", &err);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = cpu_ns();
        for (size_t i = 0; i < count; i++) {
            uint32_t vcpus = 1u << (i % 8);
            struct machine m = { .vcpus = vcpus,
                                 .memory_mib = 4096ull * vcpus,
                                 .enis = 3 + vcpus / 8,
                                 .ipv4_per_eni = 10,
                                 .hypervisor = STR("nitro") };
            if (i % 1000 == 0)
                arena_reset(&arena);
            allocatable_of(&arena, &rules, &m, &r);
            sum += quantity_units(resources_get(&r.allocatable, STR("memory"))) >> 20;
        }
        int64_t took = cpu_ns() - start;
        best = took < best ? took : best;
    }
    printf("userdata allocatable machines=%zu ns=%.0f peak_kb=%ld hash=%016" PRIx64 "\n", count,
           (double)best / (double)count, peak_kb(), kv_mix64((uint64_t)sum));
    fflush(stdout);
}

/* --- hostile TOML --- */

static void many_keys(struct buf *b, size_t i)
{
    buf_addf(b, "key-%zu = %zu\n", i, i);
}

static void many_tables(struct buf *b, size_t i)
{
    buf_addf(b, "[settings.kubernetes.t%zu]\na = 1\n", i);
}

static void many_labels(struct buf *b, size_t i)
{
    if (i == 0)
        buf_addz(b, "[settings.kubernetes.node-labels]\n");
    buf_addf(b, "'karpenter.sh/l%zu' = 'x'\n", i);
}

static void dotted_keys(struct buf *b, size_t i)
{
    buf_addf(b, "a.b.c.d.e.f.k%zu = 0\n", i);
}

static void array_tables(struct buf *b, size_t i)
{
    buf_addf(b, "[[list]]\nn = %zu\n[list.sub]\nx = 1\n", i);
}

static void long_array(struct buf *b, size_t i)
{
    buf_addz(b, i == 0 ? "a = [\n" : "[[],{a.b=1}],\n");
}

static void comments(struct buf *b, size_t i)
{
    buf_addf(b, "# %zu\n\n", i);
}

static void unicode_escapes(struct buf *b, size_t i)
{
    buf_addz(b, i == 0 ? "s = \"" : "\\u00e9\\U0001f600");
}

static const struct {
    const char *name;
    void (*add)(struct buf *b, size_t i);
    const char *end;
} shapes[] = {
    { "keys", many_keys, "" },     { "tables", many_tables, "" },
    { "labels", many_labels, "" }, { "dotted", dotted_keys, "" },
    { "list", array_tables, "" },  { "array", long_array, "]\n" },
    { "comments", comments, "" },  { "escapes", unicode_escapes, "\"\n" },
};

static void make_hostile(size_t shape, size_t bytes, struct buf *text)
{
    for (size_t i = 0; text->len < bytes; i++)
        shapes[shape].add(text, i);
    buf_addz(text, shapes[shape].end);
}

static int64_t hostile_ns(size_t shape, struct str text)
{
    AUTO_ARENA arena = { 0 };
    struct boot boot = boot_of(AMI_FAMILY_BOTTLEROCKET, text, NULL);
    struct boot_text out;
    struct err err = { 0 };
    int64_t start = cpu_ns();
    if (boot_render(&arena, &boot, &out, &err) < 0 && !strstr(err.text, "EC2 takes at most"))
        die(shapes[shape].name, &err);
    return cpu_ns() - start;
}

/* `growth` is the time per byte of the large text by that of one an eighth its size: 1 is linear.
 * The two are timed in turn, and of each the best counts. */
static void bench_hostile(size_t shape, size_t bytes)
{
    AUTO_BUF small = { 0 }, large = { 0 };
    int64_t small_ns = INT64_MAX, large_ns = INT64_MAX;
    make_hostile(shape, bytes / 8, &small);
    make_hostile(shape, bytes, &large);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 8; i++) {
            int64_t took = hostile_ns(shape, buf_str(&small));
            small_ns = took < small_ns ? took : small_ns;
        }
        int64_t took = hostile_ns(shape, buf_str(&large));
        large_ns = took < large_ns ? took : large_ns;
    }
    printf("userdata hostile shape=%s kb=%zu ms=%.1f mb_per_s=%.0f growth=%.2f peak_kb=%ld\n",
           shapes[shape].name, bytes >> 10, (double)large_ns / 1e6,
           (double)bytes / ((double)large_ns / 1e9) / 1e6,
           (double)large_ns / (8 * (double)small_ns), peak_kb());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    AUTO_ARENA arena = { 0 };
    make_node(&arena);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        bench_family(i, small ? 100 : 20000);
    bench_allocatable(small ? 1000 : 1000000);
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++)
        bench_hostile(i, small ? (size_t)64 << 10 : (size_t)1 << 20);
    return 0;
}
