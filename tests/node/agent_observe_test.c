/* The observing agent on a real containerd, and its local API. */
#include "node/agent_pods.h"

#include "base/map.h"
#include "codec/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* --- the stream of events, read by a thread into a file in memory --- */

struct stream {
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    struct buf text;
};

static void *stream_main(void *arg)
{
    struct stream *s = arg;
    char chunk[4096];
    for (ssize_t n; (n = read(s->fd, chunk, sizeof chunk)) > 0;) {
        pthread_mutex_lock(&s->lock);
        buf_add(&s->text, (struct str){ chunk, (size_t)n });
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static void stream_open(struct node_fixture *f, struct stream *s)
{
    *s = (struct stream){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->agent_api);
    static const char request[] = "GET /events HTTP/1.0\r\n\r\n";
    EXPECT_EQ(connect(s->fd, (struct sockaddr *)&address, sizeof address), 0);
    EXPECT_EQ(write(s->fd, request, sizeof request - 1), sizeof request - 1);
    pthread_mutex_init(&s->lock, NULL);
    EXPECT_EQ(pthread_create(&s->thread, NULL, stream_main, s), 0);
}

/* What has come so far, without the head of the answer. */
static struct str stream_text(struct node_fixture *f, struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    struct str text = arena_str(&f->arena, buf_str(&s->text));
    pthread_mutex_unlock(&s->lock);
    const char *end = strstr(text.p, "\r\n\r\n");
    return end ? str_of(end + 4) : STR("");
}

static bool stream_is_open(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool open = s->text.len > 0;
    pthread_mutex_unlock(&s->lock);
    return open;
}

static bool stream_has(struct node_fixture *f, struct stream *s, const char *words)
{
    return strstr(stream_text(f, s).p, words) != NULL;
}

static void stream_close(struct stream *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    pthread_mutex_destroy(&s->lock);
    buf_done(&s->text);
}

/* --- what the runtime and the agent each have, as comparable text --- */

static void add_line(struct buf *out, struct str uid, const char *kind, struct str id,
                     const char *state)
{
    buf_addf(out, "%.*s %s %.*s %s\n", STR_ARG(uid), kind, STR_ARG(id), state);
}

static struct str sorted_lines(struct node_fixture *f, const struct buf *text)
{
    VEC(struct str) lines = { 0 };
    for (struct str line, rest = buf_str(text); str_cut(rest, '\n', &line, &rest);)
        vec_push(&lines, line);
    size_t count = str_sort_unique(lines.items, lines.count);
    AUTO_BUF out = { 0 };
    for (size_t i = 0; i < count; i++)
        buf_addf(&out, "%.*s\n", STR_ARG(lines.items[i]));
    vec_done(&lines);
    return arena_str(&f->arena, buf_str(&out));
}

static struct str runtime_state(struct node_fixture *f)
{
    AUTO_BUF text = { 0 };
    const struct runtime_listing *listing = fixture_list(f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        const struct runtime_pod *pod = &listing->pods[i];
        for (uint32_t j = 0; j < pod->sandboxes.count; j++)
            add_line(&text, pod->uid, "sandbox", pod->sandboxes.items[j].id,
                     pod->sandboxes.items[j].state == RUNTIME_RUNNING ? "ready" : "not ready");
        for (uint32_t j = 0; j < pod->containers.count; j++)
            add_line(&text, pod->uid, "container", pod->containers.items[j].id,
                     runtime_state_name(pod->containers.items[j].state));
    }
    return sorted_lines(f, &text);
}

static struct str agent_state(struct node_fixture *f)
{
    AUTO_BUF body = { 0 };
    AUTO_BUF text = { 0 };
    struct doc doc;
    struct err err;
    EXPECT_EQ(fixture_agent_get(f, "/pods", &body), 200);
    EXPECT_OK(json_read(buf_str(&body), &doc, &err), err);
    json_each_item(json_get(doc.root, STR("pods")), pod) {
        struct str uid = json_str(json_get(pod, STR("uid")));
        if (json_get(pod, STR("error"))) /* for the moment; it looks again */
            add_line(&text, uid, "error", STR(""), "");
        json_each_item(json_get(pod, STR("sandboxes")), sandbox)
            add_line(&text, uid, "sandbox", json_str(json_get(sandbox, STR("id"))),
                     json_bool(json_get(sandbox, STR("ready"))) ? "ready" : "not ready");
        json_each_item(json_get(pod, STR("containers")), container) {
            struct str state = json_str(json_get(container, STR("state")));
            add_line(&text, uid, "container", json_str(json_get(container, STR("id"))),
                     arena_str(&f->arena, state).p);
        }
    }
    struct str out = sorted_lines(f, &text);
    doc_done(&doc);
    return out;
}

/* --- observing --- */

static void observe(struct node_fixture *f)
{
    fixture_agent_start(f, (const char *const[]){ "--node-name", NODE_NAME, NULL });
}

TEST(an_observer_sees_everything_and_changes_nothing)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "uid-seen" });
    struct str running = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    fixture_create(f, sandbox, (struct fixture_container){ .maybe_name = "unstarted" });
    for (uint32_t attempt = 0; attempt < 3;
         attempt++) { /* an agent that runs pods would clear up */
        struct str ended = fixture_run(
            f, sandbox, (struct fixture_container){ .maybe_name = "ended", .attempt = attempt });
        fixture_stop(f, ended, 10);
    }
    struct str stopped = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "uid-stopped" });
    fixture_stop_sandbox(f, stopped);
    struct str before = runtime_state(f);

    observe(f);
    WITHIN_LIMIT(f, str_eq(agent_state(f), runtime_state(f)));
    EXPECT_STR(pod_value(f, "seen", "name"), "uid-seen");
    EXPECT_TRUE(!pod_value(f, "seen", "worker.state").p);
    linger(2500); /* housekeeping would have been twice */
    EXPECT_TRUE(str_eq(runtime_state(f), before));

    fixture_kill(f, running, SIGKILL);
    WITHIN_LIMIT(f, pod_says(f, "seen", "containers[main].state", "exited"));
    EXPECT_STR(pod_value(f, "seen", "containers[main].exitCode"), "137");
    fixture_agent_stop(f);
}

