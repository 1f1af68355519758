/* The fake runtime's server, its events, and what goes wrong with both.
 *
 * A call is answered at once in the server's thread unless a fault makes it wait; those that wait are
 * in one list, and one thread answers them when their time has come. An event is encoded when it
 * happens, and then sent, lost, sent twice or kept for later, as the test has asked for. */
#include "node/fake_cri_inner_testing.h"

#include "base/thread.h"

#include <stdio.h>
#include <unistd.h>

/* --- events --- */

static void texts_add(struct fake_texts *texts, struct str bytes)
{
    texts->items = kv_realloc(texts->items, texts->count + 1, sizeof *texts->items);
    texts->items[texts->count] = (struct buf){ 0 };
    buf_add(&texts->items[texts->count++], bytes);
}

static struct buf texts_take(struct fake_texts *texts, uint32_t i)
{
    struct buf taken = texts->items[i];
    memmove(&texts->items[i], &texts->items[i + 1], (texts->count - i - 1) * sizeof *texts->items);
    texts->count--;
    return taken;
}

static void texts_done(struct fake_texts *texts)
{
    for (uint32_t i = 0; i < texts->count; i++)
        buf_done(&texts->items[i]);
    free(texts->items);
    *texts = (struct fake_texts){ 0 };
}

static void drop_gone_listeners(struct fake_cri *fake)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fake->listener_count; i++) {
        if (grpc_reply_cancelled(fake->listeners[i]))
            grpc_reply_end(fake->listeners[i], 1, "cancelled");
        else
            fake->listeners[kept++] = fake->listeners[i];
    }
    fake->listener_count = kept;
}

static void deliver(struct fake_cri *fake, struct str event)
{
    drop_gone_listeners(fake);
    if (fake->listener_count == 0 && fake->options.keep_events &&
        fake->unheard.count < FAKE_EVENTS_KEPT)
        texts_add(&fake->unheard, event);
    for (uint32_t i = 0; i < fake->listener_count; i++)
        grpc_reply_send(fake->listeners[i], event);
}

static void deliver_all(struct fake_cri *fake, struct fake_texts *texts)
{
    struct fake_texts all = *texts;
    *texts = (struct fake_texts){ 0 };
    for (uint32_t i = 0; i < all.count; i++)
        deliver(fake, buf_str(&all.items[i]));
    texts_done(&all);
}

static bool chance(struct fake_cri *fake, uint8_t percent)
{
    return percent > 0 && rng_below(&fake->rng, 100) < percent;
}

static void deliver_with_faults(struct fake_cri *fake, struct str event)
{
    if (chance(fake, fake->event_faults.lost_percent))
        return;
    if (fake->holding || chance(fake, fake->event_faults.late_percent)) {
        texts_add(&fake->held, event);
        return;
    }
    deliver(fake, event);
    if (chance(fake, fake->event_faults.twice_percent))
        deliver(fake, event);
    while (fake->held.count > 0 && chance(fake, 50)) { /* now one that was late, any of them */
        AUTO_BUF late = texts_take(&fake->held, (uint32_t)rng_below(&fake->rng, fake->held.count));
        deliver(fake, buf_str(&late));
    }
}

void fake_event(struct fake_cri *fake, const struct fake_thing *thing, Cri__ContainerEventType type)
{
    AUTO_ARENA arena = { 0 };
    const struct fake_thing *sandbox = thing->sandbox ? thing : thing->parent;
    Cri__ContainerEventResponse event = CRI__CONTAINER_EVENT_RESPONSE__INIT;
    event.container_id = (char *)thing->id;
    event.container_event_type = type;
    event.created_at = fake_tick(fake);
    if (!sandbox->removed)
        event.pod_sandbox_status = fake_sandbox_status(&arena, sandbox);
    event.containers_statuses = arena_array(&arena, Cri__ContainerStatus *, fake->thing_count);
    for (uint32_t i = 0; i < fake->thing_count; i++) {
        const struct fake_thing *c = fake->things[i];
        if (!c->sandbox && c->parent == sandbox && !c->removed)
            event.containers_statuses[event.n_containers_statuses++] =
                fake_container_status(&arena, c);
    }
    size_t bytes = protobuf_c_message_get_packed_size(&event.base);
    char *packed = arena_alloc(&arena, bytes + 1);
    protobuf_c_message_pack(&event.base, (uint8_t *)packed);
    struct str text = { packed, bytes };
    if (fake->sent.count == FAKE_EVENTS_KEPT) {
        struct buf oldest = texts_take(&fake->sent, 0);
        buf_done(&oldest);
    }
    texts_add(&fake->sent, text);
    deliver_with_faults(fake, text);
}

