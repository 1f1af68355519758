/* cmd/local_client.c - one thread is enough: a stream that is silent says so, also when a signal came, and
 * that is when everything else is done. */
#include "cmd/local_client.h"

#include "codec/duration.h"
#include "net/unix_http.h"

#include <signal.h>
#include <time.h>

#define ANSWER_TIMEOUT_NS (10 * DURATION_SECOND)
#define SILENCE_NS DURATION_SECOND
#define RETRY_NS (DURATION_SECOND / 2)
#define LINE_BYTES_MAX ((size_t)1 << 20)

int local_client_init(struct local_client *client, const struct invocation *inv)
{
    struct err err;
    *client = (struct local_client){ .command = inv->command->name };
    if (local_api_path(flag_value(inv, "socket"), &client->path, &err) < 0)
        return print_complaint(client->command, EXIT_USAGE, "--socket %s", err.text);
    return EXIT_DONE;
}

void local_client_done(struct local_client *client)
{
    buf_done(&client->path);
}

int local_client_complain(const struct local_client *client, const struct err *err)
{
    const char *path = client->path.p;
    if (err->kind == ERR_NOT_FOUND || err->kind == ERR_UNAVAILABLE)
        return print_complaint(client->command, EXIT_ENVIRONMENT,
                               "no agent answers at %s: is `karve agent` running here?", path);
    if (err->kind == ERR_DENIED)
        return print_complaint(client->command, EXIT_ENVIRONMENT, "%s: only root may read it",
                               path);
    return print_complaint(client->command, EXIT_ENVIRONMENT, "%s", err->text);
}

/* --- one answer --- */

static bool add_piece(void *ctx, int status KV_UNUSED, struct str piece)
{
    buf_add(ctx, piece);
    return true;
}

static int refused(int status, struct str text, struct err *err)
{
    return err_set(err, ERR_INVALID, "the agent answered %d: %s", status,
                   STR_SHOWN(str_trim(text)));
}

int local_client_get(const struct local_client *client, const char *target, struct buf *out,
                     struct err *err)
{
    int status = 0;
    buf_clear(out);
    struct unix_http_request request = { .socket_path = client->path.p,
                                         .target = target,
                                         .timeout_ns = ANSWER_TIMEOUT_NS,
                                         .piece = add_piece,
                                         .ctx = out };
    if (unix_http_get(request, &status, err) < 0)
        return -1;
    return status == 200 ? 0 : refused(status, buf_str(out), err);
}

/* --- a stream --- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number KV_UNUSED)
{
    interrupted = 1;
}

/* A second one ends the program at once: output may be stuck. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal,
                                .sa_flags = SA_RESTART | (int)SA_RESETHAND };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

struct following {
    struct local_follower follower;
    struct buf rest;    /* the beginning of a line */
    struct buf refusal; /* the body of an answer that is no stream */
    bool heard, gone, enough, too_long;
};

static bool hear(void *ctx, int status, struct str piece)
{
    struct following *f = ctx;
    if (interrupted)
        return false;
    if (status != 200) {
        buf_add(&f->refusal, str_sub(piece, 0, 1000));
        return f->refusal.len < 1000;
    }
    if (f->gone)
        f->follower.away(f->follower.ctx, false);
    f->gone = false;
    f->heard = true;
    buf_add(&f->rest, piece);
    const char *last = piece.len ? memrchr(f->rest.p, '\n', f->rest.len) : NULL;
    size_t whole = last ? (size_t)(last - f->rest.p) + 1 : 0;
    f->too_long = f->rest.len - whole > LINE_BYTES_MAX;
    if (whole || !piece.len)
        f->enough = !f->follower.lines(f->follower.ctx, (struct str){ f->rest.p, whole });
    AUTO_BUF rest = { 0 };
    buf_add(&rest, str_sub(buf_str(&f->rest), whole, f->rest.len));
    buf_clear(&f->rest);
    buf_add(&f->rest, buf_str(&rest));
    return !f->enough && !f->too_long;
}

/* One connection, until it ends. */
static int follow_once(const struct local_client *client, struct following *f, struct err *err)
{
    int status = 0;
    buf_clear(&f->rest);
    buf_clear(&f->refusal);
    struct unix_http_request request = { .socket_path = client->path.p,
                                         .target = f->follower.target,
                                         .stream = true,
                                         .timeout_ns = ANSWER_TIMEOUT_NS,
                                         .idle_ns = SILENCE_NS,
                                         .piece = hear,
                                         .ctx = f };
    if (unix_http_get(request, &status, err) < 0)
        return -1;
    if (f->too_long)
        return err_set(err, ERR_INVALID, "the agent sent a line longer than %zu bytes",
                       LINE_BYTES_MAX);
    return status == 200 ? 0 : refused(status, buf_str(&f->refusal), err);
}

int local_client_follow(const struct local_client *client, struct local_follower follower)
{
    struct following f = { .follower = follower };
    const struct timespec retry = { .tv_nsec = RETRY_NS };
    int code = EXIT_DONE;
    catch_signals();
    for (;;) {
        struct err err;
        int rc = follow_once(client, &f, &err);
        if (interrupted || f.enough)
            break;
        if (rc < 0 && (!f.heard || err.kind == ERR_INVALID)) { /* waiting will not help */
            code = local_client_complain(client, &err);
            break;
        }
        if (!f.gone)
            follower.away(follower.ctx, true);
        f.gone = true;
        nanosleep(&retry, NULL);
        if (interrupted)
            break;
    }
    buf_done(&f.rest);
    buf_done(&f.refusal);
    return code;
}
