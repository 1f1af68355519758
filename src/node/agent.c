/* The node agent: its parts, and the loop that passes on what happens.
 *
 *     manifest folder --pods--+
 *     PLEG events ------------+--> loop --> pod workers --> container runtime
 *     probe verdicts ---------+                                  |
 *            ^                                                   |
 *            +------- PLEG: relist, pod cache <------------------+
 *
 * An observer has the PLEG and the cache and nothing else. With run_pods there are three more
 * threads: the loop, which never calls the runtime; one that asks the runtime how it is; and one
 * that removes what is left of ended containers. The loop does nothing before the first relist and the
 * first reading of the folder: until both are known, nothing is started and nothing is ended.
 *
 * Pods that another agent runs on this runtime are left alone: only sandboxes with our own mark
 * (AGENT_ANNOTATION) are ended when nobody wants them.
 */
#include "node/agent_inner.h"

#include "base/thread.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define HOUSEKEEPING_NS ((int64_t)2 * 1000000000)
#define FIRST_LOOK_NS ((int64_t)50 * 1000000) /* until the first relist and reading are there */

/* --- what wakes the loop --- */

static void wake_loop(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    agent->woken = true;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

static void on_event(void *ctx)
{
    wake_loop(ctx);
}

static void on_probe(void *ctx, struct str uid)
{
    struct agent *agent = ctx;
    pod_workers_sync(agent->workers, uid);
}

static void unref_pods(struct agent_pods *pods)
{
    for (uint32_t i = 0; i < pods->count; i++)
        node_pod_unref(pods->items[i]);
    free(pods->items);
    *pods = (struct agent_pods){ 0 };
}

/* The API's image of a static pod, which is there already. */
static bool is_mirror(const struct node_pod *pod)
{
    return pod->source == POD_FROM_API &&
           str_map_get(&pod->annotations, STR("kubernetes.io/config.mirror")).p != NULL;
}

void agent_deliver(struct agent *agent, enum pod_source source, const struct node_pod *const *pods,
                   uint32_t count)
{
    pthread_mutex_lock(&agent->lock);
    struct agent_pods *next = &agent->next[source];
    unref_pods(next);
    next->items = kv_calloc(count ? count : 1, sizeof *next->items);
    for (uint32_t i = 0; i < count; i++)
        if (!is_mirror(pods[i]))
            next->items[next->count++] = node_pod_ref(pods[i]);
    agent->has_next[source] = true;
    agent->woken = true;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

static void on_manifests(void *ctx, const struct node_pod *const *pods, uint32_t count)
{
    struct agent *agent = ctx;
    agent_deliver(agent, POD_FROM_FILE, pods, count);
    if (agent->opts.static_pods)
        agent->opts.static_pods(agent->opts.ctx, pods, count);
}

/* --- the loop --- */

static const struct node_pod *pods_find(const struct agent_pods *pods, struct str uid)
{
    for (uint32_t i = 0; i < pods->count; i++)
        if (str_eq(pods->items[i]->uid, uid))
            return pods->items[i];
    return NULL;
}

static bool is_wanted(const struct agent *agent, struct str uid)
{
    for (uint32_t i = 0; i < POD_SOURCE_COUNT; i++)
        if (pods_find(&agent->pods[i], uid))
            return true;
    return false;
}

static bool has_namesake(const struct agent_pods *pods, const struct runtime_status *status)
{
    for (uint32_t i = 0; i < pods->count; i++)
        if (str_eq(pods->items[i]->name, status->name) &&
            str_eq(pods->items[i]->namespace_, status->namespace_))
            return true;
    return false;
}

/* End what only the runtime knows, of our own. Of `maybe_namesakes` alone, if given: those whose name is
 * a wanted pod's. */
static void end_orphans(struct agent *agent, const struct agent_pods *maybe_namesakes)
{
    struct pod_cache_all all = pod_cache_all(agent->cache);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct runtime_status *status = all.items[i];
        if (!runtime_status_running(status) || pod_workers_knows(agent->workers, status->uid) ||
            is_wanted(agent, status->uid) ||
            (maybe_namesakes && !has_namesake(maybe_namesakes, status)))
            continue;
        if (runtime_status_ours(status))
            pod_workers_kill_runtime(agent->workers, status);
        else
            log_debug(agent->opts.log, "a pod of another agent is left alone",
                      LOG_STR("namespace", status->namespace_), LOG_STR("pod", status->name));
    }
    pod_cache_all_done(&all);
}

static void housekeeping(struct agent *agent)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < POD_SOURCE_COUNT; i++)
        count += agent->pods[i].count;
    struct str *uids = arena_array(&arena, struct str, count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < POD_SOURCE_COUNT; i++)
        for (uint32_t j = 0; j < agent->pods[i].count; j++)
            uids[n++] = agent->pods[i].items[j]->uid;
    bool forgotten = pod_workers_wanted(agent->workers, uids, count);
    for (uint32_t i = 0; i < POD_SOURCE_COUNT; i++)
        for (uint32_t j = 0; j < agent->pods[i].count; j++)
            if (!pod_workers_knows(agent->workers, agent->pods[i].items[j]->uid))
                pod_workers_update(agent->workers, agent->pods[i].items[j], true);
    end_orphans(agent, NULL);
    if (!atomic_exchange(&agent->may_collect, true) || forgotten)
        agent_collect_soon(agent);
}

