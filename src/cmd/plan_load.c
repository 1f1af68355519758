/* What is to be planned for: manifests, sorted out into a snapshot.
 *
 * There are two sets of manifests. Those of -f are what is wanted: their workloads become pods
 * (plan_expand.c). Those of --nodes and --context, a dump or a live cluster (plan_live.c), are what is
 * there: everything in them is taken as it is. An object that is in both is taken from the first.
 */
#include "cmd/inputs.h"
#include "cmd/plan_inner.h"

#include "api/kinds.h"
#include "api/kwoknodeclass.h"

#include <inttypes.h>
#include <unistd.h>

void planning_note(struct planning *p, const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    vec_push(&p->notes, arena_str(&p->arena, buf_str(&text)));
}

/* --- options --- */

static int read_number(const struct invocation *inv, const char *flag, uint64_t *out)
{
    const char *text = flag_value(inv, flag);
    int64_t number;
    if (!str_to_i64(str_of(text), &number) || number < 0)
        return print_complaint("plan", EXIT_USAGE, "--%s %s: expected a number from 0 up", flag,
                               STR_SHOWN(str_of(text)));
    *out = (uint64_t)number;
    return EXIT_DONE;
}

static int read_options(struct planning *p, const struct invocation *inv)
{
    p->options = PLAN_OPTIONS_DEFAULT;
    if (strcmp(flag_value(inv, "preference-policy"), "Ignore") == 0)
        p->options.preferences = PREFERENCES_IGNORE;
    if (strcmp(flag_value(inv, "min-values-policy"), "BestEffort") == 0)
        p->options.min_values = MIN_VALUES_BEST_EFFORT;
    int code = read_number(inv, "seed", &p->options.seed);
    if (code != EXIT_DONE || !flag_given(inv, "effort"))
        return code;
    return read_number(inv, "effort", &p->options.effort);
}

/* --- reading --- */

static int read_paths(struct manifests *m, const char *const *paths, size_t count)
{
    struct err err;
    if (manifests_load(m, paths, count, &err) < 0)
        return print_complaint("plan", EXIT_ENVIRONMENT, "%s", err.text);
    return EXIT_DONE;
}

/* A dump is a file; any other name is that of a kubeconfig's context. */
static bool is_dump(const char *context)
{
    return strcmp(context, "-") == 0 || access(context, F_OK) == 0;
}

static uint32_t stdin_uses(const char *const *paths, size_t count)
{
    uint32_t uses = 0;
    for (size_t i = 0; i < count; i++)
        uses += paths[i] && strcmp(paths[i], "-") == 0;
    return uses;
}

static bool is_live(const struct invocation *inv)
{
    const char *context = flag_value(inv, "context");
    return flag_value(inv, "kubeconfig") || (context && !is_dump(context));
}

static int read_manifests(struct planning *p, const struct invocation *inv)
{
    const char *wanted[PATHS_MAX], *there[PATHS_MAX + 1];
    size_t wanted_count = input_paths(inv, wanted);
    size_t there_count = flag_values(inv, "nodes", there, PATHS_MAX);
    const char *context = flag_value(inv, "context"), *catalogue = flag_value(inv, "catalogue");
    bool live = is_live(inv);
    if (context && !live)
        there[there_count++] = context;
    if (!wanted_count && !there_count && !live)
        return complain_unnamed("plan");
    if (stdin_uses(wanted, wanted_count) + stdin_uses(there, there_count) +
            stdin_uses(&catalogue, 1) >
        1)
        return print_complaint("plan", EXIT_USAGE, "standard input (-) can be read once only");
    int code = read_paths(&p->manifests, wanted, wanted_count);
    if (code == EXIT_DONE)
        code = read_paths(&p->running, there, there_count);
    if (code == EXIT_DONE && live)
        code = plan_read_live(p, inv);
    if (code == EXIT_DONE && !live && !p->manifests.items.count && !p->running.items.count &&
        !p->manifests.error_count && !p->running.error_count)
        code = complain_empty("plan", wanted_count ? wanted[0] : there[0]);
    return code;
}

