/* karve simulate: the control plane on a made-up cloud, in virtual time. */
#include "cmd/simulate_inner.h"

#include "codec/duration.h"

#include <inttypes.h>
#include <unistd.h>

#define SEEDS_MAX 10000000
#define JOBS_MAX 1024

/* As many tries as fit into a minute, within reason: a core does some 10,000 calls of a control plane in a second.
 * Not by the clock, for equal seeds give equal bytes. */
#define SHRINK_TRIES_MIN 10
#define SHRINK_TRIES_MAX 400
#define SHRINK_CALLS 600000

/* --- what is broken --- */

void simulate_print_broken(const struct simulation *s, uint64_t seed, const struct finding *finding)
{
    char at[DURATION_TEXT_MAX];
    duration_format_short(finding->at_ns, at);
    print_complaint("simulate", EXIT_NO,
                    "seed %" PRIu64 ", step %u, after %s: invariant %u is broken: %.*s", seed,
                    finding->step, at, finding->rule, STR_ARG(finding->what));
    const char *until = flag_value(s->inv, "until");
    fprintf(stderr, "  again: karve simulate %s --seed %" PRIu64 "%s%s\n", s->inv->args.items[0],
            seed, until ? " --until " : "", until ? until : "");
}

void simulate_print_shrunk(const struct simulation *s, uint64_t seed, uint64_t calls)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct shrunk shrunk;
    uint64_t tries = SHRINK_CALLS / (calls ? calls : 1);
    tries = tries < SHRINK_TRIES_MIN ? SHRINK_TRIES_MIN : tries;
    tries = tries > SHRINK_TRIES_MAX ? SHRINK_TRIES_MAX : tries;
    if (s->progress)
        fputs("looking for the least that breaks it ...\n", stderr);
    if (!scenario_shrink(s->scenario, seed, (uint32_t)tries, &arena, &shrunk))
        return;
    if (!shrunk.smaller) {
        fprintf(stderr, "  nothing could be left out of it (tries: %u)\n", shrunk.tries);
        return;
    }
    scenario_write(shrunk.scenario, &text);
    fprintf(
        stderr,
        "  the least that breaks it has %u of %u actions and %u of %u objects (tries: %u); as a file "
        "of its own:\n\n%s\n",
        shrunk.actions_after, shrunk.actions_before, shrunk.objects_after, shrunk.objects_before,
        shrunk.tries, text.p);
}

/* --- one seed --- */

/* The log's clock is the world's, as long as there is one. */
struct late_clock {
    struct clock port;
    const struct clock *maybe_clock;
    int64_t start_us;
};

struct one {
    struct simulation *s;
    struct record record;
    struct progress_line progress;
    size_t told; /* events on the timeline so far */
    uint64_t seed;
    struct late_clock late;
};

/* Events are told once nothing can be folded into them any more: in their order. */
static void tell_events(struct one *one, int64_t now_ns)
{
    const struct simulation *s = one->s;
    AUTO_BUF lines = { 0 };
    while (one->told < one->record.events.count) {
        const struct record_event *e = &one->record.events.items[one->told];
        if (e->kind == RECORD_EVENT && now_ns - e->at_ns < RECORD_FOLD_NS)
            break;
        timeline_line(e, s->scenario->start_us, s->colour, &lines);
        one->told++;
    }
    if (!lines.len || s->quiet || s->json)
        return;
    progress_clear(&one->progress);
    fwrite(lines.p, 1, lines.len, stdout);
    fflush(stdout);
}

static void draw_progress(struct one *one, const struct world_parts *world)
{
    AUTO_ARENA arena = { 0 };
    if (!progress_due(&one->progress))
        return;
    struct record_sample now = record_now(&one->record, world, &arena);
    char at[DURATION_TEXT_MAX], whole[DURATION_TEXT_MAX];
    duration_format_short(now.at_ns, at);
    duration_format_short(world->scenario->duration_ns, whole);
    progress_draw(&one->progress, "%s of %s: %u pods pending, %u running; %u nodes, $%.2f an hour",
                  at, whole, now.pods_pending, now.pods_running, now.nodes, now.dollars_hour);
}

static bool after_step(void *ctx, const struct world_parts *world)
{
    struct one *one = ctx;
    one->late.maybe_clock = world->clock;
    tell_events(one, clock_mono_ns(world->clock));
    draw_progress(one, world);
    return true;
}

static int64_t late_wall_us(void *ctx)
{
    const struct late_clock *late = ctx;
    return late->maybe_clock ? clock_wall_us(late->maybe_clock) : late->start_us;
}

static int64_t late_mono_ns(void *ctx)
{
    const struct late_clock *late = ctx;
    return late->maybe_clock ? clock_mono_ns(late->maybe_clock) : 0;
}

static struct log *open_log(struct one *one)
{
    const struct simulation *s = one->s;
    struct late_clock *late = &one->late;
    const char *level_word = flag_value(s->inv, "log-level");
    enum log_level level;
    *late = (struct late_clock){ .port = { .wall_us = late_wall_us, .mono_ns = late_mono_ns },
                                 .start_us = s->scenario->start_us };
    late->port.ctx = late;
    if (!log_level_parse(str_of(level_word), &level))
        return NULL; /* "off" */
    return log_new((struct log_options){
        .clock = &late->port, .fd = STDERR_FILENO, .level = level, .repeat_window_ns = -1 });
}

