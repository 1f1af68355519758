/* NodeFeatureGroups of images on a real API server: what it refuses, what it gives back, and two processes
 * that want the same. */
#include "kube/fixture.h"

#include "api/nfd.h"
#include "compat/nfg_cache.h"
#include "store/informer.h"

#define NAMESPACE "nfd-test"

static const char *const options[] = { "--no-scheduler", NULL };

/* One process of ours: its connection, watch and cache. */
struct process {
    struct plane_access access;
    struct informer *informer;
    struct nfg_cache *cache;
};

struct scene {
    struct plane *plane;
    struct virtual_clock *time; /* of the caches; the server has its own */
    struct process a, b;
    const struct compat_spec *spec;
    struct image_facts facts;
    struct arena arena;
    struct err err;
};

static const char spec_text[] =
    "version: v1alpha1\n"
    "compatibilities:\n"
    "- tag: fast\n"
    "  weight: 80\n"
    "  rules:\n"
    "  - name: amx\n"
    "    remark: a field that a group does not have\n"
    "    vars: {path: amx}\n"
    "    matchFeatures:\n"
    "    - feature: cpu.cpuid\n"
    "      matchExpressions: {AMXTILE: {op: Exists}, AMXBF16: {op: Exists}}\n"
    "    - {feature: kernel.version, matchExpressions: {full: {op: GeLe, type: version, "
    "value: ['5.0', '7.0']}}}\n"
    "- tag: baseline\n"
    "  rules:\n"
    "  - name: any\n"
    "    matchAny:\n"
    "    - matchFeatures: [{feature: pci.device, matchExpressions: {}}]\n"
    "    - matchFeatures: [{feature: kernel.loadedmodule, matchName: {op: InRegexp, value: "
    "[^vfio]}}]\n";

static void process_start(struct scene *s, struct process *process)
{
    process->access =
        plane_open(s->plane, plane_path(s->plane, "admin.kubeconfig"), (struct kube_options){ 0 });
    process->cache = nfg_cache_new((struct nfg_cache_options){ .store = process->access.store,
                                                               .clock = virtual_clock_port(s->time),
                                                               .mode = NFG_PUBLISH,
                                                               .namespace_ = STR(NAMESPACE) });
    process->informer = informer_new((struct informer_options){
        .store = process->access.store, .kind = &node_feature_group_kind, .clock = clock_real() });
    informer_on_change(process->informer, nfg_cache_observe, process->cache);
}

static void process_end(struct process *process)
{
    nfg_cache_free(process->cache);
    informer_free(process->informer);
    plane_close(&process->access);
}

static void scene_start(struct scene *s)
{
    *s = (struct scene){ .plane = plane_with(options),
                         .time = virtual_clock_new(clock_wall_us(clock_real())) };
    plane_must(s->plane, "kubectl apply -f tests/kube/nfd-crds.yaml && kubectl wait "
                         "--for=condition=Established --timeout=60s -f tests/kube/nfd-crds.yaml && "
                         "(kubectl get ns " NAMESPACE " || kubectl create ns " NAMESPACE ") && "
                         "kubectl delete nodefeaturegroup --all -n " NAMESPACE);
    EXPECT_OK(compat_spec_read("spec", str_of(spec_text), (struct compat_spec_options){ 0 },
                               &s->spec, &s->err),
              s->err);
    s->facts = (struct image_facts){ .digest = STR("sha256:1111"),
                                     .spec = { s->spec, .artifact = STR("sha256:2222") } };
    process_start(s, &s->a);
    process_start(s, &s->b);
}

static void scene_end(struct scene *s)
{
    process_end(&s->a);
    process_end(&s->b);
    virtual_clock_free(s->time);
    compat_spec_unref(s->spec);
    arena_done(&s->arena);
}
#define SCENE __attribute__((cleanup(scene_end))) struct scene

static struct nfg_names publish(struct scene *s, struct process *process)
{
    struct nfg_names names = { 0 };
    EXPECT_OK(
        nfg_cache_publish(process->cache, STR("app:1"), &s->facts, &s->arena, &names, &s->err),
        s->err);
    return names;
}

/* What the image's entry has, once the watch has told all there is to tell. */
static struct nfg_names look(struct scene *s, struct process *process)
{
    struct nfg_names names;
    informer_pump(process->informer);
    nfg_cache_get_valid(process->cache, STR("app:1"), &s->arena, &names);
    return names;
}

static bool member(struct scene *s, struct process *process, uint32_t set, enum match want)
{
    informer_pump(process->informer);
    return nfg_cache_member(process->cache, s->spec->sets[set].rules_json, STR("n1")) == want;
}

static size_t group_count(struct scene *s)
{
    struct str names = plane_must(s->plane, "kubectl get nfg -n " NAMESPACE " -o name");
    size_t count = names.len > 0;
    for (size_t i = 0; i < names.len; i++)
        count += names.p[i] == '\n';
    return count;
}

