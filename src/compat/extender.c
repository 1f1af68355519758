/* A request is read, the pod's demand is looked up, the nodes are judged, the answer is written. The pod is known
 * to the service by its UID as a rule; one that is not (its event is still on its way) is decoded and told to
 * it, so that the next call finds it.
 *
 * Why a node is refused is worked out once per class of nodes: thousands of nodes have a handful of reasons.
 */
#include "compat/extender.h"

#include "base/map.h"
#include "codec/json.h"

#include <string.h>

#define SCORE_MAX 10 /* kube-scheduler's MaxExtenderPriority */

enum outcome_kind { ANSWERED, PENDING, TROUBLE, MALFORMED, OUTCOME_COUNT };

struct extender {
    struct extender_options options;
    struct metric *requests[3][OUTCOME_COUNT];
    struct metric *seconds[3];
    struct metric *refused; /* nodes */
};

/* --- metrics --- */

static const char *const verb_names[] = { "filter", "prioritize", "preempt" };
static const char *const outcome_names[] = { "answered", "pending", "trouble", "malformed" };

static void metrics_open(struct extender *x, struct metrics *metrics)
{
    static const char *const by_outcome[] = { "verb", "outcome", NULL };
    static const char *const by_verb[] = { "verb", NULL };
    static double buckets[12];
    metric_exponential_buckets(0.00005, 2, KV_COUNT_OF(buckets), buckets);
    struct metric_family *requests = metrics_family(
        metrics, &(struct metric_desc){ .name = "karve_extender_requests_total",
                                        .help = "Calls of kube-scheduler, by how they ended.",
                                        .type = METRIC_COUNTER,
                                        .labels = by_outcome });
    struct metric_family *seconds = metrics_family(
        metrics, &(struct metric_desc){ .name = "karve_extender_request_duration_seconds",
                                        .help = "How long a call of kube-scheduler took.",
                                        .type = METRIC_HISTOGRAM,
                                        .labels = by_verb,
                                        .buckets = buckets,
                                        .bucket_count = KV_COUNT_OF(buckets) });
    struct metric_family *refused = metrics_family(
        metrics, &(struct metric_desc){ .name = "karve_extender_nodes_refused_total",
                                        .help = "Nodes that could not run a pod's images.",
                                        .type = METRIC_COUNTER });
    for (size_t verb = 0; verb < KV_COUNT_OF(verb_names); verb++) {
        for (size_t outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
            struct str values[] = { str_of(verb_names[verb]), str_of(outcome_names[outcome]) };
            x->requests[verb][outcome] = metric_get(requests, values);
        }
        struct str value = str_of(verb_names[verb]);
        x->seconds[verb] = metric_get(seconds, &value);
    }
    x->refused = metric_get(refused, NULL);
}

struct extender *extender_new(struct extender_options options)
{
    struct extender *x = kv_calloc(1, sizeof *x);
    x->options = options;
    if (options.maybe_metrics)
        metrics_open(x, options.maybe_metrics);
    return x;
}

void extender_free(struct extender *x)
{
    if (!x)
        return;
    for (size_t verb = 0; verb < KV_COUNT_OF(verb_names); verb++) {
        for (size_t outcome = 0; outcome < OUTCOME_COUNT; outcome++)
            metric_unref(x->requests[verb][outcome]);
        metric_unref(x->seconds[verb]);
    }
    metric_unref(x->refused);
    free(x);
}

/* --- reading a request --- */

/* Go writes field names with capitals and reads them in any case, and so do we. */
static const json_val *member(const json_val *object, const char *name)
{
    size_t len = strlen(name);
    if (!json_is_object(object))
        return NULL;
    json_each_member(object, key, value) {
        struct str text = json_key(key);
        if (text.len == len && strncasecmp(text.p, name, len) == 0)
            return value;
    }
    return NULL;
}

struct victims {
    const json_val *pods; /* of NodeNameToVictims, or of NodeNameToMetaVictims */
    int64_t violations;
    bool meta;
};

