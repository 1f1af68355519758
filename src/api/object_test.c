/* Objects: one block each, shared parts kept once, counted across threads. */
#include "api/kinds.h"
#include "api/pod.h"
#include "codec/json.h"
#include "support/test.h"

#include <pthread.h>

static const struct object *decode(struct object_pool *pool, const char *text)
{
    struct doc doc;
    struct err err;
    const struct object *object = NULL;
    EXPECT_OK(json_read(str_of(text), &doc, &err), err);
    EXPECT_OK(object_decode(pool, &pod_kind, doc.root, &object, &err), err);
    doc_done(&doc);
    return object;
}

static const struct object *decode_pod(struct object_pool *pool, const char *name,
                                       const char *image)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
             "\"generateName\":\"web-\",\"namespace\":\"shop\",\"labels\":{\"app\":\"web\"},"
             "\"annotations\":{\"note\":\"%s\"}},"
             "\"spec\":{\"nodeName\":\"node-%s\",\"volumes\":[{\"name\":\"kube-api-access-%s\","
             "\"projected\":{}}],\"containers\":[{\"name\":\"main\",\"image\":\"%s\","
             "\"volumeMounts\":[{\"name\":\"kube-api-access-%s\",\"mountPath\":\"/x\"}]}]}}",
             name, name, name, name, image, name);
    return decode(pool, text.p);
}

TEST(an_object_outlives_the_text_it_came_from)
{
    AUTO(object_pool) pool = object_pool_new();
    AUTO_OBJECT object = decode_pod(pool, "web-1", "nginx:1");
    EXPECT_STR(object->meta.name, "web-1");
    EXPECT_STR(object->meta.namespace_, "shop");
    EXPECT_STR(object->meta.generate_name, "web-");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("app")), "web");
    EXPECT_STR(pod_of(object)->spec->containers.items[0].image, "nginx:1");
    EXPECT_TRUE(object->kind == &pod_kind);
}

TEST(what_pods_have_in_common_is_kept_once)
{
    AUTO(object_pool) pool = object_pool_new();
    AUTO_OBJECT a = decode_pod(pool, "web-1", "nginx:1");
    AUTO_OBJECT b = decode_pod(pool, "web-2", "nginx:1");
    AUTO_OBJECT c = decode_pod(pool, "web-3", "nginx:2");
    EXPECT_TRUE(pod_of(a)->spec == pod_of(b)->spec); /* despite node and token volume */
    EXPECT_TRUE(pod_of(a)->spec != pod_of(c)->spec);
    EXPECT_TRUE(a->meta.labels.items == c->meta.labels.items);
    EXPECT_TRUE(a->meta.annotations.items != b->meta.annotations.items);
    EXPECT_STR(pod_of(b)->node_name, "node-web-2");
    /* Two specs, one map of labels, one empty status, three of annotations. */
    EXPECT_EQ(object_pool_stats(pool).shared_count, 7);
    EXPECT_EQ(object_pool_stats(pool).hit_count, 5);
}

TEST(shared_parts_go_with_the_last_object_that_has_them)
{
    AUTO(object_pool) pool = object_pool_new();
    const struct object *a = decode_pod(pool, "web-1", "nginx:1");
    const struct object *b = decode_pod(pool, "web-2", "nginx:1");
    object_unref(a);
    EXPECT_STR(pod_of(b)->spec->containers.items[0].image, "nginx:1");
    const struct object *again = object_ref(b);
    object_unref(b);
    EXPECT_STR(again->meta.name, "web-2");
    object_unref(again);
    EXPECT_EQ(object_pool_stats(pool).shared_count, 0);
    EXPECT_EQ(object_pool_stats(pool).shared_bytes, 0);
    object_unref(NULL);
}

TEST(an_object_knows_its_size)
{
    AUTO(object_pool) pool = object_pool_new();
    AUTO_OBJECT a = decode_pod(pool, "web-1", "nginx:1");
    EXPECT_TRUE(object_bytes(a) >= sizeof(struct pod));
    EXPECT_TRUE(object_bytes(a) < 500);
}

TEST(equal_bytes_of_different_kinds_of_value_are_not_shared)
{
    /* A map of one label and a list of one owner begin alike; the types keep them apart. */
    AUTO(object_pool) pool = object_pool_new();
    AUTO_OBJECT a = decode(pool, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"},"
                                 "\"annotations\":{\"k\":\"v\"}}}");
    EXPECT_TRUE(a->meta.labels.items == a->meta.annotations.items); /* these are the same */
    EXPECT_EQ(object_pool_stats(pool).shared_count, 3);             /* with an empty spec, status */
}

