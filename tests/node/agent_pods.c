/* See agent_pods.h. */
#include "node/agent_pods.h"

#include "base/file.h"
#include "codec/json.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void agent_runs_pods(struct node_fixture *f)
{
    fixture_agent_start(f, (const char *const[]){ "--run-pods", "--node-name", NODE_NAME,
                                                  "--backoff-initial", "1s", "--backoff-max", "2s",
                                                  NULL });
}

void static_pod(struct node_fixture *f, const char *name, const char *spec, ...)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "apiVersion: v1\n"
             "kind: Pod\n"
             "metadata: {name: %s, uid: uid-%s}\n"
             "spec: { ",
             name, name);
    va_list args;
    va_start(args, spec);
    buf_vaddf(&text, spec, args);
    va_end(args);
    buf_addz(&text, " }\n");
    fixture_manifest(f, name, text.p);
}

void static_pod_remove(struct node_fixture *f, const char *name)
{
    fixture_manifest(f, name, NULL);
}

/* --- what the agent says --- */

static const json_val *item_called(const json_val *array, struct str name)
{
    json_each_item(array, item) {
        if (str_eq(json_str(json_get(item, STR("name"))), name) ||
            str_eq(json_str(json_get(item, STR("type"))), name))
            return item;
    }
    return NULL;
}

static const json_val *value_at(const json_val *v, struct str path)
{
    while (path.len && v) {
        struct str step, name = STR_NONE;
        str_cut(path, '.', &step, &path);
        ptrdiff_t open = str_find(step, '[');
        if (open >= 0) {
            name = str_sub(step, (size_t)open + 1, step.len - (size_t)open - 2);
            step = str_sub(step, 0, (size_t)open);
        }
        v = json_get(v, step);
        if (name.p)
            v = item_called(v, name);
    }
    return v;
}

struct str pod_value(struct node_fixture *f, const char *name, const char *path)
{
    AUTO_BUF body = { 0 };
    struct doc doc;
    struct err err;
    if (fixture_agent_get(f, arena_strf(&f->arena, "/pods/uid-%s", name).p, &body) != 200)
        return STR_NONE;
    EXPECT_OK(json_read(buf_str(&body), &doc, &err), err);
    const json_val *v = value_at(doc.root, str_of(path));
    struct str text = STR_NONE;
    int64_t number;
    if (json_is_string(v))
        text = arena_str(&f->arena, json_str(v));
    else if (json_is_bool(v))
        text = json_bool(v) ? STR("true") : STR("false");
    else if (json_i64(v, &number))
        text = arena_strf(&f->arena, "%" PRId64, number);
    else if (v)
        text = STR("(an object)");
    doc_done(&doc);
    return text;
}

bool pod_says(struct node_fixture *f, const char *name, const char *path, const char *want)
{
    return str_eqz(pod_value(f, name, path), want);
}

int64_t pod_number(struct node_fixture *f, const char *name, const char *path)
{
    int64_t number;
    return str_to_i64(pod_value(f, name, path), &number) ? number : -1;
}

bool container_says(struct node_fixture *f, const char *name, const char *container,
                    const char *path, const char *want)
{
    return pod_says(
        f, name, arena_strf(&f->arena, "status.containerStatuses[%s].%s", container, path).p, want);
}

bool pod_is_known(struct node_fixture *f, const char *name)
{
    AUTO_BUF body = { 0 };
    return fixture_agent_get(f, arena_strf(&f->arena, "/pods/uid-%s", name).p, &body) != 404;
}

/* --- what the runtime has --- */

const struct runtime_pod *runtime_pod_of(struct node_fixture *f, const char *name)
{
    const struct runtime_listing *listing = fixture_list(f);
    struct str uid = arena_strf(&f->arena, "uid-%s", name);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        if (str_eq(listing->pods[i].uid, uid))
            return &listing->pods[i];
    }
    return NULL;
}

struct str newest_id(struct node_fixture *f, const char *name, const char *maybe_container)
{
    const struct runtime_pod *pod = runtime_pod_of(f, name);
    if (!pod)
        fail_msg("the runtime has no pod %s", name);
    if (!maybe_container) {
        EXPECT_TRUE(pod->sandboxes.count > 0);
        return pod->sandboxes.items[0].id;
    }
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        if (str_eqz(pod->containers.items[i].name, maybe_container))
            return pod->containers.items[i].id;
    }
    fail_msg("pod %s has no container %s", name, maybe_container);
    return STR_NONE;
}

uint32_t count_in(struct node_fixture *f, const char *name, const char *maybe_container,
                  enum runtime_state state)
{
    const struct runtime_pod *pod = runtime_pod_of(f, name);
    uint32_t count = 0;
    for (uint32_t i = 0; pod && !maybe_container && i < pod->sandboxes.count; i++)
        count += pod->sandboxes.items[i].state == state;
    for (uint32_t i = 0; pod && maybe_container && i < pod->containers.count; i++)
        count += pod->containers.items[i].state == state &&
                 str_eqz(pod->containers.items[i].name, maybe_container);
    return count;
}

/* --- files, and the network --- */

struct str file_content(struct node_fixture *f, const char *path)
{
    AUTO_BUF content = { 0 };
    struct err err;
    if (file_read(path, (size_t)16 << 20, &content, &err) < 0)
        return STR_NONE;
    return arena_str(&f->arena, buf_str(&content));
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *log_folder(struct node_fixture *f, const char *name)
{
    return arena_strf(&f->arena, "%s/logs/default_%s-" NODE_NAME "_uid-%s", f->dir, name, name).p;
}

int http_code(struct str ip, int port, const char *path)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    AUTO_FREE char *text = str_dup(ip);
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        return 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = { .tv_sec = 5 };
    char answer[256] = "";
    int code = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    snprintf(answer, sizeof answer, "GET %s HTTP/1.0\r\n\r\n", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        write(fd, answer, strlen(answer)) > 0) {
        ssize_t n = read(fd, answer, sizeof answer - 1);
        answer[n > 0 ? n : 0] = '\0';
        if (sscanf(answer, "HTTP/%*d.%*d %d", &code) != 1)
            code = 0;
    }
    close(fd);
    return code;
}

void linger(int ms)
{
    poll(NULL, 0, ms);
}