/* Is what was read good enough to plan with? */
static int judge_manifests(struct planning *p, const struct invocation *inv)
{
    bool colour = colour_wanted(inv, stderr);
    size_t errors = p->manifests.error_count + p->running.error_count;
    print_problems(&p->manifests, false, colour); /* karve validate tells the rest */
    print_problems(&p->running, false, colour);
    if (!errors)
        return EXIT_DONE;
    if (!flag_given(inv, "keep-going"))
        return print_complaint("plan", EXIT_NO,
                               "nothing was planned; --keep-going plans without the "
                               "objects that are invalid");
    planning_note(p, "objects that are invalid are left out: %zu error%s", errors,
                  errors == 1 ? "" : "s");
    return EXIT_DONE;
}

/* --- sorting out --- */

struct sorting {
    struct planning *p;
    struct str_table seen;  /* "Kind/namespace/name": the manifests that it was in */
    struct str_table named; /* generateName: how many have been named by it */
    struct str_table namespaces;
    size_t replaced, cron_jobs;
};

/* As an API server would store it: in a namespace, and with a name. */
static const struct object *adopt(struct sorting *s, const struct manifest *item)
{
    const struct object *object = item->object;
    bool at_home = !object->kind->namespaced || object->meta.namespace_.len > 0;
    if (at_home && object->meta.name.len)
        return object;
    size_t bytes = object->kind->schema->size;
    struct object *copy = arena_alloc(&s->p->arena, bytes);
    memcpy(copy, object, bytes);
    if (!at_home)
        copy->meta.namespace_ = STR("default");
    if (!copy->meta.name.len) {
        struct str prefix = copy->meta.generate_name;
        uintptr_t number = (uintptr_t)str_table_get(&s->named, prefix);
        copy->meta.name = arena_strf(&s->p->arena, "%.*s%zu", STR_ARG(prefix), (size_t)number);
        str_table_put(&s->named, prefix, (void *)(number + 1));
    }
    return copy;
}

static void sort_out(struct sorting *s, const struct object *object, bool wanted)
{
    struct plan_objects *o = &s->p->objects;
    const struct kind *kind = object->kind;
    struct workload w;
    loaded_types_collect(&s->p->types, object);
    if (kind == &pod_kind)
        vec_push(&o->pods, pod_of(object));
    else if (kind == &node_kind)
        vec_push(&o->nodes, node_of(object));
    else if (kind == &nodeclaim_kind)
        vec_push(&o->claims, nodeclaim_of(object));
    else if (kind == &daemon_set_kind)
        vec_push(&o->daemon_sets, daemon_set_of(object));
    else if (kind == &pvc_kind)
        vec_push(&o->pvcs, pvc_of(object));
    else if (kind == &pv_kind)
        vec_push(&o->pvs, pv_of(object));
    else if (kind == &storage_class_kind)
        vec_push(&o->storage_classes, storage_class_of(object));
    else if (kind == &csi_node_kind)
        vec_push(&o->csi_nodes, csi_node_of(object));
    else if (kind == &namespace_kind)
        vec_push(&o->namespaces, namespace_of(object));
    else if (kind == &priority_class_kind)
        vec_push(&o->priority_classes, priority_class_of(object));
    else if (kind == &node_feature_kind)
        vec_push(&o->node_features, object);
    else if (kind == &cron_job_kind)
        s->cron_jobs += wanted;
    else if (wanted && workload_of(object, &w))
        vec_push(&o->makers, object);
    if (kind == &replica_set_kind)
        vec_push(&o->replica_sets, replica_set_of(object));
}

static void key_of(const struct object *object, struct buf *key)
{
    buf_addf(key, "%s/%.*s/%.*s", object->kind->name, STR_ARG(object->meta.namespace_),
             STR_ARG(object->meta.name));
}

static void sort_manifests(struct sorting *s, const struct manifests *m, bool wanted)
{
    vec_each(&m->items, struct manifest, item) {
        AUTO_BUF key = { 0 };
        if (!item->object)
            continue;
        const struct object *object = adopt(s, item);
        key_of(object, &key);
        const struct manifests *earlier = str_table_get(&s->seen, buf_str(&key));
        if (earlier) { /* in the same ones it is an error, which --keep-going goes past */
            s->replaced += earlier != m;
            continue;
        }
        str_table_put(&s->seen, buf_str(&key), (void *)m);
        sort_out(s, object, wanted);
    }
}

/* Namespaces that objects are in are there, whether or not somebody wrote them down, and have the
 * label that says their name. */
