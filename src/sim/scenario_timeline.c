/* The timeline of a scenario: each entry is an action, and its end where it says how long it lasts.
 * The tables have checked the shapes; here names are looked up, so that a slip of the keyboard is an
 * error and not an action that does nothing.
 */
#include "sim/scenario_inner.h"

#include "api/karpenter.h"
#include "api/kinds.h"
#include "cloud/catalogue.h"
#include "cloud/kwok.h"

static struct str text_of(struct scenario_reader *r, const json_val *object, const char *name)
{
    struct str s = json_str(json_member(object, name));
    return s.p ? arena_str(r->arena, s) : STR("");
}

/* --- what names may be --- */

static void check_zone(struct scenario_reader *r, const struct place *at, struct str zone)
{
    const struct str_list *zones = &r->s->zones;
    if (str_sorted_has(zones->items, zones->count, zone))
        return;
    AUTO_BUF list = { 0 };
    for (uint32_t i = 0; i < zones->count; i++)
        buf_addf(&list, "%s%.*s", i ? ", " : "", STR_ARG(zones->items[i]));
    scenario_wrong_at(r, at, "there is no zone %s; there are %s", STR_SHOWN(zone),
                      buf_str(&list).p);
}

static bool is_kwok_type(struct str name)
{
    const struct instance_types *types = kwok_types();
    for (uint32_t i = 0; i < types->type_count; i++) {
        if (str_eq(types->names[i], name))
            return true;
    }
    return false;
}

static struct offering_match read_match(struct scenario_reader *r, const struct place *place)
{
    struct offering_match match = {
        .instance_type = text_of(r, place->at, "instanceType"),
        .zone = text_of(r, place->at, "zone"),
        .capacity_type = text_of(r, place->at, "capacityType"),
    };
    struct place type = place_member(place, "instanceType");
    struct place zone = place_member(place, "zone");
    struct place bought = place_member(place, "capacityType");
    bool any_type = !match.instance_type.len || r->s->catalogue_path.len;
    if (!any_type && !is_kwok_type(match.instance_type) &&
        (r->s->kwok_types || !catalogue_machine_find(match.instance_type)))
        scenario_wrong_at(r, &type, "there is no instance type %s", STR_SHOWN(match.instance_type));
    if (match.zone.len)
        check_zone(r, &zone, match.zone);
    if (match.capacity_type.len && !str_eqz(match.capacity_type, CAPACITY_ON_DEMAND) &&
        !str_eqz(match.capacity_type, CAPACITY_SPOT) &&
        !str_eqz(match.capacity_type, CAPACITY_RESERVED))
        scenario_wrong_at(r, &bought,
                          "expected one of \"on-demand\", \"spot\", \"reserved\", found %s",
                          STR_SHOWN(match.capacity_type));
    return match;
}

/* Of kinds whose objects people make: those that controllers make have names nobody can foresee. */
static bool people_make(const struct kind *kind)
{
    return kind == &deployment_kind || kind == &stateful_set_kind || kind == &daemon_set_kind ||
           kind == &job_kind || kind == &cron_job_kind || kind == &nodepool_kind ||
           kind == &ec2nodeclass_kind || kind == &kwoknodeclass_kind || kind == &nodeoverlay_kind ||
           kind == &pdb_kind;
}

static const struct kind *kind_by_name(struct str name)
{
    for (uint32_t i = 0; i < kind_count; i++) {
        if (str_eqz(name, kinds[i]->name))
            return kinds[i];
    }
    return NULL;
}