/* A new set of a source's: first what is gone, so that its successor of the same name waits for it. Of a
 * manifest that was edited while we were away the runtime alone knows the predecessor. Static pods do
 * not wait for an API server, so until it was heard only their own namesakes are ended. */
static void take_pods(struct agent *agent, enum pod_source source, struct agent_pods *next)
{
    struct agent_pods before = agent->pods[source];
    for (uint32_t i = 0; i < before.count; i++)
        if (!pods_find(next, before.items[i]->uid))
            pod_workers_kill(agent->workers, before.items[i]->uid, (struct maybe_int){ 0 });
    agent->pods[source] = *next;
    agent->seen[source] = true;
    if (!agent->sources_seen) {
        agent->sources_seen = agent->seen[POD_FROM_FILE] && agent->seen[POD_FROM_API];
        if (agent->sources_seen)
            end_orphans(agent, NULL);
        else if (source == POD_FROM_FILE)
            end_orphans(agent, next);
    }
    for (uint32_t i = 0; i < next->count; i++)
        pod_workers_update(agent->workers, next->items[i],
                           !pods_find(&before, next->items[i]->uid));
    unref_pods(&before);
}

static void take_events(struct agent *agent)
{
    struct pod_event event;
    uint64_t lost = 0;
    bool died = false;
    while (event_sub_next(agent->events, 0, &event, &lost) == 1) {
        died |= event.type == POD_EVENT_DIED;
        if (event.type != POD_EVENT_REMOVED)
            pod_workers_sync(agent->workers, str_of(event.uid));
    }
    if (lost)
        pod_workers_sync_all(agent->workers);
    if (died || lost)
        agent_collect_soon(agent);
}

static void loop_once(struct agent *agent)
{
    take_events(agent);
    if (pod_cache_time(agent->cache) == 0 || !atomic_load(&agent->runtime_known))
        return; /* nothing is known yet */
    for (uint32_t i = 0; i < POD_SOURCE_COUNT; i++) {
        pthread_mutex_lock(&agent->lock);
        struct agent_pods next = agent->next[i];
        bool has_next = agent->has_next[i];
        agent->next[i] = (struct agent_pods){ 0 };
        agent->has_next[i] = false;
        pthread_mutex_unlock(&agent->lock);
        if (has_next)
            take_pods(agent, (enum pod_source)i, &next);
    }
    int64_t now = clock_mono_ns(agent->opts.clock);
    if (agent->sources_seen && now >= agent->housekeeping_ns) {
        housekeeping(agent);
        agent->housekeeping_ns = now + HOUSEKEEPING_NS;
    }
}

static void *loop_main(void *arg)
{
    struct agent *agent = arg;
    for (;;) {
        int64_t until = agent->sources_seen ? agent->housekeeping_ns
                                            : clock_mono_ns(agent->opts.clock) + FIRST_LOOK_NS;
        pthread_mutex_lock(&agent->lock);
        while (!agent->stopping && !agent->woken && clock_mono_ns(agent->opts.clock) < until)
            clock_wait(agent->opts.clock, &agent->changed, &agent->lock, until);
        bool stopping = agent->stopping;
        agent->woken = false;
        pthread_mutex_unlock(&agent->lock);
        if (stopping)
            return NULL;
        loop_once(agent);
    }
}

/* --- what the workers tell --- */

static void on_pod_event(void *ctx, const struct node_pod *pod, bool warning, struct str reason,
                         struct str message)
{
    struct agent *agent = ctx;
    if (warning)
        log_warn(agent->opts.log, "pod event", LOG_STR("namespace", pod->namespace_),
                 LOG_STR("pod", pod->name), LOG_STR("reason", reason), LOG_STR("message", message));
    else
        log_info(agent->opts.log, "pod event", LOG_STR("namespace", pod->namespace_),
                 LOG_STR("pod", pod->name), LOG_STR("reason", reason), LOG_STR("message", message));
    if (agent->opts.event)
        agent->opts.event(agent->opts.ctx, pod, warning, reason, message);
}

