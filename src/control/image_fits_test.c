/* What pods' images ask of nodes, in what is launched for them. */
#include "control/image_fits.h"

#include "api/node_kinds.h"
#include "control/controllers.h"
#include "control/provisioner.h"
#include "control/testing.h"

#include <stdatomic.h>
#include <unistd.h>

static const struct controller *const some[] = { &nodeoverlay_status, &provisioner_controller };

/* Images are told by their names: "arm:1" is for arm64, "avx:1" needs a CPU flag, "slow:1" is not known before
 * `open` is set, "broken:1" cannot be looked up, "keyed:1" is for arm64 to those who have a key to it. */
struct shelf {
    const struct compat_spec *needs_avx;
    atomic_bool open;
};

static int ask(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
               const struct image_facts *maybe_known, const struct image_facts **out,
               struct err *err)
{
    struct shelf *shelf = ctx;
    struct str name = ref->repository;
    bool arm = str_ends(name, STR("arm")) ||
               (str_ends(name, STR("keyed")) && keyring_identity(maybe_keys) != 0);
    struct platform platform = { .os = STR("linux"),
                                 .architecture = arm ? STR("arm64") : STR("amd64") };
    (void)maybe_known;
    while (str_ends(name, STR("slow")) && !atomic_load(&shelf->open))
        usleep(1000);
    if (str_ends(name, STR("broken")))
        return err_set(err, ERR_UNAVAILABLE, "no route to the registry");
    *out = image_facts_make(STR("sha256:00"), &platform, 1,
                            str_ends(name, STR("avx")) ? shelf->needs_avx : NULL);
    return 0;
}

struct set_up {
    struct shelf shelf;
    struct compat_service *service;
    struct stage *s;
};

static void set_up(struct set_up *u, struct compat_settings settings)
{
    struct err err = { 0 };
    EXPECT_OK(compat_spec_read("spec.yaml",
                               STR("{version: v1alpha1, compatibilities: [{tag: fast, rules: "
                                   "[{name: avx, matchFeatures: [{feature: cpu.cpuid, "
                                   "matchExpressions: {AVX512F: {op: Exists}}}]}]}]}"),
                               (struct compat_spec_options){ 0 }, &u->shelf.needs_avx, &err),
              err);
    u->s = stage_new_idle((struct stage_options){ .controllers = some, .count = 2 });
    EXPECT_OK(
        compat_service_new((struct compat_service_options){ .source = { ask, &u->shelf, NULL },
                                                            .store = u->s->w->store,
                                                            .clock = clock_real(),
                                                            .settings = settings },
                           &u->service, &err),
        err);
    u->s->c = control_new_with((struct control_options){ .store = u->s->w->store,
                                                         .provider = u->s->provider,
                                                         .clock = virtual_clock_port(u->s->w->time),
                                                         .maybe_images = u->service,
                                                         .maybe_metrics = u->s->metrics,
                                                         .seed = 5,
                                                         .settings = control_settings_default },
                               some, 2);
    object_unref(make_pool(u->s, "web", ""));
}

static void take_down(struct set_up *u)
{
    atomic_store(&u->shelf.open, true);
    control_free(take(&u->s->c));
    compat_service_free(u->service); /* whose objects are of the stage's pool */
    stage_free(u->s);
    compat_spec_unref(u->shelf.needs_avx);
}
#define SET_UP __attribute__((cleanup(take_down))) struct set_up

static void make_pod_of(struct set_up *u, const char *name, const char *image)
{
    object_unref(make(u->s->w->store, &pod_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c',"
                         "'image':'registry.example/%s:1','resources':{'requests':{'cpu':'1'}}}]}}",
                         name, image)));
    object_unref(merge_status(u->s->w->store, &pod_kind, name,
                              js("{'status':{'conditions':[{'type':'PodScheduled','status':'False',"
                                 "'reason':'Unschedulable','message':'no nodes'}]}}")));
}