static void read_target(struct scenario_reader *r, const struct place *place, struct action *out)
{
    const json_val *any = json_member(place->at, "any");
    struct str kind_name = json_str(json_member(place->at, "kind"));
    const struct kind *kind = kind_name.len ? kind_by_name(kind_name) : &deployment_kind;
    struct place kind_at = place_member(place, "kind");
    int64_t count = 0;
    out->target.name = text_of(r, place->at, "name");
    out->target.namespace_ = text_of(r, place->at, "namespace");
    out->target.kind = kind;
    if (json_i64(any, &count))
        out->target.any = (uint32_t)count;
    json_i64(json_member(place->at, "replicas"), &out->target.replicas);
    if (!kind) {
        scenario_wrong_at(r, &kind_at, "%s is not a kind that karve reads", STR_SHOWN(kind_name));
        return;
    }
    if (!any && kind->namespaced && !out->target.namespace_.len)
        out->target.namespace_ = STR("default");
    if (!kind->namespaced && out->target.namespace_.len) {
        struct place at = place_member(place, "namespace");
        scenario_wrong_at(r, &at, "a %s is in no namespace", kind->name);
    } else if (!any && (people_make(kind) || out->kind == ACTION_SCALE) &&
               !scenario_has(r, kind->name, out->target.namespace_, out->target.name)) {
        struct place at = place_member(place, "name");
        scenario_wrong_at(r, &at, "there is no %s %.*s%s%.*s in this scenario", kind->name,
                          STR_ARG(out->target.namespace_), kind->namespaced ? "/" : "",
                          STR_ARG(out->target.name));
    }
}

static void read_broken(struct scenario_reader *r, const struct place *place, enum sim_break what,
                        struct action *out)
{
    struct str name = json_str(place->at);
    out->kind = ACTION_BREAK;
    out->broken.what = what;
    out->broken.node_class = str_eqz(name, "*") ? STR("") : arena_str(r->arena, name);
    if (out->broken.node_class.len && !scenario_has(r, ec2nodeclass_kind.name, STR(""), name) &&
        !scenario_has(r, kwoknodeclass_kind.name, STR(""), name))
        scenario_wrong_at(r, place, "there is no node class %s in this scenario; \"*\" is all",
                          STR_SHOWN(name));
}

static void read_apply(struct scenario_reader *r, const struct place *place, struct action *out)
{
    AUTO_BUF path = { 0 };
    path_format(place_path(place), &path);
    size_t count = json_is_array(place->at) ? json_count(place->at) : 1;
    struct str *objects = arena_array(r->arena, struct str, count);
    uint32_t n = 0, i = 0;
    out->kind = ACTION_APPLY;
    if (json_is_object(place->at))
        scenario_take_object(r, r->path, r->doc, buf_str(&path).p, place->at, &objects[n++]);
    json_each_item(place->at, item) {
        struct str prefix = arena_strf(&r->scratch, "%s[%u]", buf_str(&path).p, i++);
        scenario_take_object(r, r->path, r->doc, prefix.p, item, &objects[n++]);
    }
    out->apply.objects = objects;
    out->apply.object_count = n;
}

/* --- entries --- */

static void read_crash(const json_val *v, struct action *out)
{
    int64_t calls = 0;
    out->kind = ACTION_CRASH;
    if (json_is_object(v) && !json_i64(json_member(v, "calls"), &calls))
        calls = 1;
    out->crash.calls = (uint32_t)calls;
    out->crash.after_effect = json_bool(json_member(v, "afterEffect"));
}

static void read_action(struct scenario_reader *r, const struct place *entry, struct action *out)
{
    static const struct {
        const char *name;
        enum sim_break what;
    } breaks[] = { { "breakImage", SIM_BREAK_IMAGE },
                   { "breakNetwork", SIM_BREAK_NETWORK },
                   { "breakLaunch", SIM_BREAK_LAUNCH } };
    struct place place;
    for (size_t i = 0; i < KV_COUNT_OF(breaks); i++) {
        if ((place = place_member(entry, breaks[i].name)).found)
            read_broken(r, &place, breaks[i].what, out);
    }
    if ((place = place_member(entry, "apply")).found)
        read_apply(r, &place, out);
    if ((place = place_member(entry, "delete")).found) {
        out->kind = ACTION_DELETE;
        read_target(r, &place, out);
    }
    if ((place = place_member(entry, "scale")).found) {
        out->kind = ACTION_SCALE;
        read_target(r, &place, out);
    }
    if ((place = place_member(entry, "price")).found) {
        out->kind = ACTION_PRICE;
        out->offering.match = read_match(r, &place);
        out->offering.factor = json_double(json_member(place.at, "factor"));
    }
    if ((place = place_member(entry, "drought")).found) {
        out->kind = ACTION_DROUGHT;
        out->offering.match = read_match(r, &place);
    }
    if ((place = place_member(entry, "outage")).found) {
        out->kind = ACTION_OUTAGE;
        out->zone = arena_str(r->arena, json_str(place.at));
        check_zone(r, &place, out->zone);
    }
    if ((place = place_member(entry, "kill")).found) {
        int64_t count = 0;
        out->kind = ACTION_KILL;
        out->kill.match = read_match(r, &place);
        json_i64(json_member(place.at, "count"), &count);
        out->kill.count = (uint32_t)count;
    }
    if ((place = place_member(entry, "crash")).found)
        read_crash(place.at, out);
    if ((place = place_member(entry, "faults")).found) {
        out->kind = ACTION_FAULTS;
        out->rates = rates_of_json(place.at);
    }
}