TEST(an_api_server_takes_our_groups_and_two_processes_share_them)
{
    SCENE s;
    scene_start(&s);
    struct nfg_names names = publish(&s, &s.a);
    EXPECT_EQ(names.count, 2);
    EXPECT_EQ(group_count(&s), 2);
    /* The other one has not looked: it is told that they exist, and finds its own rules in them. */
    struct nfg_names same = publish(&s, &s.b);
    EXPECT_EQ(same.count, 2);
    for (uint32_t i = 0; i < 2; i++)
        EXPECT_TRUE(str_eq(same.items[i], names.items[i]));
    EXPECT_EQ(group_count(&s), 2);
    EXPECT_STR(plane_must(s.plane,
                          "kubectl get nfg -n " NAMESPACE
                          " %.*s -o 'jsonpath={.metadata.labels.karve\\.io/kind} "
                          "{.metadata.annotations.karve\\.io/set-tag} "
                          "{.metadata.annotations.karve\\.io/set-weight}'",
                          STR_ARG(names.items[0])),
               "image-compat fast 80");
    PLANE_WAIT(s.plane, (informer_pump(s.a.informer), informer_count(s.a.informer) == 2));
    EXPECT_EQ(look(&s, &s.a).count, 2); /* as the server gives them back */
}

TEST(an_api_server_refuses_what_we_refuse_to_send)
{
    SCENE s;
    struct nfg_names names;
    const struct compat_spec *spec = NULL;
    static const char text[] = "{version: v1alpha1, compatibilities: [{rules: [{name: r, "
                               "matchFeatures: [{feature: f, matchExpressions: {E: {}}}]}]}]}";
    scene_start(&s);
    EXPECT_ERR(store_create(s.a.access.store, &node_feature_group_kind, STR(NAMESPACE),
                            STR("{\"metadata\":{\"name\":\"x\"},\"spec\":{\"featureGroupRules\":[{"
                                "\"name\":\"r\",\"matchFeatures\":[{\"feature\":\"f\","
                                "\"matchExpressions\":{\"E\":{}}}]}]}}"),
                            NULL, &s.err),
               s.err, ERR_INVALID);
    EXPECT_OK(
        compat_spec_read("spec", str_of(text), (struct compat_spec_options){ 0 }, &spec, &s.err),
        s.err);
    struct image_facts facts = { .digest = STR("sha256:1111"), .spec = { spec } };
    EXPECT_ERR(nfg_cache_publish(s.a.cache, STR("bad:1"), &facts, &s.arena, &names, &s.err), s.err,
               ERR_INVALID);
    compat_spec_unref(spec);
}

TEST(a_status_is_seen_and_a_deleted_group_comes_back)
{
    SCENE s;
    scene_start(&s);
    struct str name = publish(&s, &s.a).items[0];
    plane_must(s.plane,
               "kubectl patch nfg -n " NAMESPACE " %.*s --subresource=status --type=merge "
               "-p '{\"status\":{\"nodes\":[{\"name\":\"n0\"},{\"name\":\"n1\"}]}}'",
               STR_ARG(name));
    PLANE_WAIT(s.plane, member(&s, &s.a, 0, MATCH_YES));
    plane_must(s.plane, "kubectl delete nfg -n " NAMESPACE " %.*s", STR_ARG(name));
    PLANE_WAIT(s.plane, look(&s, &s.a).missing == 1);
    EXPECT_TRUE(member(&s, &s.a, 0, MATCH_UNKNOWN));
    EXPECT_TRUE(nfg_cache_due_ns(s.a.cache) <= clock_mono_ns(virtual_clock_port(s.time)));
    nfg_cache_tend(s.a.cache);
    EXPECT_EQ(group_count(&s), 2);
    PLANE_WAIT(s.plane, look(&s, &s.a).count == 2);
}

/* What a process does every few minutes. */
static void live(struct process *process)
{
    informer_pump(process->informer);
    nfg_cache_tend(process->cache);
}

TEST(idle_groups_go_but_not_those_that_the_other_process_uses)
{
    SCENE s;
    scene_start(&s);
    publish(&s, &s.a);
    publish(&s, &s.b);
    for (int i = 0; i < 36; i++) { /* three hours in which only b uses them */
        nfg_cache_use(s.b.cache, STR("app:1"));
        live(&s.b);
        live(&s.a);
        virtual_clock_advance(s.time, NFG_STAMP_NS);
    }
    EXPECT_EQ(group_count(&s), 2);
    for (int i = 0; i < 14; i++) {
        virtual_clock_advance(s.time, NFG_STAMP_NS);
        live(&s.b);
    }
    PLANE_WAIT(s.plane, (live(&s.a), group_count(&s) == 0)); /* once its watch is up to date */
}
