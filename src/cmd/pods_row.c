/* What a pod is like, in one word and a few numbers.
 *
 * Of a pod that the agent runs there is the status of the API, and the word is found as kubectl finds it:
 * the phase, unless a container waits or has ended for a reason; before that what holds up the init
 * containers. Of another there are only its containers as the runtime shows them, newest first and of each
 * name perhaps several: the newest counts, and those before it tell of restarts. The runtime does not say
 * which are init containers: one that succeeded before another was first made is taken for one.
 */
#include "cmd/pods_inner.h"

#include "base/vec.h"
#include "cmd/table.h"
#include "codec/duration.h"

enum fact_state { FACT_WAITING, FACT_RUNNING, FACT_ENDED, FACT_UNKNOWN };

/* A container, from either source. */
struct fact {
    struct str name, reason;
    enum fact_state state;
    int64_t exit_code, signal, restart_count;
    int64_t created_us, started_us, finished_us;
    int64_t last_exit_code, last_finished_us; /* of the instance before */
    bool ready, started;
};

struct facts {
    struct fact *items;
    size_t count;
};

static int64_t int_of(const json_val *object, const char *key)
{
    int64_t value = 0;
    json_i64(json_get(object, str_of(key)), &value);
    return value;
}

static int64_t time_of(const json_val *object, const char *key)
{
    int64_t us = 0;
    struct str text = json_str(json_get(object, str_of(key)));
    return text.len && time_parse(text, &us, NULL) == 0 ? us : 0;
}