/* By time, and as in the file where times are equal. */
struct moment {
    int64_t at_ns;
    uint32_t ix;
};

static int by_time(const void *va, const void *vb)
{
    const struct moment *a = va, *b = vb;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return (a->ix > b->ix) - (a->ix < b->ix);
}

static const struct action *sorted_actions(struct scenario_reader *r, const struct action *actions,
                                           uint32_t count)
{
    struct moment *moments = arena_array(&r->scratch, struct moment, count);
    struct action *out = arena_array(r->arena, struct action, count);
    for (uint32_t i = 0; i < count; i++)
        moments[i] = (struct moment){ actions[i].at_ns, i };
    qsort(moments, count, sizeof *moments, by_time);
    for (uint32_t i = 0; i < count; i++)
        out[i] = actions[moments[i].ix];
    return out;
}

void scenario_read_timeline(struct scenario_reader *r, const struct place *top)
{
    struct scenario *s = r->s;
    struct place list = place_member(top, "timeline");
    if (!list.found)
        return;
    struct action *actions = arena_array(&r->scratch, struct action, 2 * json_count(list.at));
    uint32_t n = 0, i = 0;
    json_each_item(list.at, item) /* an entry may name what another brings */
        scenario_remember(r, json_member(item, "apply"));
    json_each_item(list.at, item) {
        struct place entry = place_item(&list, i++, item);
        struct action *a = &actions[n++];
        int64_t lasts = 0;
        duration_parse(json_str(json_member(item, "at")), &a->at_ns, NULL);
        a->line = (int)doc_position(r->doc, item).line;
        a->say = text_of(r, item, "say");
        a->ends = json_bool(json_member(item, "ends"));
        read_action(r, &entry, a);
        if (a->at_ns > s->duration_ns) {
            struct place at = place_member(&entry, "at");
            scenario_wrong_at(r, &at, "is after the end of the scenario");
        }
        if (duration_parse(json_str(json_member(item, "for")), &lasts, NULL) == 0 &&
            a->at_ns + lasts <= s->duration_ns) {
            actions[n] = *a;
            actions[n].at_ns += lasts;
            actions[n].ends = true;
            actions[n++].say = STR("");
        }
    }
    s->timeline = sorted_actions(r, actions, n);
    s->timeline_count = n;
}

void scenario_read_chaos(struct scenario_reader *r, const struct place *top)
{
    struct chaos *chaos = &r->s->chaos;
    struct place place = place_member(top, "chaos");
    int64_t steps = 0;
    if (!place.found)
        return;
    json_i64(json_member(place.at, "steps"), &steps);
    *chaos = (struct chaos){ .steps = (uint32_t)steps,
                             .pause = { DURATION_SECOND, 2 * DURATION_MINUTE },
                             .actions = (1u << ACTION_KIND_COUNT) - 1 };
    span_of_json(json_member(place.at, "pause"), &chaos->pause);
    const json_val *actions = json_member(place.at, "actions");
    if (actions)
        chaos->actions = 0;
    json_each_item(actions, item) {
        for (uint32_t kind = 0; kind < ACTION_KIND_COUNT; kind++) {
            if (str_eqz(json_str(item), action_names[kind]))
                chaos->actions |= 1u << kind;
        }
    }
}
