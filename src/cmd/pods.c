/* karve pods: what runs on this node, as the agent knows it.
 *
 * Watching is asking again: when the agent tells that something happened, and once a second. On a terminal
 * the table is drawn over itself; elsewhere a pod gets a line when something about it has changed, which is
 * known by a text that has all but what changes by itself.
 */
#include "base/clock.h"
#include "base/map.h"
#include "cmd/live_view.h"
#include "cmd/local_client.h"
#include "cmd/pods_inner.h"
#include "cmd/table.h"

#include <unistd.h>

/* A pod as it was last shown. */
struct shown {
    char *sign; /* what a change is known by */
    char *json;
    uint64_t round; /* the last answer that had it */
};

struct watching {
    const struct invocation *inv;
    struct local_client client;
    bool json, wide, colour, live, gone;
    struct live_view view;
    struct table table;
    struct str_table pods; /* struct shown by uid */
    uint64_t round;
    struct buf answer; /* the last */
    int code;
};

/* --- which pods --- */

static bool names_it(struct str want, const json_val *pod)
{
    struct str namespace_, name, its_name = json_str(json_get(pod, STR("name")));
    if (str_cut(want, '/', &namespace_, &name))
        return str_eq(json_str(json_get(pod, STR("namespace"))), namespace_) &&
               str_eq(its_name, name);
    return str_eq(json_str(json_get(pod, STR("uid"))), want) || str_eq(its_name, want);
}

static bool is_wanted(const struct invocation *inv, const json_val *pod)
{
    for (size_t i = 0; i < inv->args.count; i++)
        if (names_it(str_of(inv->args.items[i]), pod))
            return true;
    return inv->args.count == 0;
}

static int compare_pods(const void *a, const void *b)
{
    static const char *const keys[] = { "namespace", "name", "uid" };
    const json_val *x = *(const json_val *const *)a, *y = *(const json_val *const *)b;
    int order = 0;
    for (size_t i = 0; i < KV_COUNT_OF(keys) && order == 0; i++)
        order =
            str_cmp(json_str(json_get(x, str_of(keys[i]))), json_str(json_get(y, str_of(keys[i]))));
    return order;
}

struct wanted_pods {
    const json_val **items; /* by namespace and name */
    size_t count;
};

static struct wanted_pods wanted_pods(struct arena *arena, const struct invocation *inv,
                                      const json_val *root)
{
    const json_val *list = json_get(root, STR("pods"));
    struct wanted_pods pods = { .items = arena_array(arena, const json_val *, json_count(list)) };
    json_each_item(list, pod) {
        if (is_wanted(inv, pod))
            pods.items[pods.count++] = pod;
    }
    if (pods.count > 1)
        qsort(pods.items, pods.count, sizeof(const json_val *), compare_pods);
    return pods;
}

/* Says which of the pods that were asked for are not there. */
static int missing(const struct invocation *inv, const json_val *root)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < inv->args.count; i++) {
        bool found = false;
        json_each_item(json_get(root, STR("pods")), pod)
            found = found || names_it(str_of(inv->args.items[i]), pod);
        if (!found)
            code = print_complaint("pods", EXIT_NO, "no pod %s here",
                                   STR_SHOWN(str_of(inv->args.items[i])));
    }
    return code;
}

/* --- all at once --- */

static size_t columns_of(const struct watching *w)
{
    return w->wide ? POD_COLUMNS_WIDE : POD_COLUMNS;
}

static void add_row(const struct watching *w, struct arena *arena, const struct pod_row *row,
                    struct str node, struct table *table)
{
    struct str cells[POD_COLUMNS_WIDE];
    pod_row_cells(arena, row, node, clock_wall_us(clock_real()), w->colour, cells);
    for (size_t i = 0; i < columns_of(w); i++)
        table_add(table, cells[i]);
}

static size_t add_table(const struct watching *w, const json_val *root, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct wanted_pods pods = wanted_pods(&arena, w->inv, root);
    struct str node = cell_text(&arena, json_str(json_get(root, STR("node"))));
    struct table table;
    struct pod_row row;
    table_init(&table, pod_headings, columns_of(w));
    for (size_t i = 0; i < pods.count; i++) {
        pod_row_read(&arena, pods.items[i], &row);
        add_row(w, &arena, &row, node, &table);
    }
    table_print(&table, out, w->colour);
    table_done(&table);
    return pods.count;
}