static struct str text_of(const json_val *object, const char *key)
{
    return json_str(json_get(object, str_of(key)));
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- facts --- */

static struct fact fact_of_status(const json_val *status)
{
    const json_val *state = json_get(status, STR("state"));
    const json_val *waiting = json_get(state, STR("waiting")),
                   *running = json_get(state, STR("running")),
                   *ended = json_get(state, STR("terminated"));
    const json_val *some = ended ? ended : running ? running : waiting;
    const json_val *last = json_path(status, "lastState.terminated");
    return (struct fact){
        .name = text_of(status, "name"),
        .state = ended     ? FACT_ENDED
                 : running ? FACT_RUNNING
                           : FACT_WAITING,
        .reason = text_of(some, "reason"),
        .exit_code = int_of(ended, "exitCode"),
        .signal = int_of(ended, "signal"),
        .started_us = time_of(some, "startedAt"),
        .finished_us = time_of(ended, "finishedAt"),
        .last_exit_code = int_of(last, "exitCode"),
        .last_finished_us = time_of(last, "finishedAt"),
        .restart_count = int_of(status, "restartCount"),
        .ready = json_bool(json_get(status, STR("ready"))),
        .started = json_bool(json_get(status, STR("started"))),
    };
}

static struct facts facts_of_statuses(struct arena *arena, const json_val *list)
{
    struct facts facts = { .items = arena_array(arena, struct fact, json_count(list)) };
    json_each_item(list, item)
        facts.items[facts.count++] = fact_of_status(item);
    return facts;
}

static struct fact fact_of_instance(const json_val *container)
{
    struct str state = text_of(container, "state");
    bool running = str_eqz(state, "running"), ended = str_eqz(state, "exited");
    struct fact fact = {
        .name = text_of(container, "name"),
        .state = running                     ? FACT_RUNNING
                 : ended                     ? FACT_ENDED
                 : str_eqz(state, "created") ? FACT_WAITING
                                             : FACT_UNKNOWN,
        .reason = text_of(container, "reason"),
        .exit_code = int_of(container, "exitCode"),
        .created_us = time_of(container, "createdAt"),
        .started_us = time_of(container, "startedAt"),
        .finished_us = time_of(container, "finishedAt"),
        .restart_count = int_of(container, "restartCount"),
        .ready = running,
    };
    if (ended && !fact.reason.len)
        fact.reason = fact.exit_code ? STR("Error") : STR("Completed");
    return fact;
}

static struct fact *fact_find(struct facts *facts, struct str name)
{
    for (size_t i = 0; i < facts->count; i++)
        if (str_eq(facts->items[i].name, name))
            return &facts->items[i];
    return NULL;
}

/* The newest instance of each name, the oldest of them first. */
static struct facts facts_of_instances(struct arena *arena, const json_val *list)
{
    struct facts facts = { .items = arena_array(arena, struct fact, json_count(list)) };
    json_each_item(list, item) {
        struct fact fact = fact_of_instance(item), *newer = fact_find(&facts, fact.name);
        if (!newer)
            facts.items[facts.count++] = fact;
        else if (fact.finished_us > newer->last_finished_us) {
            newer->last_finished_us = fact.finished_us;
            newer->last_exit_code = fact.exit_code;
        }
    }
    for (size_t i = 0; i < facts.count / 2; i++) {
        struct fact swapped = facts.items[i];
        facts.items[i] = facts.items[facts.count - 1 - i];
        facts.items[facts.count - 1 - i] = swapped;
    }
    return facts;
}

/* --- the word --- */

static void count_restarts(struct pod_row *row, const struct fact *fact)
{
    int64_t at_us = fact->last_finished_us;
    if (!at_us && fact->restart_count)
        at_us = fact->created_us; /* the instance before is gone */
    row->restart_count += fact->restart_count;
    row->restarted_us = later_of(row->restarted_us, at_us);
}

static struct str end_word(struct arena *arena, const struct fact *fact)
{
    if (fact->reason.len)
        return fact->reason;
    if (fact->signal)
        return arena_strf(arena, "Signal:%lld", (long long)fact->signal);
    return arena_strf(arena, "ExitCode:%lld", (long long)fact->exit_code);
}

/* Regular containers: counts them, and changes the word where one of them has more to say. */
static void read_regular(struct arena *arena, const struct facts *facts, bool pod_ready,
                         struct pod_row *row)
{
    bool some_run = false;
    for (size_t i = facts->count; i-- > 0;) { /* of several the first has the last word */
        const struct fact *fact = &facts->items[i];
        row->container_count++;
        count_restarts(row, fact);
        if (fact->state == FACT_WAITING && fact->reason.len)
            row->status = fact->reason;
        else if (fact->state == FACT_ENDED)
            row->status = end_word(arena, fact);
        else if (fact->state == FACT_UNKNOWN)
            row->status = STR("Unknown");
        else if (fact->state == FACT_RUNNING && fact->ready) {
            row->ready_count++;
            some_run = true;
        }
    }
    if (str_eqz(row->status, "Completed") && some_run)
        row->status = pod_ready ? STR("Running") : STR("NotReady");
}

static bool condition_is_true(const json_val *status, const char *type)
{
    json_each_item(json_get(status, STR("conditions")), item) {
        if (str_eqz(text_of(item, "type"), type))
            return str_eqz(text_of(item, "status"), "True");
    }
    return false;
}

/* The status does not say which init containers are sidecars: one that runs although a later one has begun
 * or all are over is one. */
static bool is_sidecar(const struct facts *inits, size_t ix, bool initialized)
{
    if (inits->items[ix].state != FACT_RUNNING)
        return false;
    for (size_t i = ix + 1; i < inits->count; i++)
        initialized = initialized || inits->items[i].state != FACT_WAITING;
    return initialized;
}

/* True: the pod is held up by one of them, and the word says so. */
static bool read_inits(struct arena *arena, const struct facts *inits, bool initialized,
                       struct pod_row *row)
{
    for (size_t i = 0; i < inits->count; i++) {
        const struct fact *fact = &inits->items[i];
        if (is_sidecar(inits, i, initialized)) {
            row->container_count++;
            row->ready_count += fact->ready;
            count_restarts(row, fact);
            continue;
        }
        if (fact->state == FACT_ENDED && fact->exit_code == 0)
            continue;
        count_restarts(row, fact);
        if (fact->state == FACT_ENDED)
            row->status = arena_strf(arena, "Init:%.*s", STR_ARG(end_word(arena, fact)));
        else if (fact->state == FACT_WAITING && fact->reason.len &&
                 !str_eqz(fact->reason, "PodInitializing"))
            row->status = arena_strf(arena, "Init:%.*s", STR_ARG(fact->reason));
        else
            row->status = arena_strf(arena, "Init:%zu/%zu", i, inits->count);
        return true;
    }
    return false;
}

static void read_status(struct arena *arena, const json_val *pod, struct facts inits,
                        struct facts regular, struct pod_row *row)
{
    const json_val *status = json_get(pod, STR("status"));
    struct str phase = text_of(status, "phase"), reason = text_of(status, "reason");
    struct str worker = json_str(json_path(pod, "worker.state"));
    bool initialized = condition_is_true(status, "Initialized");
    row->status = reason.len ? reason : phase.len ? phase : STR("Pending");
    if (read_inits(arena, &inits, initialized, row) && !initialized)
        row->container_count += (uint32_t)regular.count;
    else
        read_regular(arena, &regular, condition_is_true(status, "Ready"), row);
    bool over = str_eqz(phase, "Succeeded") || str_eqz(phase, "Failed");
    if (!over && (str_eqz(worker, "Terminating") || str_eqz(worker, "Terminated")))
        row->status = STR("Terminating");
}

static bool is_over_before(const struct fact *fact, const struct facts *facts)
{
    if (fact->state != FACT_ENDED || fact->exit_code != 0 || !fact->finished_us)
        return false;
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *other = &facts->items[i];
        if (other != fact && other->restart_count == 0 && other->created_us >= fact->finished_us)
            return true;
    }
    return false;
}

