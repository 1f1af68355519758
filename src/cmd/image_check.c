/* karve image check: which nodes, or instance types, can run the image, and why the others cannot.
 *
 * The fleet that the controller and the extender ask gives the verdicts. Nodes that are known teach the
 * predictor, so that a type of which there are nodes is judged by what these published. Many that share
 * verdict and reason are shown together: the reason once, and behind it who.
 */
#include "cmd/image_inner.h"

#include "api/kinds.h"
#include "cmd/table.h"

#include <string.h>

#define ROWS_MAX 10 /* so many are a table that one can read; more are put together */
#define COLUMNS 100
#define NAME_LINES_MAX 4

/* Stands for the image where the fleet names it in a reason: here all of it is about one. */
#define IMAGE_WORD "image"
#define PREDICTED_WORDS " (as predicted)"

struct checking {
    struct image_work *w;
    const struct image_facts *facts;
    struct image_subjects subjects;
    struct predictor *predictor;
    struct fleet *fleet;
    const struct demand *demand;
};

static const char *match_word(enum match match)
{
    switch (match) {
    case MATCH_NO:
        return "no";
    case MATCH_ERROR:
        return "error";
    case MATCH_UNKNOWN:
        return "unknown";
    case MATCH_YES:
        return "yes";
    }
    KV_UNREACHABLE();
}

/* --- verdicts --- */

static void open_fleet(struct checking *c)
{
    const struct fleet_image image = { STR(IMAGE_WORD), c->facts, STR("") };
    c->predictor = predictor_new((struct predictor_options){ 0 });
    c->fleet =
        fleet_new((struct fleet_options){ .nfd_namespace = c->w->setup.settings.nfd_namespace,
                                          .unobserved = UNOBSERVED_PREDICT,
                                          .maybe_predictor = c->predictor,
                                          .rules = c->w->setup.settings.rules });
    vec_each(&c->subjects.manifests.items, struct manifest, item) {
        if (!item->object)
            continue;
        if (item->kind == &node_kind)
            fleet_observe_node(c->fleet, NULL, item->object);
        else if (item->kind == &nodeclaim_kind)
            fleet_observe_claim(c->fleet, NULL, item->object);
        else if (item->kind == &node_feature_kind)
            fleet_observe_feature(c->fleet, NULL, item->object);
    }
    c->demand = fleet_demand(c->fleet, &image, 1);
}

/* Without what every reason has in common here. */
static struct str reason_text(struct checking *c, struct str text)
{
    const struct str first = STR(IMAGE_WORD " "), last = STR(PREDICTED_WORDS);
    if (str_starts(text, first))
        text = str_sub(text, first.len, text.len);
    if (str_ends(text, last))
        text.len -= last.len;
    return arena_str(&c->subjects.arena, text);
}

static void judge(struct checking *c, struct image_subject *s)
{
    AUTO_BUF why = { 0 };
    struct fleet_verdict v;
    if (c->subjects.are_nodes) {
        fleet_judge(c->fleet, c->demand, &s->name, 1, &v);
        if (v.match != MATCH_YES)
            fleet_explain(c->fleet, c->demand, s->name, &why);
    } else {
        v = fleet_judge_machine(c->fleet, c->demand, &s->machine);
        if (v.match != MATCH_YES)
            fleet_explain_machine(c->fleet, c->demand, &s->machine, &why);
    }
    s->match = v.match;
    s->weight = v.weight;
    s->predicted = v.predicted;
    s->why = reason_text(c, buf_str(&why));
}

static size_t count_of(const struct checking *c, enum match match)
{
    size_t count = 0;
    vec_each(&c->subjects.items, struct image_subject, s)
        count += s->match == match;
    return count;
}

/* --- for people --- */

static const char *subject_word(const struct checking *c, size_t count)
{
    if (c->subjects.are_nodes)
        return count == 1 ? "node" : "nodes";
    return count == 1 ? "instance type" : "instance types";
}

static void add_summary(const struct checking *c, struct buf *out)
{
    size_t all = c->subjects.items.count, yes = count_of(c, MATCH_YES);
    size_t unknown = count_of(c, MATCH_UNKNOWN);
    name_format(c->w->full, out);
    buf_addf(out, "\n  can run on %zu of %zu %s%s", yes, all, subject_word(c, all), c->subjects.of);
    if (unknown)
        buf_addf(out, "; of %zu it is not known", unknown);
    buf_addc(out, '\n');
}

/* The first of the lines that a text takes in so many columns, cut off its front; a word is not cut. */
static struct str take_line(struct str *text, size_t columns)
{
    size_t len = text->len;
    if (len > columns) {
        for (len = columns; len > 0 && text->p[len] != ' ';)
            len--;
        for (len = len ? len : columns; len < text->len && text->p[len] != ' ';)
            len++;
    }
    struct str line = str_sub(*text, 0, len);
    *text = str_sub(*text, len + 1, text->len);
    return line;
}