TEST(decode_reports_where_the_type_is_wrong)
{
    AUTO(object_pool) pool = object_pool_new();
    struct doc doc;
    struct err err;
    const struct object *object = NULL;
    EXPECT_OK(json_read(STR("{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":1}}}"), &doc, &err),
              err);
    EXPECT_ERR(object_decode(pool, &pod_kind, doc.root, &object, &err), err, ERR_INVALID);
    EXPECT_Z(err.text, "metadata.labels[\"x\"]: expected a string, found integer 1");
    EXPECT_TRUE(object == NULL);
    doc_done(&doc);
}

/* --- metadata --- */

TEST(metadata_is_decoded_whole)
{
    AUTO(object_pool) pool = object_pool_new();
    AUTO_OBJECT o = decode(
        pool,
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u-1\",\"resourceVersion\":\"42\",\"generation\":3,"
        "\"creationTimestamp\":\"2026-01-02T15:04:05Z\",\"deletionTimestamp\":"
        "\"2026-01-02T15:05:05Z\",\"deletionGracePeriodSeconds\":0,\"finalizers\":[\"x/y\"],"
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"1\"},"
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"r\",\"uid\":\"2\","
        "\"controller\":true}],\"managedFields\":[{\"anything\":1}]}}");
    EXPECT_STR(o->meta.namespace_, "");
    EXPECT_STR(o->meta.uid, "u-1");
    EXPECT_EQ(o->meta.resource_version, 42);
    EXPECT_EQ(o->meta.generation, 3);
    EXPECT_EQ(o->meta.deleted_us - o->meta.created_us, 60000000);
    EXPECT_TRUE(o->meta.deletion_grace_s.set);
    EXPECT_STR(o->meta.finalizers.items[0], "x/y");
    EXPECT_STR(meta_controller(&o->meta)->kind, "ReplicaSet");
}

static void expect_admission(const char *text, const char *want)
{
    struct doc doc;
    struct err err;
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b;
    AUTO_BUF got = { 0 };
    struct report report = { .arena = &arena };
    EXPECT_OK(json_read(str_of(text), &doc, &err), err);
    json_build_init(&b);
    object_admit(&pod_kind, &b, doc.root, NULL, &report);
    vec_each(&report.problems, struct problem, p)
        buf_addf(&got, "%.*s: %.*s\n", STR_ARG(p->path), STR_ARG(p->what));
    EXPECT_STR(buf_str(&got), want);
    report_done(&report);
    doc_done(&doc);
}
#define SPEC "\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}"

TEST(an_object_needs_a_name_or_a_prefix_for_one)
{
    expect_admission("{\"metadata\":{\"name\":\"a\"}," SPEC "}", "");
    expect_admission("{\"metadata\":{\"generateName\":\"web-\"}," SPEC "}", "");
    expect_admission("{\"metadata\":{}," SPEC "}",
                     "metadata.name: required, missing; expected a name, or generateName\n");
    expect_admission("{" SPEC "}", "metadata: required, missing; expected an object\n");
    expect_admission("[]", ": expected an object, found array\n");
}

TEST(names_labels_and_owners_follow_the_rules_of_the_api_server)
{
    expect_admission(
        "{\"metadata\":{\"name\":\"Web\"}," SPEC "}",
        "metadata.name: \"Web\" must be lower-case letters, digits, '-' and '.', with a "
        "letter or digit at both ends of each part between dots\n");
    expect_admission("{\"metadata\":{\"name\":\"a\",\"labels\":{\"ok\":\"\",\"a/b/c\":\"x\"}}," SPEC
                     "}",
                     "metadata.labels[\"a/b/c\"]: \"a/b/c\" must have at most one '/'\n");
    expect_admission(
        "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
        "\"kind\":\"K\",\"name\":\"n\",\"uid\":\"1\",\"controller\":true},"
        "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"m\",\"uid\":\"2\",\"controller\":true}]}," SPEC
        "}",
        "metadata.ownerReferences: has several owners with controller: true, expected "
        "at most one\n");
    expect_admission("{\"metadata\":{\"name\":\"a\",\"lables\":{}}," SPEC "}",
                     "metadata.lables: unknown field, did you mean \"labels\"?\n");
}

TEST(a_message_stays_short_and_on_one_line_whatever_the_names)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "{\"metadata\":{\"name\":\"web\",\"labels\":{\"");
    for (int i = 0; i < 5000; i++)
        buf_addc(&text, 'k');
    buf_addz(&text, "\":1}},\"\\u001b\\n\":1," SPEC "}");
    struct doc doc;
    struct err err;
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b;
    struct report report = { .arena = &arena };
    EXPECT_OK(json_read(buf_str(&text), &doc, &err), err);
    json_build_init(&b);
    object_admit(&pod_kind, &b, doc.root, NULL, &report);
    EXPECT_TRUE(report.problems.count >= 2);
    vec_each(&report.problems, struct problem, p) {
        EXPECT_TRUE(p->path.len < 400);
        EXPECT_TRUE(p->what.len < 400);
        EXPECT_TRUE(str_find(p->path, '\n') < 0);
    }
    report_done(&report);
    doc_done(&doc);
}