static void read_observed(struct arena *arena, const json_val *pod, const struct facts *facts,
                          struct pod_row *row)
{
    const json_val *newest = json_at(json_get(pod, STR("sandboxes")), 0);
    struct facts regular = { .items = arena_array(arena, struct fact, facts->count) };
    for (size_t i = 0; i < facts->count; i++)
        if (!is_over_before(&facts->items[i], facts))
            regular.items[regular.count++] = facts->items[i];
    for (size_t i = 0; i < regular.count; i++)
        if (regular.items[i].state == FACT_WAITING)
            regular.items[i].reason = STR("ContainerCreating");
    row->status = STR("Running");
    if (!newest && !facts->count)
        row->status = STR("Unknown");
    else if (!facts->count)
        row->status =
            json_bool(json_get(newest, STR("ready"))) ? STR("ContainerCreating") : STR("NotReady");
    read_regular(arena, &regular, false, row);
}

/* --- the rest --- */

static void tell_container(const struct fact *fact, struct buf *out)
{
    static const char *const words[] = { [FACT_WAITING] = "waiting",
                                         [FACT_RUNNING] = "running",
                                         [FACT_ENDED] = "exited",
                                         [FACT_UNKNOWN] = "unknown" };
    buf_addf(out, "%s%.*s=%s", out->len ? " " : "", STR_ARG(fact->name), words[fact->state]);
    bool plain = str_eqz(fact->reason, "Completed") || str_eqz(fact->reason, "Error");
    if (fact->state == FACT_ENDED && !plain && fact->reason.len)
        buf_addf(out, "(%lld,%.*s)", (long long)fact->exit_code, STR_ARG(fact->reason));
    else if (fact->state == FACT_ENDED)
        buf_addf(out, "(%lld)", (long long)fact->exit_code);
    else if (fact->reason.len)
        buf_addf(out, "(%.*s)", STR_ARG(fact->reason));
}

static void tell_change(struct arena *arena, const struct fact *fact, struct pod_row *row)
{
    bool over = fact->state != FACT_RUNNING; /* or waits to be started again */
    int64_t exit_code = fact->finished_us ? fact->exit_code : fact->last_exit_code;
    int64_t at_us = fact->finished_us ? fact->finished_us : fact->last_finished_us;
    if (!over)
        at_us = fact->started_us;
    if (at_us <= row->changed_us)
        return;
    row->changed_us = at_us;
    if (over)
        row->change =
            arena_strf(arena, "%.*s exited %lld", STR_ARG(fact->name), (long long)exit_code);
    else
        row->change = arena_strf(arena, "%.*s started", STR_ARG(fact->name));
}

static void tell_facts(struct arena *arena, const struct facts *facts, struct buf *containers,
                       struct pod_row *row)
{
    for (size_t i = 0; i < facts->count; i++) {
        tell_container(&facts->items[i], containers);
        tell_change(arena, &facts->items[i], row);
    }
}

static struct str ip_of(const json_val *pod)
{
    struct str ip = json_str(json_path(pod, "status.podIP"));
    if (!ip.len)
        ip = json_str(json_at(json_get(pod, STR("ips")), 0));
    const json_val *newest = json_at(json_get(pod, STR("sandboxes")), 0);
    bool host = json_bool(json_get(newest, STR("hostNetwork")));
    return ip.len ? ip : host ? STR("(host)") : STR("-");
}

static int64_t birth_of(const json_val *pod)
{
    int64_t us = time_of(json_get(pod, STR("status")), "startTime");
    if (us)
        return us;
    const json_val *sandboxes = json_get(pod, STR("sandboxes"));
    return time_of(json_at(sandboxes, json_count(sandboxes) ? json_count(sandboxes) - 1 : 0),
                   "createdAt");
}

void pod_row_read(struct arena *arena, const json_val *pod, struct pod_row *out)
{
    const json_val *status = json_get(pod, STR("status")), *worker = json_get(pod, STR("worker"));
    struct facts observed = facts_of_instances(arena, json_get(pod, STR("containers")));
    AUTO_BUF containers = { 0 };
    struct str error = text_of(pod, "error");
    struct pod_row row = { .born_us = birth_of(pod) };
    if (worker) {
        struct facts inits =
            facts_of_statuses(arena, json_get(status, STR("initContainerStatuses")));
        struct facts regular = facts_of_statuses(arena, json_get(status, STR("containerStatuses")));
        read_status(arena, pod, inits, regular, &row);
        tell_facts(arena, &inits, &containers, &row);
        tell_facts(arena, &regular, &containers, &row);
    } else {
        read_observed(arena, pod, &observed, &row);
        tell_facts(arena, &observed, &containers, &row);
    }
    row.namespace_ = cell_text(arena, text_of(pod, "namespace"));
    row.name = cell_text(arena, text_of(pod, "name"));
    row.uid = cell_text(arena, text_of(pod, "uid"));
    row.ip = cell_text(arena, ip_of(pod));
    row.status = cell_text(arena, row.status);
    row.containers = cell_text(arena, buf_str(&containers));
    row.change = cell_text(arena, row.change);
    row.worker = cell_text(arena, text_of(worker, "state"));
    row.trouble = cell_text(arena, error.len ? error : text_of(worker, "lastError"));
    *out = row;
}