static int write_report(const char *path, const struct buf *text)
{
    FILE *f = fopen(path, "w");
    bool good = f && fwrite(text->p, 1, text->len, f) == text->len;
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        return print_complaint("simulate", EXIT_ENVIRONMENT, "--report %s: cannot be written: %m",
                               STR_SHOWN(str_of(path)));
    return EXIT_DONE;
}

static int print_results(struct one *one, const struct run_report *report, int64_t took_ns)
{
    struct simulation *s = one->s;
    AUTO_BUF out = { 0 }, page = { 0 };
    int code = report->maybe_finding ? EXIT_NO : EXIT_DONE;
    if (s->json) {
        report_json(report, &out);
    } else {
        if (one->told && !s->quiet)
            buf_addc(&out, '\n');
        simulate_table(report, took_ns, s->colour, &out);
    }
    if (s->report_path) {
        report_html(report, &page);
        int written = write_report(s->report_path, &page);
        if (written != EXIT_DONE)
            code = written;
        else if (!s->json)
            buf_addf(&out, "\nreport: %s\n", s->report_path);
    }
    return print_out(&out, "karve simulate", code);
}

static int run_one(struct one *one)
{
    struct simulation *s = one->s;
    struct run_result result;
    struct err err;
    AUTO_ARENA arena = { 0 };
    AUTO(log) log = open_log(one);
    int64_t began_ns = clock_mono_ns(clock_real());
    int rc = scenario_run((struct run_options){ .scenario = s->scenario,
                                                .seed = one->seed,
                                                .doubt = s->check,
                                                .no_check = !s->check,
                                                .maybe_record = &one->record,
                                                .maybe_log = log,
                                                .progress = after_step,
                                                .progress_ctx = one },
                          &arena, &result, &err);
    int64_t took_ns = clock_mono_ns(clock_real()) - began_ns;
    one->late.maybe_clock = NULL;
    log_flush(log);
    tell_events(one, INT64_MAX);
    progress_clear(&one->progress);
    if (rc < 0)
        return print_complaint("simulate", EXIT_NO, "%s", err.text);
    const struct record_sample *end = record_last(&one->record);
    struct run_report report = { .record = &one->record,
                                 .name = s->scenario->name,
                                 .about = s->scenario->about,
                                 .seed = one->seed,
                                 .start_us = s->scenario->start_us,
                                 .duration_ns = end ? end->at_ns : 0,
                                 .maybe_finding = result.broken ? &result.finding : NULL };
    int code = print_results(one, &report, took_ns);
    if (result.broken) {
        simulate_print_broken(s, one->seed, &result.finding);
        simulate_print_shrunk(s, one->seed, result.calls);
    }
    return code;
}

int simulate_one(struct simulation *s)
{
    struct one one = { .s = s, .seed = s->seed_first, .progress = { .on = s->progress } };
    record_init(&one.record);
    int code = run_one(&one);
    record_done(&one.record);
    return code;
}

/* --- options --- */

static int bad_flag(const char *flag, const char *value, const char *expected)
{
    return print_complaint("simulate", EXIT_USAGE, "--%s %s: expected %s", flag,
                           STR_SHOWN(str_of(value)), expected);
}