struct request {
    const json_val *pod;
    struct str *names;
    const json_val *maybe_nodes; /* whole nodes were sent: nodeCacheCapable is not set */
    struct victims *victims;     /* of preempt, per name */
    uint32_t count;
};

static int read_names(struct arena *arena, const json_val *list, struct request *out,
                      struct err *err)
{
    out->names = arena_array(arena, struct str, json_count(list));
    json_each_item(list, item) {
        if (!json_is_string(item))
            return err_set(err, ERR_INVALID, "NodeNames[%u]: expected a string", out->count);
        out->names[out->count++] = json_str(item);
    }
    return 0;
}

static int read_nodes(struct arena *arena, const json_val *list, struct request *out,
                      struct err *err)
{
    const json_val *items = member(list, "items");
    out->maybe_nodes = list;
    out->names = arena_array(arena, struct str, json_count(items));
    if (!json_is_array(items))
        return 0;
    json_each_item(items, item) {
        struct str name = json_str(json_get(json_get(item, STR("metadata")), STR("name")));
        if (!name.len)
            return err_set(err, ERR_INVALID, "Nodes.items[%u].metadata.name: missing", out->count);
        out->names[out->count++] = name;
    }
    return 0;
}

static int read_victims(struct arena *arena, const json_val *root, struct request *out,
                        struct err *err)
{
    const json_val *meta = member(root, "NodeNameToMetaVictims"),
                   *whole = member(root, "NodeNameToVictims");
    const json_val *map = json_is_object(meta) ? meta : whole;
    out->names = arena_array(arena, struct str, json_count(map));
    out->victims = arena_array(arena, struct victims, json_count(map));
    if (!json_is_object(map))
        return 0;
    json_each_member(map, key, value) {
        const json_val *count = member(value, "NumPDBViolations");
        if (!json_is_null(value) && !json_is_object(value))
            return err_set(err, ERR_INVALID, "victims of %s: expected an object",
                           STR_SHOWN(json_key(key)));
        out->names[out->count] = json_key(key);
        out->victims[out->count++] = (struct victims){
            .pods = member(value, "Pods"),
            .violations = json_is_int(count) ? (int64_t)json_double(count) : 0,
            .meta = map == meta,
        };
    }
    return 0;
}

static int read_request(struct arena *arena, enum extender_verb verb, const json_val *root,
                        struct request *out, struct err *err)
{
    *out = (struct request){ .pod = member(root, "Pod") };
    const json_val *names = member(root, "NodeNames"), *nodes = member(root, "Nodes");
    if (!json_is_object(out->pod))
        return err_set(err, ERR_INVALID, "Pod: missing");
    if (verb == EXTENDER_PREEMPT ? read_victims(arena, root, out, err) < 0
        : json_is_array(names)   ? read_names(arena, names, out, err) < 0
        : json_is_object(nodes)  ? read_nodes(arena, nodes, out, err) < 0
                                 : false)
        return -1;
    if (out->count > EXTENDER_NODES_MAX)
        return err_set(err, ERR_INVALID, "%u nodes: more than %d", out->count, EXTENDER_NODES_MAX);
    return 0;
}

/* --- the pod --- */

static int find_demand(struct extender *x, const json_val *json, struct pod_demand *out,
                       struct err *err)
{
    struct compat_service *service = x->options.service;
    struct str uid = json_str(json_get(json_get(json, STR("metadata")), STR("uid")));
    const struct object *pod = NULL;
    if (compat_service_demand_of(service, uid, DEMAND_PLACE, out))
        return 0;
    if (object_decode(x->options.pool, &pod_kind, json, &pod, err) < 0)
        return err_wrap(err, "Pod");
    compat_service_demand(service, pod_of(pod), DEMAND_PLACE, out);
    object_unref(pod);
    return 0;
}