void fake_cri_event_send(struct fake_cri *fake, const char *id, Cri__ContainerEventType type)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *thing = str_table_get(&fake->by_id, str_of(id));
    KV_ASSERT(thing);
    fake_event(fake, thing, type);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_event_faults(struct fake_cri *fake, struct fake_event_faults faults)
{
    pthread_mutex_lock(&fake->mutex);
    fake->event_faults = faults;
    rng_init(&fake->rng, faults.seed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_events_hold(struct fake_cri *fake)
{
    pthread_mutex_lock(&fake->mutex);
    fake->holding = true;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_events_release(struct fake_cri *fake)
{
    pthread_mutex_lock(&fake->mutex);
    fake->holding = false;
    deliver_all(fake, &fake->held);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_events_replay(struct fake_cri *fake)
{
    pthread_mutex_lock(&fake->mutex);
    for (uint32_t i = 0; i < fake->sent.count; i++)
        deliver(fake, buf_str(&fake->sent.items[i]));
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_events_end(struct fake_cri *fake, uint32_t status)
{
    pthread_mutex_lock(&fake->mutex);
    for (uint32_t i = 0; i < fake->listener_count; i++)
        grpc_reply_end(fake->listeners[i], status, status ? "injected" : NULL);
    fake->listener_count = 0;
    pthread_mutex_unlock(&fake->mutex);
}

uint32_t fake_cri_listeners(struct fake_cri *fake)
{
    pthread_mutex_lock(&fake->mutex);
    drop_gone_listeners(fake);
    uint32_t count = fake->listener_count;
    pthread_mutex_unlock(&fake->mutex);
    return count;
}

static void listen_to_events(struct fake_cri *fake, struct grpc_reply *reply)
{
    if (fake->options.no_events) {
        grpc_reply_end(reply, GRPC_UNIMPLEMENTED, "unknown method GetContainerEvents");
        return;
    }
    fake->listeners =
        kv_realloc(fake->listeners, fake->listener_count + 1, sizeof *fake->listeners);
    fake->listeners[fake->listener_count++] = reply;
    deliver_all(fake, &fake->unheard);
}

/* --- calls and their faults --- */

static const struct fake_fault *use_fault(struct fake_cri *fake, enum cri_method method,
                                          struct str request, struct fake_fault *out)
{
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = fake->fault_count; i-- > 0;) {
        struct fake_fault *fault = &fake->faults[i];
        if (fault->method != method && fault->method != FAKE_EVERY_METHOD)
            continue;
        if (fault->maybe_id) {
            void *message = fake_request(method, request, &arena);
            if (!message || !fake_request_names(method, message, fault->maybe_id))
                continue;
        }
        *out = *fault;
        if (fault->times > 0 && --fault->times == 0) {
            memmove(fault, fault + 1, (fake->fault_count - i - 1) * sizeof *fault);
            fake->fault_count--;
        }
        return out;
    }
    return NULL;
}

static void send_answer(struct grpc_reply *reply, struct fake_answer *answer)
{
    if (answer->status == GRPC_OK)
        grpc_reply_send(reply, buf_str(&answer->bytes));
    grpc_reply_end(reply, answer->status, answer->status ? answer->message : NULL);
    buf_done(&answer->bytes);
}

/* The wait is over. */
static void answer_waiting(struct fake_cri *fake, struct fake_waiting *waiting)
{
    const struct fake_fault *fault = &waiting->fault;
    struct fake_answer *answer = &waiting->answer;
    if (fault->status) {
        answer->status = fault->status;
        snprintf(answer->message, sizeof answer->message, "%s",
                 fault->message ? fault->message : "injected");
    } else if (fault->garbage || fault->empty) {
        answer->status = GRPC_OK;
        buf_clear(&answer->bytes);
        if (fault->garbage)
            buf_addz(&answer->bytes, "\xff\xff\xff\xff garbage");
    } else if (!fault->after && waiting->method != CRI_GET_CONTAINER_EVENTS) {
        fake_carry_out(fake, waiting->method, buf_str(&waiting->request), answer);
    }
    if (waiting->method == CRI_GET_CONTAINER_EVENTS && !fault->status && !fake->closing) {
        buf_done(&answer->bytes);
        listen_to_events(fake, waiting->reply);
    } else {
        send_answer(waiting->reply, answer);
    }
    buf_done(&waiting->request);
    free(waiting);
}

static void handle_with_fault(struct fake_cri *fake, enum cri_method method, struct str request,
                              struct grpc_reply *reply, const struct fake_fault *fault)
{
    struct fake_waiting *waiting = kv_calloc(1, sizeof *waiting);
    waiting->fault = *fault;
    waiting->method = method;
    waiting->reply = reply;
    buf_add(&waiting->request, request);
    if (fault->after && method != CRI_GET_CONTAINER_EVENTS)
        fake_carry_out(fake, method, request, &waiting->answer);
    if (!fault->hang && fault->delay_ns == 0) {
        answer_waiting(fake, waiting);
        return;
    }
    waiting->due_ns = fault->hang ? INT64_MAX : clock_mono_ns(clock_real()) + fault->delay_ns;
    waiting->next = fake->waiting;
    fake->waiting = waiting;
    pthread_cond_broadcast(&fake->wake);
}

static bool method_of(struct str path, enum cri_method *out)
{
    for (enum cri_method m = 0; m < CRI_METHOD_COUNT; m++) {
        struct str name = str_of(cri_method_name(m));
        if (str_ends(path, name) && path.p[path.len - name.len - 1] == '/') {
            *out = m;
            return true;
        }
    }
    return false;
}

static void handle(void *ctx, struct str path, struct str request, struct grpc_reply *reply)
{
    struct fake_cri *fake = ctx;
    enum cri_method method;
    struct fake_fault fault;
    pthread_mutex_lock(&fake->mutex);
    if (fake->closing) {
        grpc_reply_end(reply, GRPC_UNAVAILABLE, "the runtime stops");
    } else if (!method_of(path, &method)) {
        grpc_reply_end(reply, GRPC_UNIMPLEMENTED, "unknown method");
    } else {
        fake->calls[method]++;
        if (use_fault(fake, method, request, &fault)) {
            handle_with_fault(fake, method, request, reply, &fault);
        } else if (method == CRI_GET_CONTAINER_EVENTS) {
            listen_to_events(fake, reply);
        } else {
            struct fake_answer answer = { 0 };
            fake_carry_out(fake, method, request, &answer);
            send_answer(reply, &answer);
        }
    }
    pthread_mutex_unlock(&fake->mutex);
}

/* Answers what is due; returns when the next is. With `all`, also what hangs. */
static int64_t answer_due(struct fake_cri *fake, bool all)
{
    int64_t now_ns = clock_mono_ns(clock_real()), next_ns = INT64_MAX;
    struct fake_waiting **at = &fake->waiting;
    while (*at) {
        struct fake_waiting *waiting = *at;
        if (all || waiting->due_ns <= now_ns) {
            *at = waiting->next;
            answer_waiting(fake, waiting);
            continue;
        }
        if (waiting->due_ns < next_ns)
            next_ns = waiting->due_ns;
        at = &waiting->next;
    }
    return next_ns;
}

static void *answer_late(void *arg)
{
    struct fake_cri *fake = arg;
    pthread_mutex_lock(&fake->mutex);
    while (!fake->closing)
        clock_wait(clock_real(), &fake->wake, &fake->mutex, answer_due(fake, false));
    pthread_mutex_unlock(&fake->mutex);
    return NULL;
}

void fake_cri_fault(struct fake_cri *fake, struct fake_fault fault)
{
    pthread_mutex_lock(&fake->mutex);
    if (fault.maybe_id)
        fault.maybe_id = fake_text(fake, fault.maybe_id);
    if (fault.message)
        fault.message = fake_text(fake, fault.message);
    fake->faults = kv_realloc(fake->faults, fake->fault_count + 1, sizeof *fake->faults);
    fake->faults[fake->fault_count++] = fault;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_heal(struct fake_cri *fake)
{
    pthread_mutex_lock(&fake->mutex);
    fake->fault_count = 0;
    answer_due(fake, true);
    pthread_mutex_unlock(&fake->mutex);
}

uint32_t fake_cri_waiting(struct fake_cri *fake)
{
    uint32_t count = 0;
    pthread_mutex_lock(&fake->mutex);
    for (struct fake_waiting *w = fake->waiting; w; w = w->next)
        count++;
    pthread_mutex_unlock(&fake->mutex);
    return count;
}

/* --- the server --- */

struct fake_cri *fake_cri_new(struct fake_cri_options options)
{
    static atomic_uint numbers;
    struct fake_cri *fake = kv_calloc(1, sizeof *fake);
    AUTO_BUF path = { 0 };
    if (options.maybe_path)
        buf_addz(&path, options.maybe_path);
    else
        buf_addf(&path, "/tmp/karve-fake-cri-%d-%u.sock", (int)getpid(),
                 atomic_fetch_add(&numbers, 1));
    fake->options = options;
    fake->options.maybe_path = NULL; /* was the caller's */
    fake->path = buf_take(&path);
    buf_addf(&path, "unix://%s", fake->path);
    fake->endpoint = buf_take(&path);
    fake->now_ns = options.start_ns ? options.start_ns : (int64_t)1700000000 * 1000000000;
    rng_init(&fake->rng, 1);
    pthread_mutex_init(&fake->mutex, NULL);
    clock_cond_init(&fake->wake);
    struct err err;
    int rc = thread_start(&fake->thread, "fake-cri", answer_late, fake, &err);
    KV_ASSERT(rc == 0);
    fake->server = grpc_server_new(
        (struct grpc_server_options){ .path = fake->path, .handle = handle, .ctx = fake });
    return fake;
}

void fake_cri_free(struct fake_cri *fake)
{
    if (!fake)
        return;
    pthread_mutex_lock(&fake->mutex);
    fake->closing = true;
    answer_due(fake, true);
    pthread_cond_broadcast(&fake->wake);
    pthread_mutex_unlock(&fake->mutex);
    fake_cri_events_end(fake, GRPC_UNAVAILABLE);
    pthread_join(fake->thread, NULL);
    grpc_server_free(fake->server);
    unlink(fake->path);
    texts_done(&fake->sent);
    texts_done(&fake->held);
    texts_done(&fake->unheard);
    free(fake->faults);
    free(fake->listeners);
    free(fake->things);
    str_table_done(&fake->by_id);
    str_table_done(&fake->images);
    str_table_done(&fake->exit_codes);
    arena_done(&fake->arena);
    pthread_cond_destroy(&fake->wake);
    pthread_mutex_destroy(&fake->mutex);
    free(fake->path);
    free(fake->endpoint);
    free(fake);
}

const char *fake_cri_endpoint(struct fake_cri *fake)
{
    return fake->endpoint;
}

void fake_cri_drop_connections(struct fake_cri *fake)
{
    grpc_server_drop_connections(fake->server);
}

void fake_cri_down(struct fake_cri *fake)
{
    grpc_server_stop(fake->server);
}

void fake_cri_up(struct fake_cri *fake)
{
    grpc_server_start(fake->server);
}

void fake_cri_pause(struct fake_cri *fake)
{
    grpc_server_pause(fake->server);
}

void fake_cri_resume(struct fake_cri *fake)
{
    grpc_server_resume(fake->server);
}
