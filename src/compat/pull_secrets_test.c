/* Keyrings from secrets in a store. */
#include "compat/pull_secrets.h"

#include "api/node_kinds.h"
#include "compat/compat_testing.h"
#include "store/embedded.h"
#include "store/js_testing.h"

#include <unistd.h>

/* {"auths":{"registry.example":{"username":"u","password":"p"}}} and one for other.example */
#define OURS "eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlIjp7InVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoicCJ9fX0="
#define THEIRS "eyJhdXRocyI6eyJvdGhlci5leGFtcGxlIjp7InVzZXJuYW1lIjoidiIsInBhc3N3b3JkIjoicSJ9fX0="

struct rig {
    struct virtual_clock *clock;
    struct object_pool *pool;
    struct embedded *embedded;
    const struct store *store;
    struct pull_secrets *secrets;
    VEC(const struct object *) objects;
};

static void start(struct rig *rig)
{
    rig->clock = virtual_clock_new(0);
    rig->pool = object_pool_new();
    rig->embedded = embedded_new((struct embedded_options){
        .clock = virtual_clock_port(rig->clock), .pool = rig->pool, .seed = 1 });
    rig->store = embedded_store(rig->embedded);
    rig->secrets = pull_secrets_new(rig->store, virtual_clock_port(rig->clock), NULL);
}

static void done(struct rig *rig)
{
    vec_each(&rig->objects, const struct object *, object)
        object_unref(*object);
    vec_done(&rig->objects);
    pull_secrets_free(rig->secrets);
    embedded_free(rig->embedded);
    object_pool_free(rig->pool);
    virtual_clock_free(rig->clock);
}
#define RIG __attribute__((cleanup(done))) struct rig

static const struct pod *pod(struct rig *rig, struct str json)
{
    struct doc doc;
    struct err err = { 0 };
    const struct object *object = NULL;
    EXPECT_OK(json_read(json, &doc, &err), err);
    EXPECT_OK(object_decode(rig->pool, &pod_kind, doc.root, &object, &err), err);
    doc_done(&doc);
    vec_push(&rig->objects, object);
    return pod_of(object);
}

static void put(struct rig *rig, const struct kind *kind, struct str json)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_create(rig->store, kind, STR("default"), json, &object, &err), err);
    vec_push(&rig->objects, object);
}

static void secret(struct rig *rig, const char *name, const char *type, const char *key,
                   const char *data)
{
    put(rig, &secret_kind,
        js("{'metadata':{'name':'%s'},'type':'%s','data':{'%s':'%s'}}", name, type, key, data));
}

/* How many credentials the pod has for the registry. */
static uint32_t keys_for(struct rig *rig, const struct pod *of, const char *registry)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    const struct keyring *ring = NULL;
    const struct credential *found = NULL;
    struct str key = pull_secrets_key(of, &arena);
    EXPECT_OK(pull_secrets_read(rig->secrets, key, &ring, &err), err);
    uint32_t count = keyring_match(ring, &arena, str_of(registry), STR("team/app"), &found);
    keyring_unref(ring);
    return count;
}

#define SPEC(rest)                                                                                 \
    js("{'metadata':{'name':'p','namespace':'default'},'spec':{" rest                              \
       "'containers':[{'name':'c','image':'i'}]}}")

TEST(secrets_of_the_pod_are_read)
{
    RIG rig = { 0 };
    start(&rig);
    secret(&rig, "ours", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", OURS);
    secret(&rig, "theirs", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", THEIRS);
    const struct pod *both =
        pod(&rig, SPEC("'imagePullSecrets':[{'name':'ours'},{'name':'theirs'}],"));
    EXPECT_EQ(keys_for(&rig, both, "registry.example"), 1);
    EXPECT_EQ(keys_for(&rig, both, "other.example"), 1);
    EXPECT_EQ(keys_for(&rig, both, "third.example"), 0);
}

TEST(one_that_is_missing_or_none_is_passed_over)
{
    RIG rig = { 0 };
    start(&rig);
    secret(&rig, "ours", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", OURS);
    secret(&rig, "opaque", "Opaque", "word", "c2VzYW1l");
    secret(&rig, "empty", "kubernetes.io/dockerconfigjson", "other", OURS);
    secret(&rig, "garbled", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", "bm90IGpzb24=");
    EXPECT_EQ(keys_for(&rig,
                       pod(&rig, SPEC("'imagePullSecrets':[{'name':'gone'},{'name':'opaque'},"
                                      "{'name':'empty'},{'name':'garbled'},{'name':'ours'}],")),
                       "registry.example"),
              1);
}

TEST(without_any_those_of_the_service_account_are_read)
{
    RIG rig = { 0 };
    start(&rig);
    secret(&rig, "ours", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", OURS);
    put(&rig, &service_account_kind,
        js("{'metadata':{'name':'builder'},'imagePullSecrets':[{'name':'ours'}]}"));
    EXPECT_EQ(
        keys_for(&rig, pod(&rig, SPEC("'serviceAccountName':'builder',")), "registry.example"), 1);
    EXPECT_EQ(keys_for(&rig, pod(&rig, SPEC("'serviceAccountName':'nobody',")), "registry.example"),
              0);
}

TEST(pods_with_the_same_secrets_have_the_same_key_and_those_with_none_have_none)
{
    RIG rig = { 0 };
    AUTO_ARENA arena = { 0 };
    start(&rig);
    struct str a = pull_secrets_key(pod(&rig, SPEC("'imagePullSecrets':[{'name':'x'}],")), &arena),
               b = pull_secrets_key(pod(&rig, SPEC("'imagePullSecrets':[{'name':'x'}],"
                                                   "'serviceAccountName':'s',")),
                                    &arena),
               c = pull_secrets_key(pod(&rig, SPEC("'serviceAccountName':'x',")), &arena);
    EXPECT_TRUE(str_eq(a, b));
    EXPECT_FALSE(str_eq(a, c));
    EXPECT_EQ(pull_secrets_key(pod(&rig, SPEC("")), &arena).len, 0);
}

TEST(a_secret_that_changes_is_read_again_after_a_minute)
{
    RIG rig = { 0 };
    struct err err = { 0 };
    start(&rig);
    secret(&rig, "ours", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", THEIRS);
    const struct pod *of = pod(&rig, SPEC("'imagePullSecrets':[{'name':'ours'}],"));
    EXPECT_EQ(keys_for(&rig, of, "registry.example"), 0);
    EXPECT_OK(store_patch(rig.store,
                          (struct object_ref){ &secret_kind, STR("default"), STR("ours") },
                          (struct patch_options){ 0 },
                          js("{'data':{'.dockerconfigjson':'" OURS "'}}"), NULL, &err),
              err);
    EXPECT_EQ(keys_for(&rig, of, "registry.example"), 0);
    virtual_clock_advance(rig.clock, PULL_SECRETS_FRESH_NS);
    EXPECT_EQ(keys_for(&rig, of, "registry.example"), 1);
}
