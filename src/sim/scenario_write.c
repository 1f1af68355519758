/* A scenario as a file again. Everything is written, the defaults too: the file means the same when
 * defaults have changed. Prices, droughts and the like are written as beginnings and ends, so that
 * either can be taken out.
 */
#include "sim/scenario_inner.h"

#include "codec/yaml.h"
#include "control/settings.h"

struct writer {
    struct json_build b;
};

static json_mut *duration_text(struct writer *w, int64_t ns)
{
    char text[DURATION_TEXT_MAX];
    return json_new_str(&w->b, (struct str){ text, duration_format(ns, text) });
}

static void put(struct writer *w, json_mut *object, const char *name, json_mut *v)
{
    json_set(&w->b, object, str_of(name), v);
}

static void put_span(struct writer *w, json_mut *object, const char *name, struct span span)
{
    if (span.min_ns == span.max_ns) {
        put(w, object, name, duration_text(w, span.min_ns));
        return;
    }
    json_mut *both = json_new_object(&w->b);
    put(w, both, "min", duration_text(w, span.min_ns));
    put(w, both, "max", duration_text(w, span.max_ns));
    put(w, object, name, both);
}

static void put_text(struct writer *w, json_mut *object, const char *name, struct str text)
{
    if (text.len)
        json_set_str(&w->b, object, name, text);
}

static void put_double(struct writer *w, json_mut *object, const char *name, double v)
{
    if (v != 0)
        put(w, object, name, json_new_double(&w->b, v));
}

/* An object's text, parsed and copied: it was written by us, so it is JSON. */
static json_mut *object_tree(struct writer *w, struct str text)
{
    struct doc doc;
    struct err err;
    int rc = json_read_trusted(text, &doc, &err);
    KV_ASSERT(rc == 0);
    json_mut *copy = json_copy(&w->b, doc.root);
    doc_done(&doc);
    return copy;
}

static json_mut *object_trees(struct writer *w, const struct str *texts, uint32_t count)
{
    json_mut *list = json_new_array(&w->b);
    for (uint32_t i = 0; i < count; i++)
        json_push(&w->b, list, object_tree(w, texts[i]));
    return list;
}

static json_mut *rates_tree(struct writer *w, const struct fault_rates *rates)
{
    json_mut *o = json_new_object(&w->b);
    put_double(w, o, "storeErrors", rates->store_error);
    put_double(w, o, "storeLostReplies", rates->store_lost_reply);
    put_double(w, o, "watchCuts", rates->watch_cut);
    put_double(w, o, "launchErrors", rates->launch_error);
    put_double(w, o, "launchLostReplies", rates->launch_lost_reply);
    put_double(w, o, "cloudErrors", rates->cloud_error);
    return o;
}

static json_mut *match_tree(struct writer *w, const struct offering_match *match)
{
    json_mut *o = json_new_object(&w->b);
    put_text(w, o, "instanceType", match->instance_type);
    put_text(w, o, "zone", match->zone);
    put_text(w, o, "capacityType", match->capacity_type);
    return o;
}

static json_mut *target_tree(struct writer *w, const struct action *a)
{
    json_mut *o = json_new_object(&w->b);
    json_set_str(&w->b, o, "kind", str_of(a->target.kind->name));
    put_text(w, o, "namespace", a->target.namespace_);
    put_text(w, o, "name", a->target.name);
    if (a->kind == ACTION_SCALE)
        json_set_i64(&w->b, o, "replicas", a->target.replicas);
    else if (a->target.any)
        json_set_i64(&w->b, o, "any", a->target.any);
    return o;
}

static const char *break_member(enum sim_break what)
{
    switch (what) {
    case SIM_BREAK_IMAGE:
        return "breakImage";
    case SIM_BREAK_NETWORK:
        return "breakNetwork";
    case SIM_BREAK_LAUNCH:
        return "breakLaunch";
    }
    KV_UNREACHABLE();
}

static json_mut *crash_tree(struct writer *w, const struct action *a)
{
    if (!a->crash.calls)
        return json_new_bool(&w->b, true);
    json_mut *o = json_new_object(&w->b);
    json_set_i64(&w->b, o, "calls", a->crash.calls);
    if (a->crash.after_effect)
        json_set_bool(&w->b, o, "afterEffect", true);
    return o;
}