static bool read_seed(struct str text, uint64_t *out)
{
    int64_t number;
    if (!str_to_i64(text, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

/* "1..500": str_cut takes one character, so the second dot is the first of the rest. */
static bool read_seeds(struct str text, uint64_t *first, uint64_t *last)
{
    struct str head, tail;
    if (!str_cut(text, '.', &head, &tail) || !tail.len || tail.p[0] != '.')
        return false;
    return read_seed(head, first) && read_seed(str_sub(tail, 1, tail.len), last) &&
           *first <= *last && *last - *first < SEEDS_MAX;
}

static int read_seed_flags(struct simulation *s)
{
    const struct invocation *inv = s->inv;
    const char *seed = flag_value(inv, "seed"), *seeds = flag_value(inv, "seeds");
    if (seed && seeds)
        return print_complaint("simulate", EXIT_USAGE, "--seed and --seeds exclude each other");
    s->seed_first = s->seed_last = s->scenario->seed;
    if (seed && !read_seed(str_of(seed), &s->seed_first))
        return bad_flag("seed", seed, "a number from 0 up");
    if (seed)
        s->seed_last = s->seed_first;
    if (seeds && !read_seeds(str_of(seeds), &s->seed_first, &s->seed_last))
        return bad_flag("seeds", seeds, "a range such as 1..1000, of at most ten million");
    if (seeds && s->report_path)
        return print_complaint("simulate", EXIT_USAGE, "--report is of one seed: use --seed");
    return EXIT_DONE;
}

static int read_jobs(struct simulation *s)
{
    const char *jobs = flag_value(s->inv, "jobs");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t number = cores > 0 ? cores : 1;
    if (jobs && (!str_to_i64(str_of(jobs), &number) || number < 1 || number > JOBS_MAX))
        return bad_flag("jobs", jobs, "a number from 1 to 1024");
    s->jobs = (uint32_t)(number < JOBS_MAX ? number : JOBS_MAX);
    return EXIT_DONE;
}

static int read_until(struct simulation *s)
{
    const char *until = flag_value(s->inv, "until");
    int64_t ns;
    if (!until)
        return EXIT_DONE;
    if (duration_parse(str_of(until), &ns, NULL) < 0 || ns <= 0)
        return bad_flag("until", until, "a duration such as 90m or 12h");
    if (ns < s->scenario->duration_ns)
        s->scenario->duration_ns = ns;
    return EXIT_DONE;
}

static int load_scenario(struct simulation *s)
{
    struct err err;
    if (s->inv->args.count != 1) {
        print_complaint("simulate", EXIT_USAGE, "expected one scenario: a file, or one of these:");
        for (size_t i = 0; scenario_names[i]; i++)
            fprintf(stderr, "  %s\n", scenario_names[i]);
        return EXIT_USAGE;
    }
    if (scenario_load(s->inv->args.items[0], &s->scenario, &err) == 0)
        return EXIT_DONE;
    return print_complaint("simulate", err.kind == ERR_INVALID ? EXIT_NO : EXIT_ENVIRONMENT, "%s",
                           err.text);
}

static int run_simulate(const struct invocation *inv)
{
    struct simulation s = { .inv = inv,
                            .check = !flag_given(inv, "no-check"),
                            .quiet = flag_given(inv, "quiet"),
                            .json = strcmp(flag_value(inv, "output"), "json") == 0,
                            .colour = colour_wanted(inv, stdout),
                            .progress = !flag_given(inv, "quiet") && isatty(STDERR_FILENO),
                            .report_path = flag_value(inv, "report") };
    int code = load_scenario(&s);
    if (code == EXIT_DONE && (code = read_seed_flags(&s)) == EXIT_DONE &&
        (code = read_jobs(&s)) == EXIT_DONE && (code = read_until(&s)) == EXIT_DONE)
        code = flag_value(inv, "seeds") ? simulate_many(&s) : simulate_one(&s);
    scenario_free(s.scenario);
    return code;
}

/* --- the table of flags --- */

static const char *const output_choices[] = { "table", "json", NULL };
static const char *const level_choices[] = { "off", "error", "warn", "info", "debug", NULL };

static const struct flag flags[] = {
    { .name = "seed",
      .value = "N",
      .help = "what chance is made from (without it: what the scenario says)" },
    { .name = "seeds",
      .value = "A..B",
      .help = "run all of these seeds, and tell which break an invariant" },
    { .name = "jobs",
      .letter = 'j',
      .value = "N",
      .help = "threads for --seeds (without it: as many as there are cores)" },
    { .name = "until", .value = "DURATION", .help = "stop earlier than the scenario says" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "table",
      .choices = output_choices },
    { .name = "report",
      .value = "PATH",
      .help = "write a page with plots here, complete in itself",
      .files = true },
    { .name = "no-check", .help = "do not check the invariants after each step: faster" },
    { .name = "quiet", .letter = 'q', .help = "no timeline and no progress, only the end" },
    { .name = "log-level",
      .value = "LEVEL",
      .help = "what the control plane itself logs, on stderr, in virtual time",
      .dflt = "off",
      .choices = level_choices },
};

const struct command simulate_command = {
    .name = "simulate",
    .summary = "run the control plane on a made-up cloud in virtual time",
    .args = "SCENARIO",
    .about =
        "Runs the real control plane on an embedded store and a simulated cloud, a day in seconds.\n"
        "The scenario, a YAML file or a built-in one (black-friday, security-group, transient,\n"
        "cooldown, chaos), says what is there at the start, what happens when (workloads scaled,\n"
        "zones that run dry, images that are broken, prices that change, crashes) and how often\n"
        "calls fail. docs/simulate.md has the format.\n\n"
        "It prints what happens as it happens, then what it came to: pods and how long they waited,\n"
        "nodes, launches, failures, dollars. After each step the invariants of a cluster are\n"
        "checked: no pod bound twice, no instance without a claim, limits kept, and all settled\n"
        "in the end.\n\n"
        "Equal scenarios and seeds give equal output, to the byte, on any number of threads (the\n"
        "table's last line, which tells how long it took, apart). Exit code 1: an invariant is\n"
        "broken, or the scenario is invalid.",
    .examples = "  karve simulate black-friday --report out.html\n"
                "      a busy morning, with a page of plots\n"
                "  karve simulate chaos --seeds 1..1000\n"
                "      a thousand worlds with every fault, on all cores\n"
                "  karve simulate chaos --seed 712 --log-level debug\n"
                "      one of them again, with all that the control plane says\n"
                "  karve simulate my.yaml -o json | jq .pods.waitSeconds\n"
                "      for a script\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_simulate,
};
