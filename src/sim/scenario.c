/* A scenario from its file. See scenario_inner.h for how the work is divided. */
#include "sim/scenario_inner.h"

#include "api/karpenter.h"
#include "base/file.h"
#include "cloud/catalogue.h"
#include "cloud/kwok.h"
#include "control/settings.h"
#include "sim/scenario_builtin.h"

#include <stdio.h>

/* When nothing is said: a cloud in which a node takes about a minute, and a day that starts when
 * people come to work. */
#define START_DEFAULT "2026-11-27T06:00:00Z"
#define BOOT_DEFAULT                                                                               \
    {                                                                                              \
        25 * DURATION_SECOND, 45 * DURATION_SECOND                                                 \
    }
#define READY_DEFAULT                                                                              \
    {                                                                                              \
        5 * DURATION_SECOND, 15 * DURATION_SECOND                                                  \
    }
#define TERMINATE_DEFAULT                                                                          \
    {                                                                                              \
        20 * DURATION_SECOND, 60 * DURATION_SECOND                                                 \
    }
#define POD_START_DEFAULT                                                                          \
    {                                                                                              \
        DURATION_SECOND, 5 * DURATION_SECOND                                                       \
    }
#define POD_STOP_DEFAULT                                                                           \
    {                                                                                              \
        DURATION_SECOND, 10 * DURATION_SECOND                                                      \
    }
#define JOB_RUN_DEFAULT                                                                            \
    {                                                                                              \
        2 * DURATION_MINUTE, 10 * DURATION_MINUTE                                                  \
    }
#define STARTUP_TAINTS_DEFAULT                                                                     \
    {                                                                                              \
        5 * DURATION_SECOND, 15 * DURATION_SECOND                                                  \
    }
#define DURATION_DEFAULT (2 * DURATION_HOUR)
#define SAMPLES_DEFAULT 240 /* over the whole run: what a plot can show */
#define TOLD_MARGIN 40      /* of an error's text, for "and N more" */

/* --- mistakes --- */

void scenario_wrong(struct scenario_reader *r, const char *path, const struct doc *doc,
                    const json_val *at, struct str field, struct str what)
{
    struct text_pos pos = doc ? doc_position(doc, at ? at : doc->root) : (struct text_pos){ 1, 1 };
    AUTO_BUF line = { 0 };
    buf_addf(&line, "%s%s:%u:%u: %.*s%s", r->wrong_count ? "\n" : "", path, pos.line, pos.col,
             STR_ARG(field), field.len ? ": " : "");
    message_format(what, &line);
    r->wrong_count++;
    if (r->wrong_count > 1 && r->wrong.len + line.len > ERR_TEXT_MAX - TOLD_MARGIN)
        r->untold_count++;
    else
        buf_add(&r->wrong, buf_str(&line));
}

void scenario_wrong_at(struct scenario_reader *r, const struct place *place, const char *fmt, ...)
{
    AUTO_BUF field = { 0 }, what = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&what, fmt, args);
    va_end(args);
    path_format(place_path(place), &field);
    scenario_wrong(r, r->path, r->doc, place->at, buf_str(&field), buf_str(&what));
}

void scenario_wrong_report(struct scenario_reader *r, const char *path, const struct doc *doc,
                           const char *prefix, const struct report *report)
{
    uint32_t told = 0;
    vec_each(&report->problems, struct problem, p) {
        if (p->severity != PROBLEM_ERROR)
            continue;
        AUTO_BUF field = { 0 };
        bool item = p->path.len && p->path.p[0] == '[';
        buf_addf(&field, "%s%s%.*s", prefix, *prefix && p->path.len && !item ? "." : "",
                 STR_ARG(p->path));
        scenario_wrong(r, path, doc, p->at, buf_str(&field), p->what);
        told++;
    }
    r->wrong_count += report->error_count - told;
    r->untold_count += report->error_count - told;
}

static int told(struct scenario_reader *r, struct err *err)
{
    AUTO_BUF more = { 0 };
    if (r->untold_count)
        buf_addf(&more, "\n(and %u more)", r->untold_count);
    return err_set(err, ERR_INVALID, "%s%s", buf_str(&r->wrong).p, buf_str(&more).p);
}