/* The agent's answer, with those that are wanted. */
static void add_json(const struct invocation *inv, const json_val *root, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *copy = json_new_object(&b), *pods = json_new_array(&b);
    json_each_member(root, key, value) {
        if (!str_eqz(json_key(key), "pods"))
            json_set(&b, copy, json_key(key), json_copy(&b, value));
    }
    json_each_item(json_get(root, STR("pods")), pod) {
        if (is_wanted(inv, pod))
            json_push(&b, pods, json_copy(&b, pod));
    }
    json_set(&b, copy, STR("pods"), pods);
    json_write_pretty(copy, out);
    buf_addc(out, '\n');
}

/* --- asking --- */

static int ask(struct watching *w, struct doc *doc, struct err *err)
{
    if (local_client_get(&w->client, "/pods", &w->answer, err) < 0)
        return -1;
    if (json_read(buf_str(&w->answer), doc, err) < 0)
        return err_wrap(err, "the agent's answer");
    return 0;
}

static int print_once(struct watching *w)
{
    struct doc doc = { 0 };
    struct err err;
    AUTO_BUF out = { 0 };
    if (ask(w, &doc, &err) < 0)
        return local_client_complain(&w->client, &err);
    int code = missing(w->inv, doc.root);
    if (w->json)
        add_json(w->inv, doc.root, &out);
    else if (code == EXIT_DONE && add_table(w, doc.root, &out) == 0) {
        buf_clear(&out);
        print_complaint("pods", 0, "no pods run here");
    }
    doc_done(&doc);
    return print_out(&out, "karve pods", code);
}

/* --- watching on a terminal --- */

static void draw(struct watching *w, const json_val *root)
{
    AUTO_BUF text = { 0 }, table = { 0 };
    AUTO_ARENA arena = { 0 };
    const char *bold = w->colour ? "\033[1m" : "", *plain = w->colour ? "\033[0m" : "";
    size_t count = add_table(w, root, &table);
    buf_addf(&text, "%skarve pods%s  %zu on %.*s%s\n\n", bold, plain, count,
             STR_ARG(cell_text(&arena, json_str(json_get(root, STR("node"))))),
             w->gone ? "; the agent is gone, waiting for it" : "");
    buf_add(&text, buf_str(&table));
    live_view_show(&w->view, &text);
}

/* --- watching elsewhere --- */

static void sign_of(const struct watching *w, const json_val *pod, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct pod_row row;
    struct str cells[POD_COLUMNS_WIDE];
    pod_row_read(&arena, pod, &row);
    pod_row_cells(&arena, &row, STR(""), 0, false, cells);
    for (size_t i = 0; i < columns_of(w); i++)
        buf_addf(out, "%.*s\n", STR_ARG(cells[i]));
}

/* `time` is when it was last looked at. */
static void json_without_time(const json_val *pod, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *copy = json_copy(&b, pod);
    json_mut_remove(copy, STR("time"));
    json_write_mut(copy, out);
}

static void tell(struct watching *w, const char *type, const json_val *pod, const json_val *root,
                 struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct pod_row row;
    if (w->json) {
        buf_addf(out, "{\"type\":\"%s\",\"pod\":", type);
        json_write(pod, out);
        buf_addz(out, "}\n");
        return;
    }
    pod_row_read(&arena, pod, &row);
    if (strcmp(type, "DELETED") == 0) {
        row.status = STR("Removed");
        row.ready_count = 0;
    }
    add_row(w, &arena, &row, cell_text(&arena, json_str(json_get(root, STR("node")))), &w->table);
}

static void tell_if_changed(struct watching *w, const json_val *pod, const json_val *root,
                            struct buf *out)
{
    struct str uid = json_str(json_get(pod, STR("uid")));
    struct shown *shown = str_table_get(&w->pods, uid);
    struct buf sign = { 0 }, json = { 0 };
    json_without_time(pod, &json);
    if (w->json)
        buf_add(&sign, buf_str(&json));
    else
        sign_of(w, pod, &sign);
    bool new = !shown;
    if (new) {
        shown = kv_calloc(1, sizeof *shown);
        str_table_put(&w->pods, uid, shown);
    }
    if (new || strcmp(shown->sign, sign.p) != 0)
        tell(w, new ? "ADDED" : "MODIFIED", pod, root, out);
    free(shown->sign);
    free(shown->json);
    *shown = (struct shown){ .sign = buf_take(&sign), .json = buf_take(&json), .round = w->round };
}

static void shown_free(struct shown *shown)
{
    free(shown->sign);
    free(shown->json);
    free(shown);
}

static void tell_removed(struct watching *w, const json_val *root, struct buf *out)
{
    str_table_each(&w->pods, slot) {
        struct shown *shown = slot->value;
        struct doc doc = { 0 };
        if (shown->round == w->round)
            continue;
        if (json_read(str_of(shown->json), &doc, NULL) == 0)
            tell(w, "DELETED", doc.root, root, out);
        doc_done(&doc);
        str_table_remove(&w->pods, slot->key);
        shown_free(shown);
    }
}