/* Until what can be looked up has been, then long enough for a pass. */
static void plan(struct set_up *u)
{
    struct object_list pods = { 0 };
    struct err err = { 0 };
    stage_pass(u->s, 0);
    EXPECT_OK(store_list(u->s->w->store, &pod_kind, NULL, &pods, &err), err);
    compat_service_settle(u->service, (const struct pod *const *)pods.items, (uint32_t)pods.count,
                          clock_mono_ns(clock_real()) + 30 * SECOND_NS);
    object_list_done(&pods);
    control_images_changed(u->s->c);
    stage_pass(u->s, 15);
}

/* The architectures that claims ask for: "amd64", "arm64,amd64". */
static void architectures(struct set_up *u, struct buf *out)
{
    struct object_list claims = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(u->s->w->store, &nodeclaim_kind, NULL, &claims, &err), err);
    for (size_t i = 0; i < claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims.items[i]);
        bool arm = false, intel = false;
        for (uint32_t k = 0; k < claim->spec.node.requirements.count; k++) {
            const struct expression *e = &claim->spec.node.requirements.items[k];
            if (!str_eqz(e->key, LABEL_INSTANCE_TYPE))
                continue;
            for (uint32_t v = 0; v < e->values.count; v++) {
                arm |= strstr(e->values.items[v].p, "arm64") != NULL;
                intel |= strstr(e->values.items[v].p, "amd64") != NULL;
            }
        }
        buf_addf(out, "%s%s%s", out->len ? " " : "", arm ? "arm64" : "", intel ? "amd64" : "");
    }
    object_list_done(&claims);
}

static struct str condition_words(struct set_up *u, const char *pod, struct arena *arena)
{
    AUTO_OBJECT object = get(u->s->w->store, &pod_kind, pod);
    const struct pod_condition *planned = pod_condition(pod_of(object), CONDITION_POD_PLANNED);
    return planned ? arena_str(arena, planned->message) : STR("none");
}

TEST(an_image_for_arm64_alone_launches_arm64_and_nothing_else)
{
    SET_UP u = { 0 };
    AUTO_BUF got = { 0 };
    set_up(&u, (struct compat_settings){ 0 });
    make_pod_of(&u, "a", "arm");
    plan(&u);
    architectures(&u, &got);
    EXPECT_STR(buf_str(&got), "arm64");
}

TEST(pods_whose_images_exclude_each_other_get_nodes_of_their_own)
{
    SET_UP u = { 0 };
    AUTO_BUF got = { 0 };
    set_up(&u, (struct compat_settings){ 0 });
    make_pod_of(&u, "a", "arm");
    make_pod_of(&u, "b", "plain");
    plan(&u);
    EXPECT_EQ(count_of(u.s, &nodeclaim_kind), 2);
    architectures(&u, &got);
    EXPECT_TRUE(str_eqz(buf_str(&got), "arm64 amd64") || str_eqz(buf_str(&got), "amd64 arm64"));
}

TEST(an_image_that_is_being_looked_up_is_waited_for_and_the_others_are_not_held_up)
{
    SET_UP u = { 0 };
    AUTO_ARENA arena = { 0 };
    set_up(&u, (struct compat_settings){ 0 });
    make_pod_of(&u, "slow", "slow");
    make_pod_of(&u, "quick", "plain");
    stage_pass(u.s, 0);
    for (int i = 0; i < 30000 && count_of(u.s, &nodeclaim_kind) == 0; i++) {
        usleep(1000);
        control_images_changed(u.s->c);
        stage_pass(u.s, 2);
    }
    EXPECT_EQ(count_of(u.s, &nodeclaim_kind), 1);
    EXPECT_HAS(condition_words(&u, "slow", &arena), "is being looked up");
    atomic_store(&u.shelf.open, true);
    plan(&u);
    EXPECT_HAS(condition_words(&u, "slow", &arena), "web-");
}