/* --- parts --- */

static void read_duration(const json_val *object, const char *name, int64_t *out)
{
    const json_val *v = json_member(object, name);
    if (v)
        duration_parse(json_str(v), out, NULL);
}

static void read_general(struct scenario_reader *r, const json_val *root)
{
    struct scenario *s = r->s;
    const json_val *name = json_member(root, "name"), *start = json_member(root, "start");
    int64_t seed = 1;
    if (name)
        s->name = arena_str(r->arena, json_str(name));
    s->about = arena_str(r->arena, str_trim(json_str(json_member(root, "about"))));
    time_parse(start ? json_str(start) : STR(START_DEFAULT), &s->start_us, NULL);
    const json_val *chaos = json_member(root, "chaos");
    struct span pause = { 0, 2 * DURATION_MINUTE };
    int64_t steps = 0;
    s->duration_ns = DURATION_DEFAULT;
    if (json_i64(json_member(chaos, "steps"), &steps)) {
        /* As long as its steps can take. */
        span_of_json(json_member(chaos, "pause"), &pause);
        /* As long as they take, with room for luck: a few standard deviations. */
        s->duration_ns = steps * (pause.min_ns + pause.max_ns) / 2 * 9 / 8 + 10 * DURATION_MINUTE;
        if (s->duration_ns > SCENARIO_DURATION_MAX_NS)
            s->duration_ns = SCENARIO_DURATION_MAX_NS;
    }
    read_duration(root, "duration", &s->duration_ns);
    s->sample_ns = s->duration_ns / SAMPLES_DEFAULT;
    if (s->sample_ns < DURATION_SECOND)
        s->sample_ns = DURATION_SECOND;
    read_duration(root, "sample", &s->sample_ns);
    json_i64(json_member(root, "seed"), &seed);
    s->seed = (uint64_t)seed;
}

static void read_settings(struct scenario_reader *r, const struct place *top)
{
    struct place place = place_member(top, "controller");
    r->s->settings = control_settings_default;
    if (!place.found)
        return;
    json_each_member(place.at, key, value) {
        struct place at = place_member_str(&place, json_key(key));
        struct err err;
        AUTO_BUF text = { 0 };
        if (json_is_string(value))
            buf_add(&text, json_str(value));
        else if (json_is_bool(value) || json_is_number(value))
            json_write(value, &text);
        else
            scenario_wrong_at(r, &at, "expected a text, a number or a boolean, found %s",
                              json_type_name(value));
        if (text.len &&
            control_setting_parse(&r->s->settings, json_key(key), buf_str(&text), &err) < 0)
            scenario_wrong_at(r, &at, "%s", err.text);
    }
}

static void read_span(const json_val *object, const char *name, struct span *out)
{
    span_of_json(json_member(object, name), out);
}

static void read_physics(struct scenario_reader *r, const json_val *root)
{
    struct scenario *s = r->s;
    const json_val *cloud = json_member(root, "cloud"), *cluster = json_member(root, "cluster");
    const json_val *faults = json_member(root, "faults");
    s->boot = (struct span)BOOT_DEFAULT;
    s->ready = (struct span)READY_DEFAULT;
    s->terminate = (struct span)TERMINATE_DEFAULT;
    s->pod_start = (struct span)POD_START_DEFAULT;
    s->pod_stop = (struct span)POD_STOP_DEFAULT;
    s->job_run = (struct span)JOB_RUN_DEFAULT;
    s->startup_taints = (struct span)STARTUP_TAINTS_DEFAULT;
    read_span(cloud, "boot", &s->boot);
    read_span(cloud, "ready", &s->ready);
    read_span(cloud, "terminate", &s->terminate);
    read_span(cluster, "podStart", &s->pod_start);
    read_span(cluster, "podStop", &s->pod_stop);
    read_span(cluster, "jobRun", &s->job_run);
    read_span(cluster, "startupTaints", &s->startup_taints);
    s->boot_failure_rate = json_double(json_member(cloud, "bootFailures"));
    s->ready_failure_rate = json_double(json_member(cloud, "readyFailures"));
    read_duration(cluster, "eventDelay", &s->event_delay_ns);
    s->rates = rates_of_json(faults);
    s->crashes_per_hour = json_double(json_member(faults, "crashesPerHour"));
}

