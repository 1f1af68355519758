/* The parts, put together: what changes goes to whom it concerns, and verdicts of the fleet meet those of the
 * groups.
 */
#include "compat/service_inner.h"

#include "api/nodeclaim.h"

#define WORKERS 2

/* --- verdicts --- */

/* Has the image a set that counts and that only NFD can evaluate? */
static bool requires_nfd(const struct compat_service *s, const struct image_facts *maybe_facts)
{
    const struct compat_spec *spec = maybe_facts ? maybe_facts->spec.maybe_spec : NULL;
    for (uint32_t i = 0; spec && i < spec->set_count; i++) {
        if (compat_set_is_asked(&spec->sets[i], &s->settings.rules) &&
            rules_require_nfd(spec->sets[i].rules))
            return true;
    }
    return false;
}

/* What the groups of an image make of the verdict `so_far` of a node, which is this image's own. They can lower it.
 * They raise it only where it is unknown because NFD alone can evaluate a set: then all sets are put to their
 * groups, so that one of which nothing is known stays unknown. */
static enum match groups_say(struct compat_service *s, const struct image_facts *facts,
                             struct str node, enum match so_far)
{
    const struct compat_spec *spec = facts->spec.maybe_spec;
    bool templated = requires_nfd(s, facts) && so_far == MATCH_UNKNOWN;
    bool any = s->settings.rules.sets == SETS_ANY, asked = false;
    enum match all = MATCH_YES, best = MATCH_NO;
    if (!templated && s->settings.nfg_mode != NFG_AUTHORITATIVE)
        return so_far;
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        if (facts->platforms[i].spec.maybe_spec)
            return so_far; /* which spec counts depends on the node: judged here alone */
    }
    for (uint32_t i = 0; spec && i < spec->set_count; i++) {
        if (!compat_set_is_asked(&spec->sets[i], &s->settings.rules))
            continue;
        enum match member = nfg_cache_member(s->groups, spec->sets[i].rules_json, node);
        asked = true;
        all = member < all ? member : all;
        best = member > best ? member : best;
    }
    if (!asked)
        return so_far;
    enum match say = any ? best : all;
    if (templated)
        return say;
    /* Not evaluated yet: what is known here stands. */
    return say == MATCH_UNKNOWN || say > so_far ? so_far : say;
}

static void decide(struct fleet_verdict *verdict, enum match say, uint32_t image)
{
    if (say == verdict->match)
        return;
    verdict->image_ix = image;
    verdict->class_ix = UINT32_MAX; /* it is this node's own */
    verdict->match = say;
}

/* Of a node that nobody here knows yet not even the platform is known: the groups have no say. */
static bool is_node(const struct fleet_verdict *verdict)
{
    return verdict->match != MATCH_UNKNOWN || verdict->class_ix != UINT32_MAX;
}

/* The groups of one may answer what is unknown of it, and of the others it stays unknown: so each image is judged by
 * itself, and the least counts. */