/* The scheduler has heard of it and we have not yet. */
static bool is_strange(struct fleet_verdict verdict)
{
    return verdict.match == MATCH_UNKNOWN && verdict.class_ix == UINT32_MAX;
}

static bool is_admitted(const struct extender *x, struct fleet_verdict verdict)
{
    enum unknown_policy policy = compat_service_settings(x->options.service)->unknown_features;
    return verdict.match == MATCH_YES ||
           (verdict.match == MATCH_UNKNOWN && policy != UNKNOWN_DENY && !is_strange(verdict));
}

/* --- answers --- */

static void add_error(struct buf *out, const char *text)
{
    buf_addz(out, "{\"Error\":");
    buf_add_quoted(out, str_of(text));
    buf_addc(out, '}');
}

/* The reason of a node as JSON, worked out for the first of its class and the same for the others. */
static struct str reason(struct extender *x, const struct demand *demand, struct str node,
                         struct fleet_verdict verdict, struct map *known, struct arena *arena)
{
    AUTO_BUF words = { 0 }, quoted = { 0 };
    uint64_t key = (uint64_t)verdict.class_ix << 16 | (uint64_t)verdict.match << 8 | 1;
    uintptr_t found;
    if (verdict.class_ix != UINT32_MAX && map_get(known, key, &found))
        return *(struct str *)found;
    buf_addz(&words, "node(s) refused: "); /* the scheduler counts equal ones in front of it */
    compat_service_explain(x->options.service, demand, node, &words);
    buf_cut(&words, str_utf8_cut(buf_str(&words), EXTENDER_REASON_BYTES_MAX));
    buf_add_quoted(&quoted, buf_str(&words));
    struct str *kept = arena_new(arena, struct str);
    *kept = arena_str(arena, buf_str(&quoted));
    map_put(known, key, (uintptr_t)kept);
    return *kept;
}

static void write_names(const struct extender *x, const struct request *request,
                        const struct fleet_verdict *verdicts, struct buf *out)
{
    bool first = true;
    buf_addz(out, "\"NodeNames\":[");
    for (uint32_t i = 0; i < request->count; i++) {
        if (!is_admitted(x, verdicts[i]))
            continue;
        buf_addz(out, first ? "" : ",");
        buf_add_quoted(out, request->names[i]);
        first = false;
    }
    buf_addc(out, ']');
}

/* Who was sent whole nodes wants them back. */
static void write_nodes(const struct extender *x, const struct request *request,
                        const struct fleet_verdict *verdicts, struct buf *out)
{
    uint32_t i = 0;
    bool first = true;
    buf_addz(out, "\"Nodes\":{\"metadata\":{},\"items\":[");
    json_each_item(member(request->maybe_nodes, "items"), item) {
        if (is_admitted(x, verdicts[i++])) {
            buf_addz(out, first ? "" : ",");
            json_write(item, out);
            first = false;
        }
    }
    buf_addz(out, "]}");
}

/* For the moment. */
static void write_strange(const struct request *request, const struct fleet_verdict *verdicts,
                          struct buf *out)
{
    bool first = true;
    for (uint32_t i = 0; i < request->count; i++) {
        if (!is_strange(verdicts[i]))
            continue;
        buf_addz(out, first ? "" : ",");
        buf_add_quoted(out, request->names[i]);
        buf_addz(out, ":\"its features are not known yet\"");
        first = false;
    }
}

static void write_filter(struct extender *x, const struct demand *demand,
                         const struct request *request, const struct fleet_verdict *verdicts,
                         struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct map known = { 0 };
    uint32_t refused = 0;
    buf_addc(out, '{');
    if (request->maybe_nodes)
        write_nodes(x, request, verdicts, out);
    else
        write_names(x, request, verdicts, out);
    buf_addz(out, ",\"FailedNodes\":{");
    write_strange(request, verdicts, out);
    buf_addz(out, "},\"FailedAndUnresolvableNodes\":{");
    for (uint32_t i = 0; i < request->count; i++) {
        if (is_admitted(x, verdicts[i]) || is_strange(verdicts[i]))
            continue;
        buf_addz(out, refused++ ? "," : "");
        buf_add_quoted(out, request->names[i]);
        buf_addc(out, ':');
        buf_add(out, reason(x, demand, request->names[i], verdicts[i], &known, &arena));
    }
    buf_addz(out, "},\"Error\":\"\"}");
    map_done(&known);
    if (x->refused)
        metric_add(x->refused, refused);
}