/* A reason that is longer than the line goes on below itself, unless everything is to be one line each. */
static void add_why(const struct checking *c, struct table *t, size_t columns, struct str why)
{
    if (flag_given(c->w->inv, "all")) {
        table_add(t, why);
        return;
    }
    for (bool first = true; first || why.len; first = false) {
        for (size_t i = 0; !first && i + 1 < t->columns; i++)
            table_add(t, STR(""));
        table_add(t, take_line(&why, columns));
    }
}

static void print_rows(struct checking *c, struct buf *out)
{
    static const char *const of_nodes[] = { "NODE", "INSTANCE TYPE", "FEATURES", "RUNS",
                                            "WHY NOT" };
    static const char *const of_types[] = { "INSTANCE TYPE", "RUNS", "WHY NOT" };
    struct table t;
    bool nodes = c->subjects.are_nodes;
    size_t names = strlen(nodes ? "NODE" : "INSTANCE TYPE"),
           types = nodes ? strlen("INSTANCE TYPE") : 0;
    vec_each(&c->subjects.items, struct image_subject, s) {
        names = s->name.len > names ? s->name.len : names;
        if (nodes && s->machine.instance_type.len > types)
            types = s->machine.instance_type.len;
    }
    size_t before = names + types + strlen("unknown") + (nodes ? strlen("published") + 8 : 4);
    size_t columns = before + 40 < COLUMNS ? COLUMNS - before : 40;
    table_init(&t, nodes ? of_nodes : of_types,
               nodes ? KV_COUNT_OF(of_nodes) : KV_COUNT_OF(of_types));
    vec_each(&c->subjects.items, struct image_subject, s) {
        table_add(&t, cell_text(&c->subjects.arena, s->name));
        if (nodes) {
            table_add(&t, cell_text(&c->subjects.arena, s->machine.instance_type));
            table_add(&t, s->predicted ? STR("predicted") : STR("published"));
        }
        table_add(&t, str_of(match_word(s->match)));
        add_why(c, &t, columns, s->why);
    }
    table_print(&t, out, c->w->colour);
    table_done(&t);
}

/* Of how many devices none will do is not what tells one group from another. */
static struct str gist_of(struct arena *arena, struct str why)
{
    static const char *const counted[] = { "none of ", " different instances has" };
    AUTO_BUF out = { 0 };
    const char *one = strstr(why.p, "the one instance does not have");
    const char *at = one ? NULL : strstr(why.p, counted[0]), *digits = at;
    if (at)
        for (digits = at + strlen(counted[0]); char_is_digit(*digits);)
            digits++;
    bool several = at && strncmp(digits, counted[1], strlen(counted[1])) == 0;
    if (!one && !several)
        return why;
    const char *start = one ? one : at;
    const char *end =
        one ? one + strlen("the one instance does not have") : digits + strlen(counted[1]);
    buf_add(&out, (struct str){ why.p, (size_t)(start - why.p) });
    buf_addf(&out, "no instance has%s", end);
    return arena_str(arena, buf_str(&out));
}

/* By verdict, those that run first; then by reason, then as they were. */
static int compare_subjects(const void *a, const void *b)
{
    const struct image_subject *x = *(const struct image_subject *const *)a;
    const struct image_subject *y = *(const struct image_subject *const *)b;
    if (x->match != y->match)
        return x->match > y->match ? -1 : 1;
    int order = str_cmp(x->gist, y->gist);
    return order ? order : (x > y) - (x < y);
}

/* Names in lines, as many as there is room for. */
struct name_lines {
    struct buf *out;
    size_t indent, column;
    uint32_t lines, left_out;
};

static void add_name(struct name_lines *n, struct str name)
{
    bool fits = n->column > 0 && n->column + 1 + name.len <= COLUMNS;
    if (n->left_out || (!fits && n->lines == NAME_LINES_MAX)) {
        n->left_out++;
        return;
    }
    if (fits) {
        buf_addc(n->out, ' ');
        n->column++;
    } else {
        buf_addf(n->out, "%s%*s", n->lines ? "\n" : "", n->lines ? (int)n->indent : 0, "");
        n->column = n->indent;
        n->lines++;
    }
    buf_add(n->out, name);
    n->column += name.len;
}

/* How many of the family are asked about, whatever their verdict. */
static size_t family_size(const struct checking *c, struct str family)
{
    size_t count = 0;
    vec_each(&c->subjects.items, struct image_subject, s)
        count += str_eq(instance_family(s->name), family);
    return count;
}

/* A family that is there as a whole is "m7i.*". */
static void add_names(const struct checking *c, struct image_subject *const *items, size_t count,
                      struct name_lines *n)
{
    AUTO_ARENA arena = { 0 };
    for (size_t i = 0, run; i < count; i += run) {
        struct str family = instance_family(items[i]->name);
        run = 1;
        while (family.len && i + run < count &&
               str_eq(instance_family(items[i + run]->name), family))
            run++;
        bool whole = !c->subjects.are_nodes && run > 1 && run == family_size(c, family);
        if (whole) {
            add_name(n, arena_strf(&arena, "%.*s.*", STR_ARG(family)));
            continue;
        }
        for (size_t k = 0; k < run; k++)
            add_name(n, cell_text(&arena, items[i + k]->name));
    }
}