static void on_status(void *ctx, const struct node_pod *pod, const json_val *status, bool finished)
{
    struct agent *agent = ctx;
    log_debug(agent->opts.log, "pod status", LOG_STR("pod", pod->name),
              LOG_STR("phase", api_status_phase(status)), LOG_BOOL("finished", finished));
    if (agent->opts.status)
        agent->opts.status(agent->opts.ctx, pod, status, finished);
}

/* --- start and stop --- */

/* The address that packets to elsewhere leave from: the kernel tells, and nothing is sent. */
static struct str address_towards(struct arena *arena, const char *elsewhere, int family)
{
    struct addrinfo hints = { .ai_family = family,
                              .ai_socktype = SOCK_DGRAM,
                              .ai_flags = AI_NUMERICHOST };
    struct addrinfo *target = NULL;
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    char text[NI_MAXHOST] = "";
    if (getaddrinfo(elsewhere, "9", &hints, &target) != 0)
        return STR("");
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, target->ai_addr, target->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &len) == 0)
        (void)getnameinfo((struct sockaddr *)&own, len, text, sizeof text, NULL, 0, NI_NUMERICHOST);
    if (fd >= 0)
        close(fd);
    freeaddrinfo(target);
    return arena_str(arena, str_of(text));
}

/* The node's addresses, one of each family. The targets are reserved for documentation. */
static struct str_list host_addresses(struct arena *arena)
{
    struct str *ips = arena_array(arena, struct str, 2);
    uint32_t count = 0;
    ips[count] = address_towards(arena, "192.0.2.1", AF_INET);
    count += ips[count].len > 0;
    ips[count] = address_towards(arena, "2001:db8::1", AF_INET6);
    count += ips[count].len > 0;
    return (struct str_list){ ips, count };
}

static struct str_list strs_copy(struct arena *arena, struct str_list list)
{
    struct str *items = arena_array(arena, struct str, list.count);
    for (uint32_t i = 0; i < list.count; i++)
        items[i] = arena_str(arena, list.items[i]);
    return (struct str_list){ items, list.count };
}

static struct str node_name_of(struct agent *agent)
{
    char host[256] = "localhost";
    if (!agent->opts.node_name)
        (void)gethostname(host, sizeof host - 1);
    struct str name =
        arena_str(&agent->arena, str_of(agent->opts.node_name ? agent->opts.node_name : host));
    for (size_t i = 0; i < name.len; i++)
        ((char *)name.p)[i] = char_lower(name.p[i]);
    return name;
}

static struct str text_or(struct agent *agent, const char *maybe_text, const char *otherwise)
{
    return arena_str(&agent->arena, str_of(maybe_text ? maybe_text : otherwise));
}

static int64_t memory_of_host(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 ? (int64_t)info.totalram * info.mem_unit : 0;
}

static void learn_facts(struct agent *agent)
{
    const struct agent_options *opts = &agent->opts;
    agent->facts = (struct node_facts){
        .node_name = node_name_of(agent),
        .node_ips = opts->node_ips.count ? strs_copy(&agent->arena, opts->node_ips)
                                         : host_addresses(&agent->arena),
        .root = text_or(agent, opts->root, "/var/lib/karve"),
        .log_root = text_or(agent, opts->log_root, "/var/log/pods"),
        .container_log_root = text_or(agent, opts->container_log_root, "/var/log/containers"),
        .dns_servers = strs_copy(&agent->arena, opts->dns_servers),
        .dns_domain = text_or(agent, opts->dns_domain, ""),
        .allocatable = opts->allocatable,
        .memory_bytes = memory_of_host(),
    };
}

