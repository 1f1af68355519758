#include "bench/compat_world.h"

#include "api/node.h"
#include "api/nodeclaim.h"
#include "codec/json.h"
#include "net/digest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bench_must(bool holds, const char *format, ...)
{
    va_list args;
    if (holds)
        return;
    fputs("compat: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* --- images --- */

/* Some that nodes have and some that none has. */
static const char *const flags[] = { "AVX2", "AVX512F", "AMXTILE", "SHA", "GFNI", "VAES" };

void image_spec_text(uint32_t number, struct buf *out)
{
    buf_addf(out,
             "{version: v1alpha1, compatibilities: [{tag: fast, weight: 80, rules: [{name: vector, "
             "matchFeatures: [{feature: cpu.cpuid, matchExpressions: {%s: {op: Exists}}}]}]}, "
             "{tag: base, weight: 10, rules: [{name: kernel, matchFeatures: [{feature: "
             "kernel.version, matchExpressions: {major: {op: Ge, value: ['%u']}}}]}]}]}",
             flags[number % KV_COUNT_OF(flags)], number / (uint32_t)KV_COUNT_OF(flags));
}

void image_world_init(struct image_world *world, uint32_t spec_count)
{
    *world = (struct image_world){ .pool = compat_specs_new(), .spec_count = spec_count };
    world->specs = kv_calloc(spec_count, sizeof *world->specs);
    for (uint32_t i = 0; i < spec_count; i++) {
        AUTO_BUF text = { 0 }, identity = { 0 };
        struct err err = { 0 };
        image_spec_text(i, &text);
        buf_addf(&identity, "spec-%u", i);
        struct compat_spec_options options = { .maybe_pool = world->pool,
                                               .identity = buf_str(&identity) };
        bench_must(compat_spec_read("spec", buf_str(&text), options, &world->specs[i], &err) == 0,
                   "%s", err.text);
    }
}

void image_world_done(struct image_world *world)
{
    for (uint32_t i = 0; i < world->spec_count; i++)
        compat_spec_unref(world->specs[i]);
    free(world->specs);
    compat_specs_unref(world->pool);
}

struct str image_name(char out[IMAGE_TEXT_MAX], uint32_t number)
{
    int len = snprintf(out, IMAGE_TEXT_MAX, "registry.example/team-%u/app:%u", number % 50, number);
    return (struct str){ out, (size_t)len };
}

const struct image_facts *image_world_facts(const struct image_world *world, uint32_t number)
{
    static const struct platform both[] = { { STR("linux"), STR("amd64"), STR("") },
                                            { STR("linux"), STR("arm64"), STR("v8") } };
    char name[IMAGE_TEXT_MAX], digest[DIGEST_TEXT_MAX];
    struct err err = { 0 };
    bench_must(digest_text(DIGEST_SHA256, image_name(name, number), digest, &err) == 0, "%s",
               err.text);
    return image_facts_make(str_of(digest), both, 2, world->specs[number % world->spec_count]);
}

static int ask(void *ctx, const struct reference *ref, const struct keyring *maybe_keys KV_UNUSED,
               const struct image_facts *maybe_known, const struct image_facts **out,
               struct err *err)
{
    int64_t number;
    if (maybe_known) {
        *out = image_facts_ref(maybe_known);
        return 0;
    }
    if (!str_to_i64(ref->tag, &number))
        return err_set(err, ERR_NOT_FOUND, "no such image");
    *out = image_world_facts(ctx, (uint32_t)number);
    return 0;
}

struct image_source image_world_source(struct image_world *world)
{
    return (struct image_source){ .ask = ask, .ctx = world };
}

/* --- nodes --- */

/* What differs from kind to kind: the newest have all flags. */
static void add_kind(struct buf *out, uint32_t kind, uint32_t option_count)
{
    static const char *const common[] = { "ADX",  "AESNI", "BMI1", "BMI2", "CLMUL", "CMOV",
                                          "CX16", "F16C",  "FMA3", "FXSR", "LZCNT", "MMX",
                                          "SSE",  "SSE2",  "SSE3", "SSE4", "SSE42", "SSSE3" };
    buf_addz(out, "\"flags\":{\"cpu.cpuid\":{\"elements\":{");
    for (size_t i = 0; i < KV_COUNT_OF(common); i++)
        buf_addf(out, "%s\"%s\":{}", i ? "," : "", common[i]);
    for (uint32_t i = 0; i < KV_COUNT_OF(flags) && i <= kind % 7; i++)
        buf_addf(out, ",\"%s\":{}", flags[i]);
    buf_addz(out, "}},\"kernel.loadedmodule\":{\"elements\":{");
    for (uint32_t i = 0; i < 80; i++)
        buf_addf(out, "%s\"module_%u\":{}", i ? "," : "", i + kind);
    buf_addf(out,
             "}}},\"attributes\":{\"kernel.version\":{\"elements\":{\"full\":\"6.%u.9-amzn\","
             "\"major\":\"6\",\"minor\":\"%u\",\"revision\":\"9\"}},\"cpu.model\":{\"elements\":{"
             "\"family\":\"6\",\"id\":\"%u\",\"vendor_id\":\"Intel\"}},\"system.osrelease\":{"
             "\"elements\":{\"ID\":\"amzn\",\"VERSION_ID\":\"2023\"}},\"kernel.config\":{"
             "\"elements\":{",
             kind, kind, 100 + kind);
    for (uint32_t i = 0; i < option_count; i++)
        buf_addf(out, "%s\"DRIVER_OPTION_%u_OF_MANY\":\"%s\"", i ? "," : "", i,
                 (i + kind) % 3 ? "y" : "m");
    buf_addz(out, "}}");
}

void node_world_init(struct node_world *world, struct object_pool *pool, uint32_t option_count)
{
    *world = (struct node_world){ .pool = pool, .option_count = option_count };
    for (uint32_t i = 0; i < NODE_KINDS; i++)
        add_kind(&world->kinds[i], i, option_count);
}

void node_world_done(struct node_world *world)
{
    for (uint32_t i = 0; i < NODE_KINDS; i++)
        buf_done(&world->kinds[i]);
}

struct str node_name(char out[IMAGE_TEXT_MAX], uint32_t number)
{
    int len = snprintf(out, IMAGE_TEXT_MAX, "ip-10-%u-%u-%u.ec2.internal", number >> 16,
                       number >> 8 & 255, number & 255);
    return (struct str){ out, (size_t)len };
}

static const struct object *decode(struct node_world *world, const struct kind *kind,
                                   struct str json)
{
    struct doc doc;
    struct err err = { 0 };
    const struct object *object = NULL;
    bench_must(json_read(json, &doc, &err) == 0, "%s", err.text);
    bench_must(object_decode(world->pool, kind, doc.root, &object, &err) == 0, "%s", err.text);
    doc_done(&doc);
    return object;
}

const struct object *node_world_node(struct node_world *world, uint32_t number)
{
    AUTO_BUF json = { 0 };
    char name[IMAGE_TEXT_MAX];
    node_name(name, number);
    buf_addf(
        &json,
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/arch\":\"amd64\","
        "\"kubernetes.io/os\":\"linux\",\"node.kubernetes.io/instance-type\":\"m%ui.large\"}}}",
        name, number % NODE_KINDS);
    return decode(world, &node_kind, buf_str(&json));
}

const struct object *node_world_claim(struct node_world *world, uint32_t number)
{
    AUTO_BUF json = { 0 };
    char name[IMAGE_TEXT_MAX];
    node_name(name, number);
    buf_addf(&json,
             "{\"metadata\":{\"name\":\"claim-%u\"},\"status\":{\"nodeName\":\"%s\",\"imageID\":"
             "\"ami-%u\"}}",
             number, name, number % NODE_KINDS / 4);
    return decode(world, &nodeclaim_kind, buf_str(&json));
}

const struct object *node_world_feature(struct node_world *world, uint32_t number)
{
    AUTO_BUF json = { 0 };
    char name[IMAGE_TEXT_MAX];
    node_name(name, number);
    buf_addf(&json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"node-feature-discovery\",\"labels\":{"
             "\"nfd.node.kubernetes.io/node-name\":\"%s\"}},\"spec\":{\"features\":{",
             name, name);
    buf_add(&json, buf_str(&world->kinds[number % NODE_KINDS]));
    buf_addf(
        &json,
        ",\"system.name\":{\"elements\":{\"nodename\":\"%s\"}},\"system.dmiid\":{\"elements\":{"
        "\"product_serial\":\"ec2-%u\",\"sys_vendor\":\"Amazon EC2\"}}},\"instances\":{"
        "\"pci.device\":{\"elements\":[{\"attributes\":{\"class\":\"0200\",\"vendor\":\"1d0f\","
        "\"device\":\"ec20\"}}]},\"network.virtual\":{\"elements\":[{\"attributes\":{\"name\":"
        "\"eni%u\"}},{\"attributes\":{\"name\":\"lo\"}}]}}}}}",
        name, number, number);
    return decode(world, &node_feature_kind, buf_str(&json));
}