/* Sets with weights: the best that matches, of ten. A node of which something is not known comes after those of
 * which everything is. */
static void write_scores(const struct request *request, const struct fleet_verdict *verdicts,
                         struct buf *out)
{
    uint32_t best = 0;
    bool some_unknown = false;
    for (uint32_t i = 0; i < request->count; i++) {
        best = verdicts[i].weight > best ? verdicts[i].weight : best;
        some_unknown |= verdicts[i].match == MATCH_UNKNOWN;
    }
    buf_addc(out, '[');
    for (uint32_t i = 0; i < request->count; i++) {
        int score = best ? (int)(((uint64_t)SCORE_MAX * verdicts[i].weight + best / 2) / best) : 0;
        if (verdicts[i].match != MATCH_YES)
            score = 0;
        else if (some_unknown && score == 0)
            score = 1;
        buf_addz(out, i ? ",{\"Host\":" : "{\"Host\":");
        buf_add_quoted(out, request->names[i]);
        buf_addf(out, ",\"Score\":%d}", score);
    }
    buf_addc(out, ']');
}

static void write_victims(const struct extender *x, const struct request *request,
                          const struct fleet_verdict *verdicts, struct buf *out)
{
    bool first = true;
    buf_addz(out, "{\"NodeNameToMetaVictims\":{");
    for (uint32_t i = 0; i < request->count; i++) {
        const struct victims *victims = &request->victims[i];
        bool first_pod = true;
        if (!is_admitted(x, verdicts[i]))
            continue;
        buf_addz(out, first ? "" : ",");
        first = false;
        buf_add_quoted(out, request->names[i]);
        buf_addz(out, ":{\"Pods\":[");
        json_each_item(json_is_array(victims->pods) ? victims->pods : NULL, pod) {
            struct str uid =
                json_str(victims->meta ? member(pod, "UID")
                                       : json_get(json_get(pod, STR("metadata")), STR("uid")));
            buf_addz(out, first_pod ? "{\"UID\":" : ",{\"UID\":");
            buf_add_quoted(out, uid.p ? uid : STR(""));
            buf_addc(out, '}');
            first_pod = false;
        }
        buf_addf(out, "],\"NumPDBViolations\":%lld}", (long long)victims->violations);
    }
    buf_addz(out, "}}");
}

/* --- a call --- */

/* With all nodes as they should be for a pod whose images say nothing. */
static void admit_all(struct fleet_verdict *verdicts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        verdicts[i] = (struct fleet_verdict){ .match = MATCH_YES };
}

static struct str demand_trouble(const struct demand *demand, struct str *image)
{
    for (uint32_t i = 0; i < demand_image_count(demand); i++) {
        const struct fleet_image *of = demand_image(demand, i);
        if (of->trouble.len) {
            *image = of->name;
            return of->trouble;
        }
    }
    return STR_NONE;
}

static enum outcome_kind refuse(enum outcome_kind outcome, enum extender_verb verb, struct buf *out,
                                const char *fmt, ...) KV_PRINTF(4, 5);

/* The scheduler tries again, with back-off, after an error; after nodes that cannot be resolved only when
 * something in the cluster changes. Priorities cannot fail. */
static enum outcome_kind refuse(enum outcome_kind outcome, enum extender_verb verb, struct buf *out,
                                const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    if (verb == EXTENDER_FILTER)
        add_error(out, text.p);
    else
        buf_addz(out, verb == EXTENDER_PRIORITIZE ? "[]" : "{\"NodeNameToMetaVictims\":{}}");
    return outcome;
}