static void tell_changes(struct watching *w, const json_val *root)
{
    AUTO_BUF out = { 0 };
    AUTO_ARENA arena = { 0 };
    struct wanted_pods pods = wanted_pods(&arena, w->inv, root);
    w->round++;
    for (size_t i = 0; i < pods.count; i++)
        tell_if_changed(w, pods.items[i], root, &out);
    tell_removed(w, root, &out);
    if (!w->json)
        table_flush(&w->table, &out, w->colour);
    if (out.len)
        w->code = print_out(&out, "karve pods", w->code);
}

/* --- watching --- */

static int look(struct watching *w, struct err *err)
{
    struct doc doc = { 0 };
    if (ask(w, &doc, err) < 0)
        return -1;
    if (w->live)
        draw(w, doc.root);
    else
        tell_changes(w, doc.root);
    doc_done(&doc);
    return 0;
}

static bool look_again(void *ctx, struct str lines KV_UNUSED)
{
    struct watching *w = ctx;
    struct err err;
    look(w, &err); /* if it fails the agent is about to go, and the stream will end too */
    return w->code == EXIT_DONE;
}

static void tell_away(void *ctx, bool gone)
{
    struct watching *w = ctx;
    struct doc doc = { 0 };
    w->gone = gone;
    if (!w->live)
        print_complaint("pods", 0, "%s", gone ? "the agent is gone; waiting for it" : "it is back");
    else if (gone && json_read(buf_str(&w->answer), &doc, NULL) == 0)
        draw(w, doc.root); /* what was there, and that it is old */
    doc_done(&doc);
}

static int watch(struct watching *w)
{
    struct err err;
    struct local_follower follower = {
        .target = "/events", .lines = look_again, .away = tell_away, .ctx = w
    };
    table_init(&w->table, pod_headings, columns_of(w));
    int code = EXIT_DONE;
    if (look(w, &err) < 0)
        code = local_client_complain(&w->client, &err);
    else
        code = local_client_follow(&w->client, follower);
    live_view_done(&w->view);
    table_done(&w->table);
    str_table_each(&w->pods, slot)
        shown_free(slot->value);
    str_table_done(&w->pods);
    return w->code != EXIT_DONE ? w->code : code;
}

static int run_pods(const struct invocation *inv)
{
    const char *output = flag_value(inv, "output");
    struct watching w = { .inv = inv,
                          .json = strcmp(output, "json") == 0,
                          .wide = strcmp(output, "wide") == 0,
                          .colour = colour_wanted(inv, stdout) };
    w.live = !w.json && isatty(STDOUT_FILENO);
    int code = local_client_init(&w.client, inv);
    if (code == EXIT_DONE)
        code = flag_given(inv, "watch") ? watch(&w) : print_once(&w);
    local_client_done(&w.client);
    buf_done(&w.answer);
    return code;
}

static const char *const output_choices[] = { "table", "wide", "json", NULL };

static const struct flag flags[] = {
    { .name = "watch", .letter = 'w', .help = "go on showing it, live" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "table",
      .choices = output_choices },
    LOCAL_CLIENT_FLAGS,
};

const struct command pods_command = {
    .name = "pods",
    .summary = "show the pods that run on this node",
    .args = "[NAMESPACE/NAME|NAME|UID...]",
    .about =
        "Shows the pods that the container runtime of this node knows, as `karve agent` sees them,\n"
        "whether it runs them or only observes. The agent is asked, never the runtime or an API\n"
        "server.\n"
        "\n"
        "STATUS is the word that kubectl would show. Of pods that somebody else runs only the states\n"
        "of containers are known: readiness is then that they run, and back-off shows as Error.\n"
        "-o wide adds the containers, the last change and what went wrong; -o json is what the agent\n"
        "answers.\n"
        "\n"
        "--watch draws the table over itself on a terminal. Elsewhere it prints a line when something\n"
        "about a pod has changed; with -o json that line is {\"type\":\"ADDED\", \"MODIFIED\" or\n"
        "\"DELETED\",\"pod\":...}. When the agent is restarted, it waits and goes on.\n"
        "\n"
        "The exit code is 1 when a pod that was named is not here, and 3 when no agent answers.",
    .examples = "  karve pods -w\n"
                "      what runs here, live\n"
                "  karve pods -o wide default/web-node-1\n"
                "      more about one pod\n"
                "  karve pods -o json | jq -r '.pods[]|select(.containers|length>5).name'\n"
                "      for scripts\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_pods,
};
