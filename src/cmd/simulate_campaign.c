/* `karve simulate --seeds A..B`: a world per seed, several at once. Workers take the next seed and leave
 * their result in its place; the main thread prints results in the order of the seeds, as far as they
 * are there without a gap. So the output is the same on any number of threads. */
#include "cmd/simulate_inner.h"

#include "codec/duration.h"
#include "codec/json.h"

#include <inttypes.h>
#include <pthread.h>

struct seed_result {
    bool done;
    struct run_result run; /* its text is in `what` */
    char *what;            /* what is broken, or why it could not run; owned */
    int64_t at_ns;         /* of virtual time */
};

struct campaign {
    struct simulation *s;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    struct seed_result *results;
    uint64_t count, next, done, broken;
    uint64_t told_broken;
    bool stopping; /* enough is broken */
};

/* So many broken seeds say that something is wrong everywhere. Those after are left out, whether
 * they were run or not: which were depends on the threads. */
#define BROKEN_MAX 25

/* --- workers --- */

static bool note_time(void *ctx, const struct world_parts *world)
{
    *(int64_t *)ctx = clock_mono_ns(world->clock);
    return true;
}

static void run_seed(const struct simulation *s, uint64_t seed, struct seed_result *out)
{
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct run_options options = { .scenario = s->scenario,
                                   .seed = seed,
                                   .doubt = s->check,
                                   .no_check = !s->check,
                                   .progress = note_time,
                                   .progress_ctx = &out->at_ns };
    if (scenario_run(options, &arena, &out->run, &err) < 0) {
        out->run = (struct run_result){ .broken = true };
        out->what = kv_strdup(err.text);
    } else if (out->run.broken) {
        out->what = str_dup(out->run.finding.what);
    }
    out->run.finding.what = out->what ? str_of(out->what) : STR("");
}

static bool take_seed(struct campaign *c, uint64_t *ix)
{
    pthread_mutex_lock(&c->mutex);
    bool more = c->next < c->count && !c->stopping;
    if (more)
        *ix = c->next++;
    pthread_mutex_unlock(&c->mutex);
    return more;
}

static void *work(void *ctx)
{
    struct campaign *c = ctx;
    for (uint64_t ix; take_seed(c, &ix);) {
        struct seed_result result = { 0 };
        run_seed(c->s, c->s->seed_first + ix, &result);
        pthread_mutex_lock(&c->mutex);
        result.done = true;
        c->results[ix] = result;
        c->done++;
        c->broken += result.run.broken;
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->mutex);
    }
    return NULL;
}

/* --- telling --- */

static void draw(struct campaign *c, struct progress_line *progress, int64_t began_ns)
{
    if (!progress_due(progress))
        return;
    double seconds = (double)(clock_mono_ns(clock_real()) - began_ns) / 1e9;
    double rate = seconds > 0 ? (double)c->done / seconds : 0;
    char left[DURATION_TEXT_MAX] = "?";
    if (rate > 0)
        duration_format_short((int64_t)((double)(c->count - c->done) / rate) * DURATION_SECOND,
                              left);
    progress_draw(progress,
                  "%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " broken; %.1f a second, %s left",
                  c->done, c->count, c->broken, rate, left);
}

/* Tell of the next seeds that are there. True: those were all, or enough. */
static bool tell(struct campaign *c, uint64_t *told, struct progress_line *progress)
{
    while (*told < c->count && c->told_broken < BROKEN_MAX && c->results[*told].done) {
        const struct seed_result *result = &c->results[*told];
        if (result->run.broken) {
            progress_clear(progress);
            simulate_print_broken(c->s, c->s->seed_first + *told, &result->run.finding);
            c->told_broken++;
        }
        ++*told;
    }
    return *told == c->count || c->told_broken >= BROKEN_MAX;
}

/* Wait for the results. Returns how many are told. */
static uint64_t follow(struct campaign *c)
{
    struct progress_line progress = { .on = c->s->progress };
    int64_t began_ns = clock_mono_ns(clock_real());
    uint64_t told = 0;
    pthread_mutex_lock(&c->mutex);
    while (!tell(c, &told, &progress)) {
        draw(c, &progress, began_ns);
        clock_wait(clock_real(), &c->changed, &c->mutex,
                   clock_mono_ns(clock_real()) + DURATION_SECOND / 5);
    }
    c->stopping = true;
    pthread_mutex_unlock(&c->mutex);
    progress_clear(&progress);
    return told;
}

static const struct seed_result *first_broken(const struct campaign *c, uint64_t told)
{
    for (uint64_t i = 0; i < told; i++) {
        if (c->results[i].run.broken)
            return &c->results[i];
    }
    return NULL;
}