static void put_action(struct writer *w, json_mut *entry, const struct action *a)
{
    json_mut *o;
    switch (a->kind) {
    case ACTION_SAY:
        return;
    case ACTION_APPLY:
        put(w, entry, "apply", object_trees(w, a->apply.objects, a->apply.object_count));
        return;
    case ACTION_DELETE:
        put(w, entry, "delete", target_tree(w, a));
        return;
    case ACTION_SCALE:
        put(w, entry, "scale", target_tree(w, a));
        return;
    case ACTION_PRICE:
        o = match_tree(w, &a->offering.match);
        put(w, o, "factor", json_new_double(&w->b, a->offering.factor));
        put(w, entry, "price", o);
        return;
    case ACTION_DROUGHT:
        put(w, entry, "drought", match_tree(w, &a->offering.match));
        return;
    case ACTION_OUTAGE:
        put_text(w, entry, "outage", a->zone);
        return;
    case ACTION_BREAK:
        put_text(w, entry, break_member(a->broken.what),
                 a->broken.node_class.len ? a->broken.node_class : STR("*"));
        return;
    case ACTION_KILL:
        o = match_tree(w, &a->kill.match);
        json_set_i64(&w->b, o, "count", a->kill.count);
        put(w, entry, "kill", o);
        return;
    case ACTION_CRASH:
        put(w, entry, "crash", crash_tree(w, a));
        return;
    case ACTION_FAULTS:
        put(w, entry, "faults", rates_tree(w, &a->rates));
        return;
    }
    KV_UNREACHABLE();
}

static json_mut *timeline_tree(struct writer *w, const struct scenario *s)
{
    json_mut *list = json_new_array(&w->b);
    for (uint32_t i = 0; i < s->timeline_count; i++) {
        const struct action *a = &s->timeline[i];
        json_mut *entry = json_new_object(&w->b);
        put(w, entry, "at", duration_text(w, a->at_ns));
        put_text(w, entry, "say", a->say);
        put_action(w, entry, a);
        if (a->ends)
            json_set_bool(&w->b, entry, "ends", true);
        json_push(&w->b, list, entry);
    }
    return list;
}

static json_mut *settings_tree(struct writer *w, const struct control_settings *settings)
{
    json_mut *o = json_new_object(&w->b);
    for (uint32_t i = 0; i < control_setting_count; i++) {
        AUTO_BUF value = { 0 };
        control_setting_format(settings, i, &value);
        json_set_str(&w->b, o, control_setting_table[i].name, buf_str(&value));
    }
    return o;
}

static json_mut *cloud_tree(struct writer *w, const struct scenario *s)
{
    json_mut *o = json_new_object(&w->b);
    put_text(w, o, "catalogue", s->catalogue_path);
    put_text(w, o, "region", s->region);
    json_set_str(&w->b, o, "types", s->kwok_types ? STR("kwok") : STR("catalogue"));
    put_span(w, o, "boot", s->boot);
    put_span(w, o, "ready", s->ready);
    put_span(w, o, "terminate", s->terminate);
    put_double(w, o, "bootFailures", s->boot_failure_rate);
    put_double(w, o, "readyFailures", s->ready_failure_rate);
    return o;
}

static json_mut *cluster_tree(struct writer *w, const struct scenario *s)
{
    json_mut *o = json_new_object(&w->b);
    put_span(w, o, "podStart", s->pod_start);
    put_span(w, o, "podStop", s->pod_stop);
    put_span(w, o, "jobRun", s->job_run);
    put_span(w, o, "startupTaints", s->startup_taints);
    put(w, o, "eventDelay", duration_text(w, s->event_delay_ns));
    return o;
}

static json_mut *chaos_tree(struct writer *w, const struct chaos *chaos)
{
    json_mut *o = json_new_object(&w->b), *actions = json_new_array(&w->b);
    json_set_i64(&w->b, o, "steps", chaos->steps);
    put_span(w, o, "pause", chaos->pause);
    for (uint32_t kind = 0; kind < ACTION_KIND_COUNT; kind++) {
        if (chaos->actions >> kind & 1)
            json_push(&w->b, actions, json_new_str(&w->b, str_of(action_names[kind])));
    }
    put(w, o, "actions", actions);
    return o;
}

static json_mut *scenario_tree(struct writer *w, const struct scenario *s)
{
    char start[TIME_TEXT_MAX];
    json_mut *root = json_new_object(&w->b), *faults = rates_tree(w, &s->rates);
    time_format(s->start_us, start);
    put_double(w, faults, "crashesPerHour", s->crashes_per_hour);
    json_set_str(&w->b, root, "name", s->name);
    put_text(w, root, "about", s->about);
    json_set_str(&w->b, root, "start", str_of(start));
    put(w, root, "duration", duration_text(w, s->duration_ns));
    put(w, root, "sample", duration_text(w, s->sample_ns));
    json_set_i64(&w->b, root, "seed", (int64_t)s->seed);
    put(w, root, "controller", settings_tree(w, &s->settings));
    put(w, root, "cloud", cloud_tree(w, s));
    put(w, root, "cluster", cluster_tree(w, s));
    put(w, root, "faults", faults);
    if (s->object_count)
        put(w, root, "objects", object_trees(w, s->objects, s->object_count));
    put(w, root, "timeline", timeline_tree(w, s));
    if (s->chaos.steps)
        put(w, root, "chaos", chaos_tree(w, &s->chaos));
    return root;
}

