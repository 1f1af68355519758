#include "bench/compat_outside.h"

#include "bench/compat_world.h"
#include "kube/fixture.h"
#include "registry/registry_fixture.h"
#include "support/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct times {
    double *us;
    uint32_t count;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(struct times *t, double q)
{
    qsort(t->us, t->count, sizeof *t->us, by_value);
    return t->us[(uint32_t)(q * (t->count - 1))];
}

static double cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double wall_us(void)
{
    return (double)clock_mono_ns(clock_real()) / 1e3;
}

/* --- groups on an API server --- */

static void create_group(const struct store *store, const char *name, uint32_t number)
{
    AUTO_BUF text = { 0 }, body = { 0 };
    struct err err = { 0 };
    const struct compat_spec *spec = NULL;
    image_spec_text(number, &text);
    EXPECT_OK(
        compat_spec_read("spec", buf_str(&text), (struct compat_spec_options){ 0 }, &spec, &err),
        err);
    buf_addf(&body, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"featureGroupRules\":%.*s}}", name,
             STR_ARG(spec->sets[0].rules_json));
    EXPECT_OK(
        store_create(store, &node_feature_group_kind, STR("default"), buf_str(&body), NULL, &err),
        err);
    compat_spec_unref(spec);
}

void outside_gets(uint32_t lookups)
{
    static const char *const options[] = { "--no-controller-manager", "--no-scheduler", NULL };
    static const char *const names[] = { "image-compat-one", "image-compat-two" };
    struct plane *p = plane_with(options);
    plane_must(p, "kubectl apply -f tests/kube/nfd-crds.yaml && kubectl wait "
                  "--for=condition=Established --timeout=60s -f tests/kube/nfd-crds.yaml");
    AUTO_PLANE_ACCESS access =
        plane_open(p, plane_path(p, "admin.kubeconfig"), (struct kube_options){ 0 });
    for (uint32_t i = 0; i < KV_COUNT_OF(names); i++)
        create_group(access.store, names[i], i);

    struct times times = { kv_calloc(lookups, sizeof(double)), 0 };
    double cpu = cpu_us();
    for (uint32_t i = 0; i < lookups; i++) {
        double start = wall_us();
        for (uint32_t k = 0; k < KV_COUNT_OF(names); k++) {
            struct err err = { 0 };
            AUTO_OBJECT object = NULL;
            struct object_ref ref = { &node_feature_group_kind, STR("default"), str_of(names[k]) };
            EXPECT_OK(store_get(access.store, ref, &object, &err), err);
        }
        times.us[times.count++] = wall_us() - start;
    }
    cpu = (cpu_us() - cpu) / lookups;
    double p50 = quantile(&times, 0.5);
    printf("gets us=%.1f p99_us=%.1f cpu_us=%.1f\n", p50, quantile(&times, 0.99), cpu);
    free(times.us);
}

/* --- images on a registry --- */

static uint64_t ask(struct registry_fixture *f, struct registry *r, const char *name,
                    const struct image_facts *maybe_known, const struct image_facts **out)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, name);
    EXPECT_OK(
        image_ask(&(struct image_ask){ .registry = r, .ref = &ref, .maybe_known = maybe_known },
                  out, &err),
        err);
    EXPECT_EQ((*out)->spec.maybe_spec->set_count, 2);
    return kv_hash((*out)->digest.p, (*out)->digest.len);
}

static void push(struct registry_fixture *f, struct registry *r, uint32_t number)
{
    char tag[16], digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    AUTO_BUF spec = { 0 };
    snprintf(tag, sizeof tag, "%u", number);
    AUTO_BUF repository = { 0 };
    buf_addf(&repository, "bench/app-%u", number);
    registry_fixture_image(f, r, repository.p, tag, "amd64", digest);
    image_spec_text(number % 20, &spec);
    registry_fixture_attach(f, r, repository.p, digest, spec.p, 1000000, artifact);
}

static void report(const char *how, struct times *times, double cpu, uint64_t hash)
{
    double p50 = quantile(times, 0.5), p99 = quantile(times, 0.99);
    /* The document gives 100 to 500 ms for a miss. */
    printf("compat cold how=%s images=%u p50_us=%.0f p99_us=%.0f cpu_us=%.0f document_us=100000 "
           "ratio=%.0f peak_kb=%ld hash=%016" PRIx64 "\n",
           how, times->count, p50, p99, cpu / times->count, 100000 / p50,
           process_memory(getpid()).peak, hash);
}

void outside_cold(uint32_t images)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
    struct times first = { kv_calloc(images, sizeof(double)), 0 };
    struct times again = { kv_calloc(images, sizeof(double)), 0 };
    double first_cpu = 0, again_cpu = 0;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < images; i++) {
        AUTO_IMAGE_FACTS facts = NULL;
        AUTO_IMAGE_FACTS same = NULL;
        AUTO_BUF name = { 0 };
        AUTO(registry) pusher = registry_fixture_client(f);
        AUTO(registry) fresh = registry_fixture_client(f); /* no connection, nothing learned */
        push(f, pusher, i);
        buf_addf(&name, "bench/app-%u:%u", i, i);
        double start = wall_us(), cpu = cpu_us();
        hash ^= ask(f, fresh, name.p, NULL, &facts);
        first.us[first.count++] = wall_us() - start;
        first_cpu += cpu_us() - cpu;
        start = wall_us(), cpu = cpu_us();
        ask(f, fresh, name.p, facts, &same);
        again.us[again.count++] = wall_us() - start;
        again_cpu += cpu_us() - cpu;
        EXPECT_TRUE(facts == same);
    }
    report("first", &first, first_cpu, hash);
    report("again", &again, again_cpu, hash);
    free(first.us);
    free(again.us);
}