static json_mut *result_json(struct json_build *b, const struct seed_result *r, uint64_t seed)
{
    json_mut *o = json_new_object(b), *finding = json_new_null(b);
    json_set_i64(b, o, "seed", (int64_t)seed);
    json_set_i64(b, o, "steps", r->run.steps);
    json_set(b, o, STR("seconds"), json_new_double(b, (double)(r->at_ns / 1000000) / 1000));
    json_set_i64(b, o, "crashes", r->run.crashes);
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, r->run.hash);
    json_set_str(b, o, "hash", str_of(hash));
    if (r->run.broken) {
        finding = json_new_object(b);
        json_set_i64(b, finding, "rule", r->run.finding.rule);
        json_set_i64(b, finding, "step", r->run.finding.step);
        json_set_str(b, finding, "what", r->run.finding.what);
    }
    json_set(b, o, STR("finding"), finding);
    return o;
}

/* One line per seed. */
static void print_json(const struct campaign *c, uint64_t told, struct buf *out)
{
    buf_addz(out, "{\"scenario\":");
    json_write_string(c->s->scenario->name, out);
    buf_addf(out, ",\"seeds\":%" PRIu64 ",\"results\":[", told);
    for (uint64_t i = 0; i < told; i++) {
        AUTO_JSON_BUILD b = { 0 };
        json_build_init(&b);
        buf_addz(out, i ? ",\n" : "\n");
        json_write_mut(result_json(&b, &c->results[i], c->s->seed_first + i), out);
    }
    buf_addz(out, "\n]}\n");
}

static void print_table(const struct campaign *c, uint64_t told, int64_t took_ns, struct buf *out)
{
    uint64_t steps = 0, crashes = 0, broken = 0, hash = 0;
    int64_t virtual_s = 0;
    for (uint64_t i = 0; i < told; i++) {
        const struct seed_result *r = &c->results[i];
        steps += r->run.steps;
        crashes += r->run.crashes;
        broken += r->run.broken;
        virtual_s += r->at_ns / DURATION_SECOND;
        hash = kv_mix64(hash ^ r->run.hash);
    }
    char took[DURATION_TEXT_MAX];
    duration_format_short(took_ns, took);
    buf_addf(out, "%.*s: %" PRIu64 " seeds, %" PRIu64 " broken\n", STR_ARG(c->s->scenario->name),
             told, broken);
    buf_addf(out, "%" PRIu64 " steps, %" PRIu64 " crashes; hash %016" PRIx64 "\n", steps, crashes,
             hash);
    buf_addf(out, "%" PRId64 " hours of virtual time in %s on %u thread%s\n", virtual_s / 3600,
             took, c->s->jobs, c->s->jobs == 1 ? "" : "s");
    if (told < c->count)
        buf_addf(out, "stopped early: %" PRIu64 " seeds are left out\n", c->count - told);
}

/* --- all of it --- */

static uint32_t start_workers(struct campaign *c, pthread_t *threads)
{
    uint32_t running = 0;
    while (running < c->s->jobs && running < c->count &&
           pthread_create(&threads[running], NULL, work, c) == 0)
        running++;
    return running;
}

static int tell_all(struct campaign *c, uint64_t told, int64_t took_ns)
{
    AUTO_BUF out = { 0 };
    const struct seed_result *broken = first_broken(c, told);
    if (broken && broken->run.steps)
        simulate_print_shrunk(c->s, c->s->seed_first + (uint64_t)(broken - c->results),
                              broken->run.calls);
    if (c->s->json)
        print_json(c, told, &out);
    else
        print_table(c, told, took_ns, &out);
    return print_out(&out, "karve simulate", broken ? EXIT_NO : EXIT_DONE);
}

int simulate_many(struct simulation *s)
{
    AUTO_ARENA arena = { 0 };
    struct campaign c = { .s = s, .count = s->seed_last - s->seed_first + 1 };
    pthread_t *threads = arena_array(&arena, pthread_t, s->jobs);
    int64_t began_ns = clock_mono_ns(clock_real());
    int code;
    c.results = kv_calloc(c.count, sizeof *c.results);
    pthread_mutex_init(&c.mutex, NULL);
    clock_cond_init(&c.changed);
    uint32_t running = start_workers(&c, threads);
    if (running) {
        uint64_t told = follow(&c);
        int64_t took_ns = clock_mono_ns(clock_real()) - began_ns;
        for (uint32_t i = 0; i < running; i++)
            pthread_join(threads[i], NULL);
        code = tell_all(&c, told, took_ns);
    } else {
        code = print_complaint("simulate", EXIT_ENVIRONMENT, "no thread can be started");
    }
    for (uint64_t i = 0; i < c.count; i++)
        free(c.results[i].what);
    free(c.results);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.mutex);
    return code;
}