static int start_workers(struct agent *agent, struct err *err)
{
    const struct agent_options *opts = &agent->opts;
    struct str host_ip =
        agent->facts.node_ips.count ? agent->facts.node_ips.items[0] : STR("127.0.0.1");
    agent->prober = prober_new((struct prober_options){ .cri = agent->cri,
                                                        .clock = opts->clock,
                                                        .log = opts->log,
                                                        .metrics = opts->metrics,
                                                        .host_ip = host_ip,
                                                        .seed = opts->seed,
                                                        .changed = on_probe,
                                                        .ctx = agent });
    agent->workers = pod_workers_new((struct workers_options){
        .cri = agent->cri,
        .pleg = agent->pleg,
        .cache = agent->cache,
        .prober = agent->prober,
        .clock = opts->clock,
        .log = opts->log,
        .metrics = opts->metrics,
        .facts = agent->facts,
        .objects = opts->objects,
        .seed = opts->seed,
        .backoff_initial_ns = opts->backoff_initial_ns,
        .backoff_max_ns = opts->backoff_max_ns,
        .retry_ns = opts->retry_ns,
        .network_ready = agent_network_ready,
        .status = on_status,
        .event = on_pod_event,
        .ctx = agent,
    });
    agent->events = event_sub_new(agent->hub, on_event, agent);
    if (prober_start(agent->prober, err) < 0 || agent_care_start(agent, err) < 0 ||
        thread_start(&agent->loop, "agent-loop", loop_main, agent, err) < 0)
        return -1;
    agent->has_loop = true;
    if (!opts->api)
        agent_deliver(agent, POD_FROM_API, NULL, 0);
    if (!opts->manifests) {
        agent_deliver(agent, POD_FROM_FILE, NULL, 0);
        return 0;
    }
    return manifest_source_start(
        (struct manifest_source_options){ .folder = opts->manifests,
                                          .node_name = agent->facts.node_name,
                                          .clock = opts->clock,
                                          .log = opts->log,
                                          .pods = on_manifests,
                                          .ctx = agent },
        &agent->source, err);
}

int agent_start(struct agent_options options, struct agent **out, struct err *err)
{
    struct agent *agent = kv_calloc(1, sizeof *agent);
    agent->opts = options;
    pthread_mutex_init(&agent->lock, NULL);
    clock_cond_init(&agent->changed);
    learn_facts(agent);
    agent->cache = pod_cache_new(options.clock);
    agent->hub = event_hub_new(options.clock);
    if (cri_new((struct cri_options){ .endpoint = options.endpoint,
                                      .clock = options.clock,
                                      .log = options.log,
                                      .metrics = options.metrics },
                &agent->cri, err) < 0)
        goto failed;
    agent->pleg = pleg_new((struct pleg_options){ .cri = agent->cri,
                                                  .cache = agent->cache,
                                                  .events = agent->hub,
                                                  .clock = options.clock,
                                                  .log = options.log,
                                                  .metrics = options.metrics,
                                                  .period_ns = options.relist_period_ns,
                                                  .no_hints = options.no_hints });
    if (pleg_start(agent->pleg, err) < 0 || (options.run_pods && start_workers(agent, err) < 0))
        goto failed;
    agent_metrics_start(agent);
    *out = agent;
    return 0;
failed:
    agent_stop(agent);
    return -1;
}

/* From the sources inwards: nobody calls into a part that is gone. */
void agent_stop(struct agent *agent)
{
    if (!agent)
        return;
    agent_metrics_stop(agent);
    manifest_source_stop(agent->source);
    pthread_mutex_lock(&agent->lock);
    agent->stopping = true;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
    if (agent->has_loop)
        pthread_join(agent->loop, NULL);
    agent_care_stop(agent);
    if (agent->prober)
        prober_stop(agent->prober);
    if (agent->workers)
        pod_workers_stop(agent->workers);
    if (agent->pleg)
        pleg_stop(agent->pleg);
    event_hub_close(agent->hub);
    event_sub_free(agent->events);
    pod_workers_free(agent->workers);
    prober_free(agent->prober);
    pleg_free(agent->pleg);
    cri_free(agent->cri);
    event_hub_free(agent->hub);
    pod_cache_free(agent->cache);
    for (uint32_t i = 0; i < POD_SOURCE_COUNT; i++) {
        unref_pods(&agent->pods[i]);
        unref_pods(&agent->next[i]);
    }
    pthread_mutex_destroy(&agent->lock);
    pthread_cond_destroy(&agent->changed);
    arena_done(&agent->arena);
    free(agent->runtime_version);
    free(agent);
}

struct pod_cache *agent_cache(struct agent *agent)
{
    return agent->cache;
}

struct event_hub *agent_events(struct agent *agent)
{
    return agent->hub;
}

const struct node_facts *agent_facts(const struct agent *agent)
{
    return &agent->facts;
}

void agent_runtime_version(struct agent *agent, struct buf *out)
{
    pthread_mutex_lock(&agent->lock);
    buf_addz(out, agent->runtime_version ? agent->runtime_version : "");
    pthread_mutex_unlock(&agent->lock);
}