void scenario_write(const struct scenario *s, struct buf *out)
{
    struct writer w;
    AUTO_BUF json = { 0 };
    struct doc doc;
    struct err err;
    json_build_init(&w.b);
    json_write_mut(scenario_tree(&w, s), &json);
    json_build_done(&w.b);
    int rc = json_read_trusted(buf_str(&json), &doc, &err);
    KV_ASSERT(rc == 0);
    yaml_write(doc.root, out);
    doc_done(&doc);
}

/* --- in words --- */

static void add_match(struct buf *out, const struct offering_match *match, const char *all)
{
    const struct str *parts[] = { &match->capacity_type, &match->instance_type };
    size_t before = out->len;
    for (size_t i = 0; i < KV_COUNT_OF(parts); i++) {
        if (parts[i]->len)
            buf_addf(out, "%s%.*s", out->len > before ? " " : "", STR_ARG(*parts[i]));
    }
    if (out->len == before)
        buf_addz(out, all);
    if (match->zone.len)
        buf_addf(out, " in %.*s", STR_ARG(match->zone));
}

static void add_object_names(struct buf *out, const struct action *a)
{
    for (uint32_t i = 0; i < a->apply.object_count; i++) {
        struct doc doc;
        if (i == 3) {
            buf_addf(out, " and %u more", a->apply.object_count - i);
            break;
        }
        if (json_read_trusted(a->apply.objects[i], &doc, NULL) < 0)
            continue;
        struct str kind = json_str(json_get(doc.root, STR("kind")));
        struct str name = json_str(json_path(doc.root, "metadata.name"));
        buf_addf(out, "%s %.*s %.*s", i ? "," : "", STR_ARG(kind), STR_ARG(name));
        doc_done(&doc);
    }
}

static void add_target(struct buf *out, const struct action *a)
{
    if (!a->target.name.len) {
        buf_addf(out, "%u %s%s", a->target.any, a->target.kind->name,
                 a->target.any == 1 ? "" : "s");
        return;
    }
    buf_addf(out, "%s %.*s%s%.*s", a->target.kind->name, STR_ARG(a->target.namespace_),
             a->target.namespace_.len ? "/" : "", STR_ARG(a->target.name));
}

static const char *break_words(enum sim_break what)
{
    switch (what) {
    case SIM_BREAK_IMAGE:
        return "image";
    case SIM_BREAK_NETWORK:
        return "network";
    case SIM_BREAK_LAUNCH:
        return "launching";
    }
    KV_UNREACHABLE();
}

void action_words(const struct action *a, struct buf *out)
{
    if (a->say.len) {
        buf_add(out, a->say);
        return;
    }
    switch (a->kind) {
    case ACTION_SAY:
        break;
    case ACTION_APPLY:
        buf_addz(out, "apply");
        add_object_names(out, a);
        break;
    case ACTION_DELETE:
        buf_addz(out, "delete ");
        add_target(out, a);
        break;
    case ACTION_SCALE:
        buf_addz(out, "scale ");
        add_target(out, a);
        buf_addf(out, " to %lld", (long long)a->target.replicas);
        break;
    case ACTION_PRICE:
        buf_addz(out, "the price of ");
        add_match(out, &a->offering.match, "everything");
        if (a->ends)
            buf_addz(out, " is back to normal");
        else
            buf_addf(out, " is times %g", a->offering.factor);
        break;
    case ACTION_DROUGHT:
        add_match(out, &a->offering.match, "everything");
        buf_addz(out, a->ends ? " can be had again" : " runs dry");
        break;
    case ACTION_OUTAGE:
        buf_addf(out, "zone %.*s %s", STR_ARG(a->zone), a->ends ? "is back" : "goes down");
        break;
    case ACTION_BREAK:
        buf_addf(out, "%s of ", break_words(a->broken.what));
        if (a->broken.node_class.len)
            buf_addf(out, "node class %.*s", STR_ARG(a->broken.node_class));
        else
            buf_addz(out, "all node classes");
        buf_addz(out, a->ends ? " is fixed" : " breaks");
        break;
    case ACTION_KILL:
        buf_addf(out, "%u instance%s of ", a->kill.count, a->kill.count == 1 ? "" : "s");
        add_match(out, &a->kill.match, "any kind");
        buf_addz(out, a->kill.count == 1 ? " dies" : " die");
        break;
    case ACTION_CRASH:
        buf_addz(out, "the control plane is killed");
        break;
    case ACTION_FAULTS:
        buf_addz(out, a->ends ? "calls fail as before" : "calls fail at other rates");
        break;
    }
}