static void judge_apart(struct compat_service *s, const struct demand *demand,
                        const struct str *names, uint32_t count, struct fleet_verdict *out)
{
    AUTO_ARENA arena = { 0 };
    struct fleet_verdict *own = arena_array(&arena, struct fleet_verdict, count);
    enum match *least = arena_array(&arena, enum match, count);
    uint32_t *of = arena_array(&arena, uint32_t, count);
    for (uint32_t image = 0; image < demand_image_count(demand); image++) {
        const struct fleet_image *asked = demand_image(demand, image);
        const struct demand *one = fleet_demand(s->fleet, asked, 1);
        fleet_judge(s->fleet, one, names, count, own);
        demand_unref(one);
        for (uint32_t i = 0; i < count; i++) {
            enum match say = own[i].match;
            if (asked->maybe_facts && is_node(&own[i]))
                say = groups_say(s, asked->maybe_facts, names[i], say);
            if (image == 0 || say < least[i]) {
                least[i] = say;
                of[i] = image;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++)
        decide(&out[i], least[i], of[i]);
}

void compat_service_judge(struct compat_service *s, const struct demand *demand,
                          const struct str *names, uint32_t count, struct fleet_verdict *out)
{
    uint32_t images = demand_image_count(demand);
    fleet_judge(s->fleet, demand, names, count, out);
    if (s->settings.nfg_mode == NFG_OFF)
        return;
    for (uint32_t image = 0; image < images && images > 1; image++) {
        if (requires_nfd(s, demand_image(demand, image)->maybe_facts)) {
            judge_apart(s, demand, names, count, out);
            return;
        }
    }
    for (uint32_t image = 0; image < images; image++) {
        const struct image_facts *facts = demand_image(demand, image)->maybe_facts;
        if (!facts || !facts->spec.maybe_spec)
            continue;
        for (uint32_t i = 0; i < count; i++) {
            if (is_node(&out[i]))
                decide(&out[i], groups_say(s, facts, names[i], out[i].match), image);
        }
    }
}

void compat_service_explain(struct compat_service *s, const struct demand *demand, struct str node,
                            struct buf *out)
{
    size_t before = out->len;
    fleet_explain(s->fleet, demand, node, out);
    if (out->len == before)
        buf_addz(out, "its NodeFeatureGroups do not list the node");
}

/* --- changes --- */

/* A group that is needed and gone is not left for the next round. */
static void tend_when_due(struct compat_service *s)
{
    int64_t wait_ns = nfg_cache_due_ns(s->groups) - clock_mono_ns(s->options.clock);
    if (s->settings.nfg_mode != NFG_OFF)
        queue_add_after(s->queue, STR("t"), wait_ns > 0 ? wait_ns : 0);
}

/* NFD evaluates groups only in the namespace of its master. */
static void look_for_nfd(struct compat_service *s, const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    bool named = str_eqz(str_map_get(&meta->labels, STR("app.kubernetes.io/name")),
                         "node-feature-discovery") &&
                 str_eqz(str_map_get(&meta->labels, STR("role")), "master");
    if (s->settings.nfd_namespace.len || pod_is_terminal(pod) || pod_is_terminating(pod) ||
        (!named && !str_eqz(str_map_get(&meta->labels, STR("app")), "nfd-master")))
        return;
    pthread_mutex_lock(&s->lock);
    bool same = str_eq(s->nfd_namespace, meta->namespace_);
    if (!same)
        s->nfd_namespace = arena_str(&s->texts, meta->namespace_);
    pthread_mutex_unlock(&s->lock);
    if (same)
        return;
    fleet_set_nfd_namespace(s->fleet, meta->namespace_);
    nfg_cache_set_namespace(s->groups, meta->namespace_);
    tend_when_due(s);
}

/* Are others in the group's status than before? */
static bool members_changed(const struct object *maybe_old, const struct object *maybe_new)
{
    static const struct node_feature_group none;
    const struct node_feature_group *a = maybe_old ? node_feature_group_of(maybe_old) : &none,
                                    *b = maybe_new ? node_feature_group_of(maybe_new) : &none;
    if (a->status.nodes.count != b->status.nodes.count)
        return true;
    for (uint32_t i = 0; i < a->status.nodes.count; i++) {
        if (!str_eq(a->status.nodes.items[i].name, b->status.nodes.items[i].name))
            return true;
    }
    return false;
}

static void tell_change(struct compat_service *s)
{
    atomic_fetch_add(&s->changes, 1);
    if (s->options.on_change)
        s->options.on_change(s->options.ctx);
}

static void observe_pod(struct compat_service *s, const struct object *maybe_old,
                        const struct object *maybe_new)
{
    const struct pod *pod = maybe_new ? pod_of(maybe_new) : NULL;
    if (!pod || pod_is_scheduled(pod) || pod_is_terminal(pod)) {
        service_forget_pod(s, pod ? pod : pod_of(maybe_old));
    } else if (!pod_is_mirror(pod)) {
        struct pod_demand demand;
        compat_service_demand(s, pod, DEMAND_PLACE, &demand);
        pod_demand_done(&demand);
    }
    if (pod)
        look_for_nfd(s, pod);
}

void compat_service_observe(void *service, const struct object *maybe_old,
                            const struct object *maybe_new)
{
    struct compat_service *s = service;
    const struct kind *kind = (maybe_new ? maybe_new : maybe_old)->kind;
    if (kind == &pod_kind) {
        observe_pod(s, maybe_old, maybe_new);
    } else if (kind == &node_kind) {
        fleet_observe_node(s->fleet, maybe_old, maybe_new);
    } else if (kind == &node_feature_kind) {
        fleet_observe_feature(s->fleet, maybe_old, maybe_new);
        if (s->options.on_change)
            s->options.on_change(s->options.ctx);
    } else if (kind == &node_feature_group_kind) {
        nfg_cache_observe(s->groups, maybe_old, maybe_new);
        tend_when_due(s);
        if (members_changed(maybe_old, maybe_new))
            tell_change(s);
    } else if (kind == &nodeclaim_kind) {
        fleet_observe_claim(s->fleet, maybe_old, maybe_new);
    }
}

static void image_changed(void *ctx, struct str image)
{
    struct compat_service *s = ctx;
    AUTO_BUF key = { 0 };
    buf_addc(&key, 'n');
    buf_add(&key, image);
    queue_add(s->queue, buf_str(&key));
    tell_change(s);
}

/* --- life --- */

void compat_service_free(struct compat_service *s)
{
    if (!s)
        return;
    worker_pool_stop(s->workers, QUEUE_DROP);
    image_cache_free(s->images);
    service_forget_all(s);
    nfg_cache_free(s->groups);
    fleet_free(s->fleet);
    predictor_free(s->predictor);
    pull_secrets_free(s->maybe_secrets);
    queue_free(s->queue);
    keyring_unref(s->options.maybe_keys);
    arena_done(&s->texts);
    pthread_cond_destroy(&s->keys_read);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int start(struct compat_service *s, struct err *err)
{
    const struct compat_settings *settings = &s->settings;
    struct image_cache_options images = {
        .source = s->options.source,
        .clock = s->options.clock,
        .maybe_metrics = s->options.maybe_metrics,
        .maybe_log = s->options.maybe_log,
        .disabled = settings->cache_disabled,
        .entries_max = settings->cache_entries_max,
        .bytes_max = settings->cache_bytes_max,
        .ttl_ns = settings->cache_ttl_ns,
        .stale_max_ns = settings->stale_max_ns,
        .on_change = image_changed,
        .ctx = s,
    };
    struct worker_pool_options workers = {
        .name = "compat",
        .queue = s->queue,
        .thread_count = WORKERS,
        .reconcile = service_reconcile,
        .ctx = s,
    };
    if (image_cache_new(images, &s->images, err) < 0)
        return -1;
    if (settings->nfg_mode != NFG_OFF)
        queue_add(s->queue, STR("t"));
    return worker_pool_start(workers, &s->workers, err);
}

int compat_service_new(struct compat_service_options options, struct compat_service **out,
                       struct err *err)
{
    struct compat_service *s = kv_calloc(1, sizeof *s);
    const struct compat_settings *settings = &options.settings;
    KV_ASSERT(options.store || settings->nfg_mode == NFG_OFF);
    s->options = options;
    s->settings = *settings;
    if (options.maybe_keys)
        s->options.maybe_keys = keyring_ref(options.maybe_keys);
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->keys_read);
    s->queue = queue_new((struct queue_options){ .clock = options.clock });
    s->predictor =
        predictor_new((struct predictor_options){ .maybe_metrics = options.maybe_metrics });
    s->fleet = fleet_new((struct fleet_options){
        .nfd_namespace = settings->nfd_namespace,
        .unobserved = settings->unobserved_node,
        .maybe_predictor = s->predictor,
        .maybe_metrics = options.maybe_metrics,
        .rules = settings->rules,
    });
    s->groups = nfg_cache_new((struct nfg_cache_options){
        .store = options.store,
        .clock = options.clock,
        .maybe_metrics = options.maybe_metrics,
        .maybe_log = options.maybe_log,
        .mode = settings->nfg_mode,
        .namespace_ = settings->nfd_namespace,
        .sets_max = settings->sets_max,
        .idle_ns = settings->nfg_idle_ns,
    });
    if (settings->pull_secrets && options.store)
        s->maybe_secrets = pull_secrets_new(options.store, options.clock, options.maybe_log);
    if (start(s, err) < 0) {
        compat_service_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

uint64_t compat_service_generation(struct compat_service *s)
{
    return fleet_generation(s->fleet) + atomic_load(&s->changes);
}

struct fleet *compat_service_fleet(struct compat_service *s)
{
    return s->fleet;
}

struct image_cache *compat_service_images(struct compat_service *s)
{
    return s->images;
}

struct nfg_cache *compat_service_groups(struct compat_service *s)
{
    return s->groups;
}

const struct compat_settings *compat_service_settings(const struct compat_service *s)
{
    return &s->settings;
}