/* --- the catalogue, and the zones it has --- */

static int by_str(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void add_kwok_zones(struct scenario_reader *r, struct str *zones, uint32_t *count)
{
    const struct instance_types *types = kwok_types();
    KV_ASSERT(types->zone_count <= CATALOGUE_ZONES_MAX);
    for (uint32_t i = 0; i < types->zone_count; i++)
        zones[(*count)++] = arena_str(r->arena, types->zones[i]);
}

static void read_file_zones(struct scenario_reader *r, const struct place *place)
{
    AUTO_BUF text = { 0 };
    AUTO_ARENA drafts_arena = { 0 };
    const struct instance_type_draft *drafts;
    uint32_t count;
    struct err err;
    const char *path = r->s->catalogue_path.p;
    if (file_read(path, CATALOGUE_FILE_BYTES_MAX, &text, &err) < 0 ||
        catalogue_file_read(&drafts_arena, path, buf_str(&text), &drafts, &count, &err) < 0) {
        scenario_wrong_at(r, place, "%s", err.text);
        return;
    }
    VEC(struct str) zones = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < drafts[i].offering_count; k++) {
            const struct requirement *zone =
                requirements_find(&drafts[i].offerings[k].requirements, STR(LABEL_ZONE));
            if (zone && zone->values.count)
                vec_push(&zones, zone->values.items[0]);
        }
    }
    size_t unique = zones.count ? str_sort_unique(zones.items, zones.count) : 0;
    struct str *kept = arena_array(r->arena, struct str, unique);
    for (size_t i = 0; i < unique; i++)
        kept[i] = arena_str(r->arena, zones.items[i]);
    r->s->zones = (struct str_list){ kept, (uint32_t)unique };
    vec_done(&zones);
}

static void read_catalogue(struct scenario_reader *r, const struct place *top)
{
    struct scenario *s = r->s;
    struct place cloud = place_member(top, "cloud");
    struct place file = place_member(&cloud, "catalogue"), region = place_member(&cloud, "region");
    struct place types = place_member(&cloud, "types");
    s->kwok_types = types.found && str_eqz(json_str(types.at), "kwok");
    s->region = region.found ? arena_str(r->arena, json_str(region.at)) : STR("");
    s->catalogue_path =
        file.found ? scenario_path_beside(r->arena, r->path, json_str(file.at)) : STR("");
    if (s->kwok_types && (file.found || region.found)) {
        scenario_wrong_at(r, &types, "kwok's types have no catalogue and no region");
        return;
    }
    if (file.found) {
        read_file_zones(r, &file);
        return;
    }
    struct str name = s->region.len ? s->region : STR(CATALOGUE_REGION);
    const struct catalogue_region *known = catalogue_region_find(name);
    if (!known) {
        scenario_wrong_at(r, &region, "there is no region %s in the catalogue", STR_SHOWN(name));
        return;
    }
    struct str *zones = arena_array(r->arena, struct str, 2 * CATALOGUE_ZONES_MAX);
    uint32_t count = 0;
    for (uint32_t i = 0; !s->kwok_types && i < known->zone_count; i++)
        zones[count++] = str_of(known->zones[i]);
    if (s->kwok_types || r->has_kwok_class)
        add_kwok_zones(r, zones, &count);
    qsort(zones, count, sizeof *zones, by_str);
    s->zones = (struct str_list){ zones, count };
}

/* --- the whole --- */

static void read_doc(struct scenario_reader *r)
{
    AUTO_ARENA arena = { 0 };
    struct report report = { .arena = &arena };
    schema_validate(&scenario_schema, r->doc->root, NULL, &report);
    scenario_wrong_report(r, r->path, r->doc, "", &report);
    report_done(&report);
    if (r->wrong_count)
        return;
    struct place top = place_root(r->doc->root);
    read_general(r, r->doc->root);
    read_settings(r, &top);
    read_physics(r, r->doc->root);
    scenario_read_objects(r, &top);
    read_catalogue(r, &top);
    if (r->s->zones.count) /* else what is said of zones would be wrong as well */
        scenario_read_timeline(r, &top);
    scenario_read_chaos(r, &top);
}