TEST(an_image_that_cannot_be_looked_up_stops_its_pod_or_not_as_the_policy_says)
{
    for (int ignore = 0; ignore < 2; ignore++) {
        SET_UP u = { 0 };
        AUTO_ARENA arena = { 0 };
        set_up(&u, (struct compat_settings){ .on_resolve_error =
                                                 ignore ? RESOLVE_IGNORE : RESOLVE_FAIL });
        make_pod_of(&u, "a", "broken");
        plan(&u);
        EXPECT_EQ(count_of(u.s, &nodeclaim_kind), ignore ? 1 : 0);
        if (!ignore)
            EXPECT_HAS(condition_words(&u, "a", &arena), "no route to the registry");
    }
}

TEST(an_artifact_decides_what_is_launched_only_if_its_repository_may)
{
    static const struct str trusted[] = { { "registry.example", 16 } };
    for (uint32_t may = 0; may < 2; may++) {
        SET_UP u = { 0 };
        AUTO_ARENA arena = { 0 };
        /* Of kwok's types nothing is known but the architecture: a rule about flags may hold. */
        set_up(&u, (struct compat_settings){ .launch_repositories = { trusted, may } });
        make_pod_of(&u, "a", "avx");
        plan(&u);
        EXPECT_EQ(count_of(u.s, &nodeclaim_kind), may);
        if (!may)
            EXPECT_HAS(condition_words(&u, "a", &arena), "--launch-repositories");
    }
}

TEST(what_is_not_known_is_refused_if_the_policy_says_so)
{
    static const struct str trusted[] = { { "registry.example", 16 } };
    SET_UP u = { 0 };
    AUTO_ARENA arena = { 0 };
    set_up(&u, (struct compat_settings){ .launch_repositories = { trusted, 1 },
                                         .unknown_features = UNKNOWN_DENY });
    make_pod_of(&u, "a", "avx");
    plan(&u);
    EXPECT_EQ(count_of(u.s, &nodeclaim_kind), 0);
    EXPECT_HAS(condition_words(&u, "a", &arena), "AVX512F");
}

/* One that kube-scheduler has called unschedulable. All of them have one spec. */
static void make_keyed_pod(struct set_up *u, const char *namespace_)
{
    const struct store *store = u->s->w->store;
    struct err err = { 0 };
    object_unref(make(store, &namespace_kind, js("{'metadata':{'name':'%s'}}", namespace_)));
    EXPECT_OK(
        store_create(store, &pod_kind, str_of(namespace_),
                     js("{'metadata':{'name':'a'},'spec':{'imagePullSecrets':[{'name':'door'}],"
                        "'containers':[{'name':'c','image':'registry.example/keyed:1',"
                        "'resources':{'requests':{'cpu':'1'}}}]}}"),
                     NULL, &err),
        err);
    EXPECT_OK(store_patch(store, (struct object_ref){ &pod_kind, str_of(namespace_), STR("a") },
                          (struct patch_options){ .type = PATCH_MERGE, .status = true },
                          js("{'status':{'conditions':[{'type':'PodScheduled','status':'False',"
                             "'reason':'Unschedulable','message':'no nodes'}]}}"),
                          NULL, &err),
              err);
}

TEST(pods_of_one_spec_in_two_namespaces_have_each_what_their_own_secrets_show)
{
    SET_UP u = { 0 };
    AUTO_BUF got = { 0 };
    struct err err = { 0 };
    set_up(&u, (struct compat_settings){ .pull_secrets = true });
    make_keyed_pod(&u, "outside");
    make_keyed_pod(&u, "inside");
    EXPECT_OK(
        store_create(u.s->w->store, &secret_kind, STR("inside"),
                     js("{'metadata':{'name':'door'},'type':'kubernetes.io/dockerconfigjson',"
                        "'data':{'.dockerconfigjson':'eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlIjp7"
                        "InVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoicCJ9fX0='}}"),
                     NULL, &err),
        err);
    plan(&u);
    EXPECT_EQ(count_of(u.s, &nodeclaim_kind), 2);
    architectures(&u, &got);
    EXPECT_TRUE(str_eqz(buf_str(&got), "arm64 amd64") || str_eqz(buf_str(&got), "amd64 arm64"));
}
