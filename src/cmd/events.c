/* karve events: what happened to containers on this node, as the agent's PLEG saw it.
 *
 * The agent keeps the last events, so a stream begins with them. After it was away the stream begins with
 * them anew: those that were shown are known by time and number, and an agent that was restarted counts
 * from 1 but in a later time.
 */
#include "cmd/local_client.h"
#include "cmd/table.h"
#include "codec/duration.h"
#include "codec/json.h"

#define EVENTS_TARGET "/events?since=0"

struct listing {
    struct local_client client;
    const char *maybe_for;
    bool json, colour;
    struct table table;
    uint32_t shown_count;
    char time[TIME_TEXT_MAX]; /* and number, of the last one that was shown */
    int64_t number;
    int code;
};

/* --- one event --- */

static bool is_wanted(const struct listing *l, const json_val *event)
{
    if (!l->maybe_for)
        return true;
    struct str want = str_of(l->maybe_for), namespace_, name;
    if (str_cut(want, '/', &namespace_, &name))
        return str_eq(json_str(json_get(event, STR("namespace"))), namespace_) &&
               str_eq(json_str(json_get(event, STR("pod"))), name);
    return str_eq(json_str(json_get(event, STR("uid"))), want);
}

/* Times of equal length compare as texts. */
static bool is_known(struct listing *l, const json_val *event)
{
    struct str time = json_str(json_get(event, STR("time")));
    int64_t number = 0;
    json_i64(json_get(event, STR("number")), &number);
    if (number <= l->number && str_cmp(time, str_of(l->time)) <= 0)
        return true;
    l->number = number;
    snprintf(l->time, sizeof l->time, "%.*s", STR_ARG(time));
    return false;
}

static struct str text_of(struct arena *arena, const json_val *event, const char *key)
{
    return cell_text(arena, json_str(json_get(event, str_of(key))));
}

static void add_row(struct listing *l, const json_val *event)
{
    AUTO_ARENA arena = { 0 };
    struct str time = text_of(&arena, event, "time");
    size_t to_millis = strlen("2026-01-02T15:04:05.000");
    int64_t exit_code;
    bool sandbox = json_get(event, STR("sandboxID")) != NULL;
    if (time.len > to_millis)
        time = arena_strf(&arena, "%.*sZ", (int)to_millis, time.p);
    table_add(&l->table, time);
    table_add(&l->table, text_of(&arena, event, "type"));
    table_addf(&l->table, "%.*s/%.*s", STR_ARG(text_of(&arena, event, "namespace")),
               STR_ARG(text_of(&arena, event, "pod")));
    table_add(&l->table, sandbox ? STR("(sandbox)") : text_of(&arena, event, "container"));
    if (json_i64(json_get(event, STR("exitCode")), &exit_code))
        table_addf(&l->table, "%lld", (long long)exit_code);
    else
        table_add(&l->table, STR("-"));
    table_add(&l->table, text_of(&arena, event, "reason"));
}

static void take_line(struct listing *l, struct str line, struct buf *out)
{
    struct doc doc = { 0 };
    struct err err;
    int64_t lost;
    if (json_read(line, &doc, &err) < 0) {
        l->code = print_complaint("events", EXIT_ENVIRONMENT, "the agent's answer: %s", err.text);
        return;
    }
    bool tells_loss = json_i64(json_get(doc.root, STR("lost")), &lost);
    if (!tells_loss && (is_known(l, doc.root) || !is_wanted(l, doc.root))) {
        doc_done(&doc);
        return;
    }
    if (l->json) {
        buf_add(out, line);
        buf_addc(out, '\n');
    } else if (tells_loss) {
        print_complaint("events", 0, "%lld events are missing here: they came too fast",
                        (long long)lost);
    } else {
        add_row(l, doc.root);
    }
    l->shown_count += !tells_loss;
    doc_done(&doc);
}

/* False: it cannot go on, and has been said why. */
static bool take_lines(void *ctx, struct str lines)
{
    struct listing *l = ctx;
    AUTO_BUF out = { 0 };
    while (lines.len && l->code == EXIT_DONE) {
        struct str line, rest = STR("");
        str_cut(lines, '\n', &line, &rest);
        if (line.len)
            take_line(l, line, &out);
        lines = rest;
    }
    if (!l->json)
        table_flush(&l->table, &out, l->colour);
    if (out.len)
        l->code = print_out(&out, "karve events", l->code);
    return l->code == EXIT_DONE;
}

/* --- all of them --- */

static void tell_away(void *ctx KV_UNUSED, bool gone)
{
    print_complaint("events", 0, "%s", gone ? "the agent is gone; waiting for it" : "it is back");
}

static int list_once(struct listing *l)
{
    AUTO_BUF answer = { 0 };
    struct err err;
    if (local_client_get(&l->client, EVENTS_TARGET "&follow=false", &answer, &err) < 0)
        return local_client_complain(&l->client, &err);
    if (take_lines(l, buf_str(&answer)) && !l->shown_count && !l->json)
        print_complaint("events", 0, "nothing has happened since the agent started");
    return l->code;
}

static int follow(struct listing *l)
{
    struct local_follower follower = {
        .target = EVENTS_TARGET, .lines = take_lines, .away = tell_away, .ctx = l
    };
    int code = local_client_follow(&l->client, follower);
    return l->code != EXIT_DONE ? l->code : code;
}

static int run_events(const struct invocation *inv)
{
    static const char *const headings[] = { "TIME", "TYPE", "POD", "CONTAINER", "EXIT", "REASON" };
    if (inv->args.count)
        return print_complaint("events", EXIT_USAGE,
                               "unexpected argument %s: a pod is named with --for",
                               STR_SHOWN(str_of(inv->args.items[0])));
    struct listing l = { .maybe_for = flag_value(inv, "for"),
                         .json = strcmp(flag_value(inv, "output"), "json") == 0,
                         .colour = colour_wanted(inv, stdout) };
    table_init(&l.table, headings, KV_COUNT_OF(headings));
    int code = local_client_init(&l.client, inv);
    if (code == EXIT_DONE)
        code = flag_given(inv, "watch") ? follow(&l) : list_once(&l);
    local_client_done(&l.client);
    table_done(&l.table);
    return code;
}

static const char *const output_choices[] = { "table", "json", NULL };

static const struct flag flags[] = {
    { .name = "watch", .letter = 'w', .help = "go on, with what happens from now on" },
    { .name = "for",
      .value = "POD",
      .help = "show the events of one pod only: NAMESPACE/NAME or UID" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "table",
      .choices = output_choices },
    LOCAL_CLIENT_FLAGS,
};

const struct command events_command = {
    .name = "events",
    .summary = "show what happened to containers on this node",
    .args = "",
    .about =
        "Shows what `karve agent` saw happen to sandboxes and containers: they started, died, were\n"
        "removed. The agent keeps the last 200 events; with --watch those come first and then each\n"
        "as it happens. When the agent is restarted, --watch waits for it and goes on.\n"
        "\n"
        "These are the events of containers, not the Events of a Kubernetes API. -o json prints a\n"
        "line for each, as the agent tells it; a line with `lost` counts those that came too fast\n"
        "for whoever reads.\n"
        "\n"
        "The exit code is 3 when no agent answers.",
    .examples = "  karve events\n"
                "      what happened lately\n"
                "  karve events -w --for default/web-node-1\n"
                "      one pod, as it happens\n"
                "  karve events -w -o json | jq -r 'select(.exitCode > 0).pod'\n"
                "      the pods of containers that fail\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_events,
};