TEST(an_agent_that_runs_pods_leaves_those_of_others_alone)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "foreign" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    fixture_run_sandbox(f, (struct fixture_pod){ .uid = "foreign-2" });
    agent_runs_pods(f);
    static_pod(f, "own", "containers: [" POLITE("main") "]");
    WITHIN_LIMIT(f, pod_says(f, "own", "status.conditions[Ready].status", "True"));
    static_pod_remove(f, "own");
    WITHIN_LIMIT(f, !runtime_pod_of(f, "own"));
    linger(2500); /* a housekeeping */
    EXPECT_EQ(fixture_inspect(f, id)->state, CRI__CONTAINER_STATE__RUNNING);
    EXPECT_EQ(fixture_list(f)->pod_count, 2);
}

/* --- churn --- */

/* What the stream told of one container or sandbox. */
struct told {
    uint32_t started, died, removed;
    bool disorder;
};

static void take_event(struct str_table *all, struct str line, int64_t *last_number)
{
    struct doc doc;
    struct err err;
    EXPECT_OK(json_read(line, &doc, &err), err);
    EXPECT_TRUE(!json_get(doc.root, STR("lost")));
    int64_t number = 0;
    EXPECT_TRUE(json_i64(json_get(doc.root, STR("number")), &number));
    EXPECT_TRUE(*last_number == 0 || number == *last_number + 1);
    *last_number = number;
    const json_val *id = json_get(doc.root, STR("containerID"));
    struct str key = json_str(id ? id : json_get(doc.root, STR("sandboxID")));
    struct str type = json_str(json_get(doc.root, STR("type")));
    if (key.len) {
        struct told *told = str_table_get(all, key);
        if (!told) {
            told = kv_calloc(1, sizeof *told);
            str_table_put(all, key, told);
        }
        if (str_eqz(type, "ContainerStarted"))
            told->disorder |= told->started++ > 0 || told->died || told->removed;
        else if (str_eqz(type, "ContainerDied"))
            told->disorder |= told->died++ > 0 || told->removed;
        else if (str_eqz(type, "ContainerRemoved"))
            told->disorder |= told->removed++ > 0;
    }
    doc_done(&doc);
}

enum { WAVES = 5, WAVE_PODS = 10, POD_CONTAINERS = 4 };

/* Of a container or sandbox; all are removed in the end. */
enum fate { GOES_SOON = 1, ENDS, STAYS };

static void *fate_value(enum fate fate)
{
    static char places[STAYS + 1];
    return &places[fate];
}