static enum outcome_kind answer(struct extender *x, enum extender_verb verb,
                                const struct request *request, struct pod_demand *demand,
                                struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct compat_service *service = x->options.service;
    struct fleet_verdict *verdicts = arena_array(&arena, struct fleet_verdict, request->count);
    const struct demand *of = demand->maybe_demand;
    bool ignore = compat_service_settings(service)->on_resolve_error == RESOLVE_IGNORE;
    struct str image = STR_NONE, trouble = of ? demand_trouble(of, &image) : STR_NONE;
    enum outcome_kind outcome = of ? ANSWERED : PENDING;
    if (!of && !ignore)
        return refuse(PENDING, verb, out, "%.*s is being looked up: try again",
                      STR_ARG(demand->pending.items[0]));
    if (trouble.len)
        return refuse(TROUBLE, verb, out, "%.*s: %.*s", STR_ARG(image), STR_ARG(trouble));
    if (of && !demand_is_empty(of))
        compat_service_judge(service, of, request->names, request->count, verdicts);
    else
        admit_all(verdicts, request->count);
    if (verb == EXTENDER_FILTER)
        write_filter(x, of, request, verdicts, out);
    else if (verb == EXTENDER_PRIORITIZE)
        write_scores(request, verdicts, out);
    else
        write_victims(x, request, verdicts, out);
    return outcome;
}

int extender_answer(struct extender *x, enum extender_verb verb, struct str body, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct doc doc;
    struct request request;
    struct pod_demand demand = { 0 };
    enum outcome_kind outcome = MALFORMED;
    int64_t begin_ns = clock_mono_ns(x->options.clock);
    if (json_read_trusted(body, &doc, &err) == 0) {
        if (read_request(&arena, verb, doc.root, &request, &err) == 0 &&
            find_demand(x, request.pod, &demand, &err) == 0)
            outcome = answer(x, verb, &request, &demand, out);
        pod_demand_done(&demand);
        doc_done(&doc);
    }
    if (outcome == MALFORMED) {
        log_warn(x->options.maybe_log, "a call of the scheduler cannot be read",
                 LOG_Z("verb", verb_names[verb]), LOG_ERR(&err));
        add_error(out, err.text);
    }
    if (x->requests[verb][outcome]) {
        metric_inc(x->requests[verb][outcome]);
        metric_observe(x->seconds[verb],
                       (double)(clock_mono_ns(x->options.clock) - begin_ns) / 1e9);
    }
    return outcome == MALFORMED ? 400 : 200;
}

/* --- HTTP --- */

static void serve(void *ctx, enum extender_verb verb, const struct served_request *request,
                  struct served_reply *reply)
{
    reply->content_type = "application/json";
    if (!str_eqz(request->method, "POST")) {
        reply->status = 405;
        return;
    }
    reply->status = extender_answer(ctx, verb, request->body, &reply->body);
}

static void serve_filter(void *ctx, const struct served_request *request,
                         struct served_reply *reply)
{
    serve(ctx, EXTENDER_FILTER, request, reply);
}

static void serve_prioritize(void *ctx, const struct served_request *request,
                             struct served_reply *reply)
{
    serve(ctx, EXTENDER_PRIORITIZE, request, reply);
}

static void serve_preempt(void *ctx, const struct served_request *request,
                          struct served_reply *reply)
{
    serve(ctx, EXTENDER_PREEMPT, request, reply);
}

void extender_routes(struct extender *x, struct http_route out[EXTENDER_ROUTES])
{
    out[0] = (struct http_route){ "/scheduler/filter", serve_filter, x, true };
    out[1] = (struct http_route){ "/scheduler/prioritize", serve_prioritize, x, true };
    out[2] = (struct http_route){ "/scheduler/preempt", serve_preempt, x, true };
}