static struct scenario *scenario_new(const char *path)
{
    struct scenario *s = kv_calloc(1, sizeof *s);
    const char *slash = strrchr(path, '/');
    struct str base = str_of(slash ? slash + 1 : path), stem, suffix;
    if (!str_cut(base, '.', &stem, &suffix))
        stem = base;
    s->name = arena_str(&s->arena, stem);
    return s;
}

int scenario_parse(const char *path, struct str text, struct scenario **out, struct err *err)
{
    struct docs docs;
    struct text_pos at = { 1, 1 };
    if (text.len > SCENARIO_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: is too long, at most 16 MiB are read", path);
    if (yaml_read(text, &docs, &at, err) < 0)
        return err_wrap(err, "%s:%u:%u", path, at.line, at.col);
    AUTO(scenario) s = scenario_new(path);
    struct scenario_reader r = { .s = s, .arena = &s->arena, .path = path };
    if (docs.count == 1) {
        r.doc = &docs.items[0];
        read_doc(&r);
    } else if (docs.count == 0) {
        scenario_wrong(&r, path, NULL, NULL, STR(""), STR("is empty, expected a scenario"));
    } else {
        scenario_wrong(&r, path, &docs.items[1], NULL, STR(""),
                       STR("a second document, expected one scenario in a file"));
    }
    int rc = r.wrong_count ? told(&r, err) : 0;
    if (rc == 0)
        *out = take(&s);
    buf_done(&r.wrong);
    vec_done(&r.objects);
    str_table_done(&r.names);
    arena_done(&r.scratch);
    docs_done(&docs);
    return rc;
}

void scenario_free(struct scenario *s)
{
    if (!s)
        return;
    arena_done(&s->arena);
    free(s);
}

/* --- those that are built in --- */

static const struct {
    const char *name, *text;
} builtin[] = {
    { "black-friday", scenario_black_friday }, { "chaos", scenario_chaos },
    { "cooldown", scenario_cooldown },         { "security-group", scenario_security_group },
    { "transient", scenario_transient },
};
const char *const scenario_names[] = { "black-friday",   "chaos",     "cooldown",
                                       "security-group", "transient", NULL };

const char *scenario_text(const char *name)
{
    for (size_t i = 0; i < KV_COUNT_OF(builtin); i++) {
        if (strcmp(name, builtin[i].name) == 0)
            return builtin[i].text;
    }
    return NULL;
}

#define TYPOS_MAX 2

static int no_such_scenario(const char *name, struct err *err)
{
    AUTO_BUF names = { 0 };
    const char *near = NULL;
    size_t best = TYPOS_MAX + 1;
    for (const char *const *known = scenario_names; *known; known++) {
        size_t distance = str_distance(str_of(name), str_of(*known), best - 1);
        buf_addf(&names, "%s%s", known == scenario_names ? "" : ", ", *known);
        if (distance < best) {
            best = distance;
            near = *known;
        }
    }
    if (near)
        return err_set(err, ERR_NOT_FOUND, "no file and no built-in scenario %s; did you mean %s?",
                       STR_SHOWN(str_of(name)), near);
    return err_set(err, ERR_NOT_FOUND, "no file and no built-in scenario %s; there are %s",
                   STR_SHOWN(str_of(name)), names.p);
}

int scenario_load(const char *path, struct scenario **out, struct err *err)
{
    AUTO_BUF text = { 0 };
    struct err trouble;
    if (file_read(path, SCENARIO_BYTES_MAX, &text, &trouble) == 0)
        return scenario_parse(path, buf_str(&text), out, err);
    const char *known = scenario_text(path);
    if (known)
        return scenario_parse(path, str_of(known), out, err);
    if (trouble.kind == ERR_NOT_FOUND && !strchr(path, '/'))
        return no_such_scenario(path, err);
    if (err)
        *err = trouble;
    return -1;
}