struct wave {
    struct node_fixture f; /* a copy with an arena of its own: waves run side by side */
    uint32_t number;
    pthread_t thread;
    struct {
        struct str id;
        enum fate fate;
    } made[WAVE_PODS * (POD_CONTAINERS + 1)]; /* of each pod its containers and its sandbox */
    uint32_t made_count;
};

static void note_made(struct wave *w, struct str id, enum fate fate)
{
    w->made[w->made_count].id = id;
    w->made[w->made_count++].fate = fate;
}

/* Ten pods of four containers; of each pod one container stays, two end by themselves, one is killed. Half of
 * the pods are gone again at once. A call that fails ends the process, since this is no test's thread. */
static void *churn_wave(void *arg)
{
    struct wave *w = arg;
    struct node_fixture *f = &w->f;
    static const char *const quick[] = { "true", NULL }, *const soon[] = { "sleep", "0.1", NULL };
    const char *const *const commands[POD_CONTAINERS] = { NULL, quick, soon, NULL };
    for (uint32_t i = 0; i < WAVE_PODS; i++) {
        const char *uid = arena_strf(&f->arena, "churn-%u-%u", w->number, i).p;
        struct str sandbox =
            fixture_run_sandbox(f, (struct fixture_pod){ .uid = uid, .host_network = true });
        note_made(w, sandbox, i % 2 == 0 ? GOES_SOON : STAYS);
        for (uint32_t j = 0; j < POD_CONTAINERS; j++) {
            struct str id = fixture_create(
                f, sandbox,
                (struct fixture_container){ .maybe_name = arena_strf(&f->arena, "c%u", j).p,
                                            .command = commands[j] });
            bool runs = fixture_try_start(f, id);
            note_made(w, id, i % 2 == 0 ? GOES_SOON : j == 0 && runs ? STAYS : ENDS);
            if (j == 3 && runs)
                fixture_kill(f, id, SIGKILL);
        }
        if (i % 2 == 0) {
            fixture_stop_sandbox(f, sandbox);
            fixture_remove_sandbox(f, sandbox);
        }
    }
    return NULL;
}

TEST(of_two_hundred_containers_that_come_and_go_none_is_missed)
{
    struct node_fixture *f = node_fixture();
    observe(f);
    struct stream stream;
    stream_open(f, &stream);
    struct str_table made = { 0 }, told = { 0 };
    WITHIN_LIMIT(f, stream_is_open(&stream));
    struct wave *waves = kv_calloc(WAVES, sizeof *waves);
    for (uint32_t i = 0; i < WAVES; i++) {
        waves[i].f = *f;
        waves[i].f.arena = (struct arena){ 0 };
        waves[i].number = i;
        EXPECT_EQ(pthread_create(&waves[i].thread, NULL, churn_wave, &waves[i]), 0);
    }
    for (uint32_t i = 0; i < WAVES; i++) {
        pthread_join(waves[i].thread, NULL);
        for (uint32_t j = 0; j < waves[i].made_count; j++)
            str_table_put(&made, waves[i].made[j].id, fate_value(waves[i].made[j].fate));
    }
    EXPECT_EQ(made.live_count, 200 + WAVES * WAVE_PODS);
    WITHIN_LIMIT(f, str_eq(agent_state(f), runtime_state(f)));

    fixture_remove_all(f);
    WITHIN_LIMIT(f, str_eqz(agent_state(f), ""));
    /* The cache comes before the events: the last are there when one of what came after them is. */
    fixture_run_sandbox(f, (struct fixture_pod){ .uid = "uid-after", .host_network = true });
    WITHIN_LIMIT(f, stream_has(f, &stream, "uid-after"));
    int64_t last_number = 0;
    for (struct str line, rest = stream_text(f, &stream);
         str_cut(rest, '\n', &line, &rest) && !memmem(line.p, line.len, "uid-after", 9);)
        take_event(&told, line, &last_number);

    /* Each was told of in order, once; only one that came and went between two looks may be missing. Of
     * one that ended before the first look its start is not told. */
    uint32_t unseen = 0;
    str_table_each(&made, slot) {
        const struct told *t = str_table_get(&told, slot->key);
        if (!t && slot->value == fate_value(GOES_SOON)) {
            unseen++;
            continue;
        }
        EXPECT_TRUE(t != NULL);
        EXPECT_FALSE(t->disorder);
        EXPECT_TRUE(t->started == 1 || slot->value != fate_value(STAYS));
        EXPECT_EQ(t->died, 1);
        EXPECT_EQ(t->removed, 1);
    }
    printf("# %u of %u were never seen\n", unseen, made.live_count);
    EXPECT_EQ(told.live_count, made.live_count - unseen);
    str_table_each(&told, slot)
        free(slot->value);
    str_table_done(&told);
    str_table_done(&made);
    for (uint32_t i = 0; i < WAVES; i++)
        arena_done(&waves[i].f.arena);
    free(waves);
    stream_close(&stream);
}

