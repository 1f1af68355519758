/* The local API's answers: what the cache and the workers know, as JSON. Fields may be added, never
 * renamed. */
#include "node/agent_inner.h"

#include "codec/duration.h"

static void set_time_ns(struct json_build *b, json_mut *object, const char *key, int64_t ns)
{
    char text[TIME_TEXT_MAX];
    if (ns > 0)
        json_set_str(b, object, key, (struct str){ text, time_format_micro(ns / 1000, text) });
}

static void set_text(struct json_build *b, json_mut *object, const char *key, struct str text)
{
    if (text.len)
        json_set_str(b, object, key, text);
}

static json_mut *sandbox_json(struct json_build *b, const struct runtime_sandbox *sandbox)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "id", sandbox->id);
    json_set_i64(b, o, "attempt", sandbox->attempt);
    json_set_bool(b, o, "ready", sandbox->ready);
    json_set_bool(b, o, "hostNetwork", sandbox->host_network);
    set_time_ns(b, o, "createdAt", sandbox->created_ns);
    return o;
}

static json_mut *container_json(struct json_build *b, const struct runtime_container *c)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "name", c->name);
    json_set_str(b, o, "id", c->id);
    json_set_str(b, o, "sandboxID", c->sandbox_id);
    json_set_str(b, o, "state", str_of(runtime_state_name(c->state)));
    json_set_i64(b, o, "restartCount", c->restart_count);
    set_text(b, o, "image", c->image);
    set_text(b, o, "imageID", c->image_ref);
    set_time_ns(b, o, "createdAt", c->created_ns);
    set_time_ns(b, o, "startedAt", c->started_ns);
    set_time_ns(b, o, "finishedAt", c->finished_ns);
    if (c->state == RUNTIME_EXITED)
        json_set_i64(b, o, "exitCode", c->exit_code);
    set_text(b, o, "reason", c->reason);
    set_text(b, o, "message", c->message);
    return o;
}

static void add_runtime(struct json_build *b, json_mut *o, const struct runtime_status *status)
{
    json_mut *ips = json_new_array(b), *sandboxes = json_new_array(b),
             *containers = json_new_array(b);
    for (uint32_t i = 0; i < status->ips.count; i++)
        json_push(b, ips, json_new_str(b, status->ips.items[i]));
    for (uint32_t i = 0; i < status->sandboxes.count; i++)
        json_push(b, sandboxes, sandbox_json(b, &status->sandboxes.items[i]));
    for (uint32_t i = 0; i < status->containers.count; i++)
        json_push(b, containers, container_json(b, &status->containers.items[i]));
    json_set_i64(b, o, "time", status->timestamp_ns);
    json_set(b, o, STR("ips"), ips);
    json_set(b, o, STR("sandboxes"), sandboxes);
    json_set(b, o, STR("containers"), containers);
    set_text(b, o, "error", status->error);
}

static void add_worker(struct json_build *b, json_mut *o, const struct worker_view *view)
{
    json_mut *worker = json_new_object(b);
    json_set_str(b, worker, "state", str_of(view->state));
    set_time_ns(b, worker, "since", view->since_us * 1000);
    set_text(b, worker, "lastError", view->last_error);
    struct doc status = { 0 };
    if (view->status.len && json_read(view->status, &status, NULL) == 0)
        json_set(b, o, STR("status"), json_copy(b, status.root));
    doc_done(&status);
    json_set(b, o, STR("worker"), worker);
}

/* Either may be NULL, not both. */
static json_mut *pod_json(struct json_build *b, struct str uid,
                          const struct runtime_status *maybe_status,
                          const struct worker_view *maybe_view)
{
    json_mut *o = json_new_object(b);
    bool seen = maybe_status && maybe_status->name.len;
    json_set_str(b, o, "namespace",
                 seen         ? maybe_status->namespace_
                 : maybe_view ? maybe_view->namespace_
                              : STR(""));
    json_set_str(b, o, "name", seen ? maybe_status->name : maybe_view ? maybe_view->name : STR(""));
    json_set_str(b, o, "uid", uid);
    if (maybe_status)
        add_runtime(b, o, maybe_status);
    if (maybe_view)
        add_worker(b, o, maybe_view);
    return o;
}

static void worker_views_of(struct agent *agent, struct arena *arena, struct worker_views *out)
{
    *out = (struct worker_views){ 0 };
    if (agent->workers)
        pod_workers_view(agent->workers, arena, out);
}

void agent_pods_json(struct agent *agent, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_ARENA arena = { 0 };
    json_build_init(&b);
    struct pod_cache_all all = pod_cache_all(agent->cache);
    struct worker_views views;
    worker_views_of(agent, &arena, &views);

    json_mut *pods = json_new_array(&b);
    for (uint32_t i = 0, j = 0; i < all.count || j < views.count;) { /* both are sorted by uid */
        int order = i == all.count     ? 1
                    : j == views.count ? -1
                                       : str_cmp(all.items[i]->uid, views.uids[j]);
        const struct runtime_status *status = order <= 0 ? all.items[i++] : NULL;
        const struct worker_view *view = order >= 0 ? &views.items[j] : NULL;
        struct str uid = status ? status->uid : views.uids[j];
        j += order >= 0;
        json_push(&b, pods, pod_json(&b, uid, status, view));
    }
    json_mut *root = json_new_object(&b);
    json_set_str(&b, root, "node", agent->facts.node_name);
    json_set_i64(&b, root, "time", all.time_ns);
    json_set(&b, root, STR("pods"), pods);
    json_write_mut(root, out);
    pod_cache_all_done(&all);
}

bool agent_pod_json(struct agent *agent, struct str uid, int64_t newer_than_ns, int64_t until_ns,
                    struct buf *out, struct err *err)
{
    AUTO_STATUS status = NULL;
    err->kind = ERR_NONE;
    if (newer_than_ns < 0)
        status = pod_cache_get(agent->cache, uid);
    else if (pod_cache_get_newer_than(agent->cache, uid, newer_than_ns, until_ns, NULL, &status,
                                      err) < 0)
        return false;

    AUTO_JSON_BUILD b = { 0 };
    AUTO_ARENA arena = { 0 };
    json_build_init(&b);
    struct worker_views views;
    const struct worker_view *view = NULL;
    worker_views_of(agent, &arena, &views);
    for (uint32_t i = 0; i < views.count; i++)
        if (str_eq(views.uids[i], uid))
            view = &views.items[i];
    bool seen = status->sandboxes.count || status->containers.count || status->error.len;
    if (!seen && !view)
        return err_set(err, ERR_NOT_FOUND, "no pod with uid %s", STR_SHOWN(uid)) == 0;
    json_write_mut(pod_json(&b, uid, seen ? status : NULL, view), out);
    return true;
}

void pod_event_json(const struct pod_event *event, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *o = json_new_object(&b);
    json_set_i64(&b, o, "number", (int64_t)event->number);
    set_time_ns(&b, o, "time", event->wall_us * 1000);
    json_set_str(&b, o, "type", str_of(pod_event_name(event->type)));
    json_set_str(&b, o, "namespace", str_of(event->namespace_));
    json_set_str(&b, o, "pod", str_of(event->pod));
    json_set_str(&b, o, "uid", str_of(event->uid));
    set_text(&b, o, event->sandbox ? "sandboxID" : "containerID", str_of(event->id));
    set_text(&b, o, "container", str_of(event->container));
    if (event->has_exit_code)
        json_set_i64(&b, o, "exitCode", event->exit_code);
    set_text(&b, o, "reason", str_of(event->reason));
    json_write_mut(o, out);
}