TEST(labels_and_finalizers_of_the_wrong_type_are_found)
{
    expect_admission("{\"metadata\":{\"name\":\"web\",\"namespace\":\"\",\"labels\":[],"
                     "\"annotations\":[],\"finalizers\":{}}," SPEC "}",
                     "metadata.labels: expected an object of strings, found array\n"
                     "metadata.annotations: expected an object of strings, found array\n"
                     "metadata.finalizers: expected a list of strings, found object\n");
    expect_admission("{\"metadata\":{\"name\":false}," SPEC "}",
                     "metadata.name: expected a string, found boolean false; quote it if a string "
                     "was meant\n");
}

/* --- threads --- */

struct worker {
    struct object_pool *pool;
    const struct object *common;
    pthread_t thread;
    bool fine;
};

static void *work(void *ctx)
{
    struct worker *w = ctx;
    w->fine = true;
    for (int i = 0; i < 500; i++) {
        const struct object *a = decode_pod(w->pool, "web-1", i % 2 ? "nginx:1" : "nginx:2");
        const struct object *mine = object_ref(w->common);
        w->fine &= (pod_of(a)->spec == pod_of(mine)->spec) == (i % 2 == 1);
        w->fine &= str_eq(pod_of(a)->spec->containers.items[0].name, STR("main"));
        object_unref(mine);
        object_unref(a);
    }
    return NULL;
}

TEST(threads_share_a_pool)
{
    AUTO(object_pool) pool = object_pool_new();
    const struct object *common = decode_pod(pool, "web-0", "nginx:1");
    struct worker workers[4];
    for (size_t i = 0; i < KV_COUNT_OF(workers); i++) {
        workers[i] = (struct worker){ .pool = pool, .common = common };
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (size_t i = 0; i < KV_COUNT_OF(workers); i++) {
        pthread_join(workers[i].thread, NULL);
        EXPECT_TRUE(workers[i].fine);
    }
    object_unref(common);
    EXPECT_EQ(object_pool_stats(pool).shared_count, 0);
}

/* --- the registry --- */

TEST(every_kind_is_found_by_version_and_by_plural)
{
    for (uint32_t i = 0; i < kind_count; i++) {
        AUTO_BUF version = { 0 };
        kind_api_version(kinds[i], &version);
        EXPECT_TRUE(kind_find(buf_str(&version), str_of(kinds[i]->name)) == kinds[i]);
        EXPECT_TRUE(kind_find_plural(str_of(kinds[i]->plural)) == kinds[i]);
        EXPECT_TRUE(kind_find_plural(str_of(kinds[i]->singular)) == kinds[i]);
        /* Every object starts the same way. */
        EXPECT_Z(kinds[i]->schema->fields[2].name, "metadata");
        EXPECT_EQ(kinds[i]->schema->fields[2].offset, offsetof(struct object, meta));
    }
    EXPECT_TRUE(kind_find_plural(STR("PODS")) == &pod_kind);
    EXPECT_TRUE(kind_find(STR("v2"), STR("Pod")) == NULL);
    EXPECT_TRUE(kind_find(STR("apps/v1"), STR("Pod")) == NULL);
}

TEST(field_selectors_find_metadata_and_what_the_kind_has)
{
    AUTO(object_pool) pool = object_pool_new();
    AUTO_OBJECT a = decode_pod(pool, "web-1", "nginx:1");
    EXPECT_STR(object_field(a, STR("metadata.name")), "web-1");
    EXPECT_STR(object_field(a, STR("metadata.namespace")), "shop");
    EXPECT_STR(object_field(a, STR("spec.nodeName")), "node-web-1");
    EXPECT_STR(object_field(a, STR("status.phase")), "");
    EXPECT_STR(object_field(a, STR("spec.nonsense")), NULL);
}

TEST(labels_inside_a_list_belong_to_the_object_itself)
{
    AUTO(object_pool) pool = object_pool_new();
    struct doc doc;
    struct err err;
    const struct object *object = NULL;
    EXPECT_OK(json_read(STR("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"volumeClaimTemplates\":[{"
                            "\"metadata\":{\"name\":\"d\",\"labels\":{\"a\":\"b\"}}}]}}"),
                        &doc, &err),
              err);
    EXPECT_OK(object_decode(pool, &stateful_set_kind, doc.root, &object, &err), err);
    EXPECT_EQ(object_pool_stats(pool).shared_count, 0);
    object_unref(object);
    doc_done(&doc);
}