/* --- the local API --- */

TEST(the_socket_is_for_root_alone_and_the_answers_are_those_promised)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "api", "containers: [" POLITE("main") "]");
    WITHIN_LIMIT(f, pod_says(f, "api", "status.phase", "Running"));

    struct stat st;
    EXPECT_EQ(stat(f->agent_api, &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600);

    AUTO_BUF body = { 0 };
    EXPECT_EQ(fixture_agent_get(f, "/healthz", &body), 200);
    EXPECT_STR(buf_str(&body), "ok\n");
    EXPECT_EQ(fixture_agent_get(f, "/pods/no-such", &body), 404);
    EXPECT_EQ(fixture_agent_get(f, "/pods/uid-api?newerThan=soon", &body), 400);
    EXPECT_EQ(fixture_agent_get(f, "/elsewhere", &body), 404);

    EXPECT_EQ(fixture_agent_get(f, "/metrics", &body), 200);
    static const char *const names[] = {
        "kubelet_pleg_relist_duration_seconds_bucket",
        "kubelet_pleg_relist_interval_seconds_bucket",
        "kubelet_pleg_last_seen_seconds ",
        "kubelet_pleg_discard_events",
        "karve_pleg_relist_running_seconds ",
        "karve_pleg_inspections_total{result=\"ok\"}",
        "karve_pleg_hints_total{result=\"asked\"}",
    };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        EXPECT_HAS(buf_str(&body), names[i]);
}

TEST(newer_than_waits_for_news_of_the_pod)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "uid-news" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    observe(f);
    WITHIN_LIMIT(f, pod_says(f, "news", "containers[main].state", "running"));
    int64_t time = pod_number(f, "news", "time");
    EXPECT_TRUE(time > 0);

    fixture_kill(f, id, SIGKILL);
    AUTO_BUF body = { 0 };
    int64_t until = fixture_deadline();
    for (;;) { /* a relist that was under way may still answer with the old state */
        const char *path =
            arena_strf(&f->arena, "/pods/uid-news?newerThan=%lld", (long long)time).p;
        EXPECT_EQ(fixture_agent_get(f, path, &body), 200);
        if (strstr(body.p, "\"exitCode\":137"))
            break;
        struct doc doc;
        struct err err;
        EXPECT_OK(json_read(buf_str(&body), &doc, &err), err);
        EXPECT_TRUE(json_i64(json_get(doc.root, STR("time")), &time));
        doc_done(&doc);
        fixture_wait(f, until, "the news", __FILE__, __LINE__);
    }
}

TEST(events_are_streamed_as_they_happen)
{
    struct node_fixture *f = node_fixture();
    observe(f);
    struct stream stream;
    stream_open(f, &stream);
    WITHIN_LIMIT(f, stream_is_open(&stream));
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "uid-life" });
    struct str id =
        fixture_run(f, sandbox,
                    (struct fixture_container){ .command = (const char *const[]){
                                                    "sh", "-c", "sleep 0.2; exit 4", NULL } });
    WITHIN_LIMIT(f, stream_has(f, &stream, "\"exitCode\":4"));
    fixture_remove(f, id);
    WITHIN_LIMIT(f, stream_has(f, &stream, "ContainerRemoved"));
    struct str text = stream_text(f, &stream);
    const char *started = strstr(text.p, "ContainerStarted"),
               *died = strstr(text.p, "ContainerDied");
    EXPECT_TRUE(started && died && started < died && died < strstr(text.p, "ContainerRemoved"));
    EXPECT_HAS(text, "\"container\":\"main\"");
    EXPECT_HAS(text, arena_strf(&f->arena, "%.*s", STR_ARG(id)).p);
    fixture_agent_stop(f); /* an open stream does not hold it up */
    stream_close(&stream);
}