static void add_namespaces(struct sorting *s)
{
    struct planning *p = s->p;
    struct plan_objects *o = &p->objects;
    vec_each(&o->namespaces, const struct namespace_object *, n)
        str_table_put(&s->namespaces, (*n)->object.meta.name, s);
    vec_each(&o->pods, const struct pod *, pod) {
        struct str name = (*pod)->object.meta.namespace_;
        if (str_table_has(&s->namespaces, name))
            continue;
        str_table_put(&s->namespaces, name, s);
        struct namespace_object *made = arena_new(&p->arena, struct namespace_object);
        struct str_pair *label = arena_new(&p->arena, struct str_pair);
        *label = (struct str_pair){ STR("kubernetes.io/metadata.name"), name };
        made->object.kind = &namespace_kind;
        made->object.meta.name = name;
        made->object.meta.namespace_ = STR("");
        made->object.meta.labels = (struct str_map){ label, 1 };
        vec_push(&o->namespaces, made);
    }
}

/* --- pools --- */

static struct str not_ready(struct planning *p, struct str whose, const struct condition *items,
                            uint32_t count)
{
    const struct condition *ready = condition_find(items, count, CONDITION_READY);
    AUTO_BUF why = { 0 };
    if (!ready || ready->status != CONDITION_FALSE)
        return STR("");
    message_format(ready->message.len ? ready->message : ready->reason, &why);
    return arena_strf(&p->arena, "%.*s is not ready: %.*s", STR_ARG(whose), STR_ARG(buf_str(&why)));
}

static struct str class_not_ready(struct planning *p, const struct object *class_)
{
    struct str whose =
        arena_strf(&p->arena, "%s/%.*s", class_->kind->name, STR_ARG(class_->meta.name));
    if (class_->meta.deleted_us)
        return arena_strf(&p->arena, "%.*s is being deleted", STR_ARG(whose));
    if (class_->kind == &ec2nodeclass_kind) {
        const struct ec2nodeclass *c = ec2nodeclass_of(class_);
        return not_ready(p, whose, c->status.conditions.items, c->status.conditions.count);
    }
    const struct kwoknodeclass *c = kwoknodeclass_of(class_);
    return not_ready(p, whose, c->status.conditions.items, c->status.conditions.count);
}

static struct str pool_not_ready(struct planning *p, const struct loaded_pool *loaded)
{
    if (loaded->trouble.len)
        return loaded->trouble;
    /* What the pool's own status says, the solver reads. */
    return loaded->maybe_class ? class_not_ready(p, loaded->maybe_class) : STR("");
}

static void add_pools(struct planning *p)
{
    vec_each(&p->types.pools, struct loaded_pool, loaded) {
        AUTO_BUF note = { 0 };
        vec_push(&p->objects.pools, (struct sched_pool){ .pool = loaded->pool,
                                                         .types = loaded->types,
                                                         .well_known = loaded->well_known,
                                                         .not_ready = pool_not_ready(p, loaded) });
        if (pool_class_note(loaded, &note))
            planning_note(p, "%s", note.p);
    }
    for (uint32_t i = 0; i < p->types.evaluation.verdicts.count; i++) {
        AUTO_BUF note = { 0 };
        if (overlay_verdict_format(&p->types.evaluation.verdicts.items[i], &note))
            planning_note(p, "%s", note.p);
    }
}

/* --- all of it --- */

static void add_notes(struct planning *p, const struct sorting *s)
{
    if (s->replaced)
        planning_note(p, "%zu object%s of the running cluster %s as -f has %s", s->replaced,
                      s->replaced == 1 ? "" : "s", s->replaced == 1 ? "is" : "are",
                      s->replaced == 1 ? "it" : "them");
    if (s->cron_jobs)
        planning_note(p, "CronJobs make pods at their times only: %zu %s not planned for",
                      s->cron_jobs, s->cron_jobs == 1 ? "is" : "are");
}

static int sort_all(struct planning *p)
{
    struct sorting s = { .p = p };
    sort_manifests(&s, &p->manifests, true);
    sort_manifests(&s, &p->running, false);
    int code = plan_expand(p);
    add_namespaces(&s);
    add_notes(p, &s);
    str_table_done(&s.seen);
    str_table_done(&s.named);
    str_table_done(&s.namespaces);
    return code;
}