static void add_group(const struct checking *c, struct image_subject *const *items, size_t count,
                      struct buf *out)
{
    const size_t indent = 16;
    struct name_lines n = { .out = out, .indent = indent };
    buf_addf(out, "%-7s  %5zu  ", match_word(items[0]->match), count);
    for (struct str rest = items[0]->gist; rest.len;) {
        struct str line = take_line(&rest, COLUMNS - indent);
        buf_addf(out, "%.*s\n%*s", STR_ARG(line), (int)indent, "");
    }
    add_names(c, items, count, &n);
    if (n.left_out)
        buf_addf(out, "\n%*sand %u more: --all shows all", (int)indent, "", n.left_out);
    buf_addc(out, '\n');
}

struct group_range {
    size_t at, count;
    enum match match;
};

/* Those that run first, then the larger group. */
static int compare_groups(const void *a, const void *b)
{
    const struct group_range *x = a, *y = b;
    if (x->match != y->match)
        return x->match > y->match ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void print_groups(struct checking *c, struct buf *out)
{
    size_t count = c->subjects.items.count;
    struct image_subject **sorted = arena_array(&c->subjects.arena, struct image_subject *, count);
    VEC(struct group_range) groups = { 0 };
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &c->subjects.items.items[i];
        sorted[i]->gist = gist_of(&c->subjects.arena, sorted[i]->why);
    }
    qsort(sorted, count, sizeof *sorted, compare_subjects);
    for (size_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && sorted[i + run]->match == sorted[i]->match &&
               str_eq(sorted[i + run]->gist, sorted[i]->gist))
            run++;
        vec_push(&groups, (struct group_range){ i, run, sorted[i]->match });
    }
    qsort(groups.items, groups.count, sizeof *groups.items, compare_groups);
    buf_addf(out, "%s%-7s  %5s  %s%s\n", c->w->colour ? "\033[1m" : "", "RUNS", "COUNT",
             c->subjects.are_nodes ? "WHY NOT, AND NODES" : "WHY NOT, AND INSTANCE TYPES",
             c->w->colour ? "\033[0m" : "");
    vec_each(&groups, struct group_range, g)
        add_group(c, &sorted[g->at], g->count, out);
    vec_done(&groups);
}

static void print_text(struct checking *c, struct buf *out)
{
    bool rows = flag_given(c->w->inv, "all") || c->subjects.items.count <= ROWS_MAX;
    add_summary(c, out);
    buf_addc(out, '\n');
    if (rows)
        print_rows(c, out);
    else
        print_groups(c, out);
}

/* --- for programs --- */

static void print_json(struct checking *c, struct buf *out)
{
    static const enum match matches[] = { MATCH_YES, MATCH_UNKNOWN, MATCH_ERROR, MATCH_NO };
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *items = json_new_array(&b),
             *counts = json_new_object(&b);
    json_set_str(&b, root, "reference", c->w->full);
    json_set_str(&b, root, "digest", c->facts->digest);
    for (size_t i = 0; i < KV_COUNT_OF(matches); i++)
        json_set_i64(&b, counts, match_word(matches[i]), (int64_t)count_of(c, matches[i]));
    json_set(&b, root, STR("counts"), counts);
    vec_each(&c->subjects.items, struct image_subject, s) {
        json_mut *o = json_new_object(&b);
        json_set_str(&b, o, "name", s->name);
        if (c->subjects.are_nodes)
            json_set_str(&b, o, "instanceType", s->machine.instance_type);
        json_set_str(&b, o, "architecture", s->machine.architecture);
        json_set_str(&b, o, "features", s->predicted ? STR("predicted") : STR("published"));
        json_set_str(&b, o, "runs", str_of(match_word(s->match)));
        json_set_i64(&b, o, "weight", s->weight);
        json_set(&b, o, STR("why"), s->why.len ? json_new_str(&b, s->why) : json_new_null(&b));
        json_push(&b, items, o);
    }
    json_set(&b, root, c->subjects.are_nodes ? STR("nodes") : STR("instanceTypes"), items);
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

/* --- all of it --- */

static int run(struct checking *c)
{
    AUTO_BUF out = { 0 };
    open_fleet(c);
    vec_each(&c->subjects.items, struct image_subject, s)
        judge(c, s);
    if (c->w->json)
        print_json(c, &out);
    else
        print_text(c, &out);
    return print_out(&out, "karve image check", count_of(c, MATCH_YES) ? EXIT_DONE : EXIT_NO);
}

int image_check(struct image_work *w)
{
    AUTO_IMAGE_FACTS facts = NULL;
    struct checking c = { .w = w };
    int code = image_subjects_load(&c.subjects, w);
    if (code == EXIT_DONE)
        code = image_look_up(w, false, &facts);
    if (code == EXIT_DONE) {
        c.facts = facts;
        code = run(&c);
    }
    demand_unref(c.demand);
    fleet_free(c.fleet);
    predictor_free(c.predictor);
    image_subjects_done(&c.subjects);
    return code;
}