/* A name that workloads of several namespaces have is not enough to tell them apart. */
static void find_namesakes(struct plan_objects *o)
{
    struct str_table first = { 0 };
    vec_each(&o->workloads, struct plan_workload, w) {
        struct plan_workload *other = str_table_get(&first, w->name);
        if (!other) {
            str_table_put(&first, w->name, w);
        } else if (!str_eq(other->namespace_, w->namespace_)) {
            other->has_namesake = w->has_namesake = true;
        }
    }
    vec_each(&o->workloads, struct plan_workload, w) {
        const struct plan_workload *other = str_table_get(&first, w->name);
        w->has_namesake = other->has_namesake;
    }
    str_table_done(&first);
}

static void name_pods(struct planning *p)
{
    struct plan_objects *o = &p->objects;
    find_namesakes(o);
    struct str *names = arena_array(&p->arena, struct str, o->pods.count);
    for (size_t i = 0; i < o->pods.count; i++) {
        const struct meta *meta = &o->pods.items[i]->object.meta;
        names[i] =
            arena_strf(&p->arena, "%.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name));
    }
    p->pod_names = names;
    p->pod_workloads = o->pod_workloads.items;
    p->workloads = o->workloads.items;
    p->workload_count = (uint32_t)o->workloads.count;
}

static void fill_snapshot(struct planning *p)
{
    const struct plan_objects *o = &p->objects;
    p->snapshot = (struct snapshot){
        .pods = o->pods.items,
        .pod_count = (uint32_t)o->pods.count,
        .nodes = o->nodes.items,
        .node_count = (uint32_t)o->nodes.count,
        .claims = o->claims.items,
        .claim_count = (uint32_t)o->claims.count,
        .pools = o->pools.items,
        .pool_count = (uint32_t)o->pools.count,
        .daemon_sets = o->daemon_sets.items,
        .daemon_set_count = (uint32_t)o->daemon_sets.count,
        .pvcs = o->pvcs.items,
        .pvc_count = (uint32_t)o->pvcs.count,
        .pvs = o->pvs.items,
        .pv_count = (uint32_t)o->pvs.count,
        .storage_classes = o->storage_classes.items,
        .storage_class_count = (uint32_t)o->storage_classes.count,
        .csi_nodes = o->csi_nodes.items,
        .csi_node_count = (uint32_t)o->csi_nodes.count,
        .namespaces = o->namespaces.items,
        .namespace_count = (uint32_t)o->namespaces.count,
        .priority_classes = o->priority_classes.items,
        .priority_class_count = (uint32_t)o->priority_classes.count,
    };
}

int planning_load(struct planning *p, const struct invocation *inv)
{
    int code;
    manifests_init(&p->manifests);
    manifests_init(&p->running);
    if ((code = read_options(p, inv)) != EXIT_DONE ||
        (code = read_manifests(p, inv)) != EXIT_DONE ||
        (code = judge_manifests(p, inv)) != EXIT_DONE || (code = sort_all(p)) != EXIT_DONE ||
        (code = loaded_types_load(&p->types, inv)) != EXIT_DONE)
        return code;
    add_pools(p);
    name_pods(p);
    fill_snapshot(p);
    return plan_images_wanted(inv, is_live(inv)) ? plan_look_at_images(p, inv) : EXIT_DONE;
}

void planning_done(struct planning *p)
{
    struct plan_objects *o = &p->objects;
    plan_images_free(p->maybe_images); /* first: it holds on to some of the others */
    vec_done(&o->pods);
    vec_done(&o->pod_workloads);
    vec_done(&o->workloads);
    vec_done(&o->nodes);
    vec_done(&o->claims);
    vec_done(&o->daemon_sets);
    vec_done(&o->pvcs);
    vec_done(&o->pvs);
    vec_done(&o->storage_classes);
    vec_done(&o->csi_nodes);
    vec_done(&o->namespaces);
    vec_done(&o->priority_classes);
    vec_done(&o->node_features);
    vec_done(&o->pools);
    vec_done(&o->makers);
    vec_done(&o->replica_sets);
    vec_done(&p->notes);
    loaded_types_done(&p->types);
    manifests_done(&p->manifests);
    manifests_done(&p->running);
    arena_done(&p->arena);
}
