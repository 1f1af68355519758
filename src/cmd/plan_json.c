/* `karve plan -o json` and -o yaml. The names are a contract: members may be added, never renamed. */
#include "cmd/plan_inner.h"

#include "api/json_parts.h"
#include "api/resources.h"

static json_mut *json_price(struct json_build *b, usd_hour price)
{
    return json_new_double(b, usd_hour_double(price));
}

static json_mut *json_pods(struct json_build *b, const struct planning *p, struct plan_pods pods)
{
    json_mut *array = json_new_array(b);
    for (uint32_t i = 0; i < pods.count; i++)
        json_push(b, array, json_new_str(b, p->pod_names[pods.items[i]]));
    return array;
}

static json_mut *json_share(struct json_build *b, struct plan_use use)
{
    double share =
        use.allocatable > 0 ? (double)use.requested / (double)use.allocatable : (double)0;
    return json_new_double(b, (double)(int64_t)(share * 10000 + 0.5) / 10000);
}

static json_mut *json_launch(struct json_build *b, const struct planning *p,
                             const struct plan_launch *launch)
{
    AUTO_ARENA arena = { 0 };
    const struct sched_pool *pool = &p->snapshot.pools[launch->pool];
    const struct claim_node_spec *spec = &pool->pool->spec.template.spec;
    const struct instance_types *types = pool->types;
    struct resources allocatable = instance_type_allocatable(types, launch->row, &arena);
    json_mut *o = json_new_object(b), *names = json_new_array(b), *use = json_new_object(b);

    for (uint32_t i = 0; i < launch->type_count; i++)
        json_push(b, names, json_new_str(b, types->names[launch->types[i]]));
    json_set(b, use, STR("cpu"), json_share(b, launch_use(p, launch, STR("cpu"))));
    json_set(b, use, STR("memory"), json_share(b, launch_use(p, launch, STR("memory"))));

    json_set_str(b, o, "nodePool", launch_pool(p, launch));
    json_set_str(b, o, "instanceType", launch_type(p, launch));
    json_set(b, o, STR("instanceTypes"), names);
    json_set_str(b, o, "zone", launch_zone(p, launch));
    json_set_str(b, o, "capacityType", launch_capacity_type(p, launch));
    json_set(b, o, STR("pricePerHour"), json_price(b, launch->price));
    json_set(b, o, STR("requests"), resources_json(b, &launch->requests));
    json_set(b, o, STR("allocatable"), resources_json(b, &allocatable));
    json_set(b, o, STR("utilization"), use);
    json_set(b, o, STR("pods"), json_pods(b, p, launch->pods));
    json_set(b, o, STR("labels"), json_labels(b, &launch->labels));
    json_set(b, o, STR("taints"), json_taints(b, spec->taints.items, spec->taints.count));
    json_set(b, o, STR("startupTaints"),
             json_taints(b, spec->startup_taints.items, spec->startup_taints.count));
    json_set(b, o, STR("requirements"), json_requirements(b, &launch->requirements, &arena));
    if (launch->min_values_relaxed)
        json_set_bool(b, o, "minValuesRelaxed", true);
    return o;
}

static json_mut *json_existing(struct json_build *b, const struct planning *p,
                               const struct plan_existing *existing)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "node", existing_name(p, existing));
    json_set_bool(b, o, "inFlight", existing->node == PLAN_NONE);
    json_set(b, o, STR("pods"), json_pods(b, p, existing->pods));
    return o;
}

static json_mut *json_miss(struct json_build *b, const struct planning *p,
                           const struct plan_miss *miss)
{
    json_mut *o = json_new_object(b), *reasons = json_new_array(b);
    for (uint32_t i = 0; i < miss->reason_count; i++) {
        const struct plan_blame *blame = &miss->reasons[i];
        json_mut *r = json_new_object(b);
        json_set_str(b, r, "nodePool", blame_pool(p, blame));
        json_set_str(b, r, "reason", str_of(plan_reason_names[blame->reason]));
        json_set_str(b, r, "detail", blame->detail);
        json_push(b, reasons, r);
    }
    json_set_str(b, o, "pod", p->pod_names[miss->pod]);
    json_set(b, o, STR("reasons"), reasons);
    return o;
}

static json_mut *json_totals(struct json_build *b, const struct plan *plan)
{
    json_mut *o = json_new_object(b);
    json_set_i64(b, o, "pods", plan->order.count);
    json_set_i64(b, o, "launches", plan->launch_count);
    json_set(b, o, STR("pricePerHour"), json_price(b, plan->price));
    json_set(b, o, STR("lowerBoundPerHour"), json_price(b, plan->lower_bound));
    json_set_i64(b, o, "unschedulable", plan->miss_count);
    json_set_i64(b, o, "skipped", plan->skip_count);
    return o;
}

static json_mut *json_check(struct json_build *b, const struct planning *p)
{
    json_mut *o = json_new_object(b), *findings = json_new_array(b);
    for (uint32_t i = 0; i < p->check.count; i++) {
        const struct check_finding *f = &p->check.findings[i];
        json_mut *finding = json_new_object(b);
        if (f->pod != PLAN_NONE)
            json_set_str(b, finding, "pod", p->pod_names[f->pod]);
        if (f->launch != PLAN_NONE)
            json_set_i64(b, finding, "launch", f->launch);
        json_set_str(b, finding, "what", f->what);
        json_push(b, findings, finding);
    }
    json_set_bool(b, o, "ok", p->check.count == 0);
    json_set(b, o, STR("findings"), findings);
    return o;
}

/* --- explanations: one for all pods of a class --- */

static json_mut *json_explain_pool(struct json_build *b, const struct planning *p,
                                   const struct explain_pool *pool)
{
    json_mut *o = json_new_object(b), *steps = json_new_array(b);
    for (uint32_t i = 0; i < pool->step_count; i++) {
        const struct explain_step *step = &pool->steps[i];
        json_mut *s = json_new_object(b);
        json_set_str(b, s, "reason", str_of(plan_reason_names[step->reason]));
        json_set_str(b, s, "what", step->what);
        json_set_i64(b, s, "before", step->before);
        json_set_i64(b, s, "after", step->after);
        json_push(b, steps, s);
    }
    json_set_str(b, o, "nodePool", p->snapshot.pools[pool->pool].pool->object.meta.name);
    json_set_bool(b, o, "possible", pool->possible);
    if (!pool->possible) {
        json_set_str(b, o, "reason", str_of(plan_reason_names[pool->reason]));
        json_set_str(b, o, "detail", pool->detail);
        if (pool->nearest.len)
            json_set_str(b, o, "nearest", pool->nearest);
        if (pool->edit.len)
            json_set_str(b, o, "edit", pool->edit);
    }
    json_set(b, o, STR("steps"), steps);
    return o;
}

static json_mut *json_explanation(struct json_build *b, const struct planning *p,
                                  const struct explanation *e, struct plan_pods pods)
{
    json_mut *o = json_new_object(b), *pools = json_new_array(b);
    json_set(b, o, STR("pods"), json_pods(b, p, pods));
    json_set_i64(b, o, "onExisting", e->on_homes);
    json_set_i64(b, o, "onLaunches", e->on_launches);
    json_set_i64(b, o, "unschedulable", e->missed);
    if (e->given_up.len)
        json_set_str(b, o, "givenUp", e->given_up);
    if (e->homes.len)
        json_set_str(b, o, "nodes", e->homes);
    if (e->maybe_refused) {
        json_set_str(b, o, "reason", str_of(plan_reason_names[e->maybe_refused->reason]));
        json_set_str(b, o, "detail", e->maybe_refused->detail);
    }
    for (uint32_t i = 0; i < e->pool_count; i++)
        json_push(b, pools, json_explain_pool(b, p, &e->pools[i]));
    json_set(b, o, STR("nodePools"), pools);
    return o;
}

static json_mut *json_explain(struct json_build *b, const struct planning *p)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct explained_class *classes = explained_by_class(p, &arena, &count);
    json_mut *array = json_new_array(b);
    for (uint32_t i = 0; i < count; i++)
        json_push(b, array, json_explanation(b, p, classes[i].explanation, classes[i].pods));
    return array;
}

/* --- the document --- */

static json_mut *json_plan(struct json_build *b, const struct planning *p)
{
    const struct plan *plan = p->plan;
    json_mut *root = json_new_object(b), *launches = json_new_array(b);
    json_mut *existing = json_new_array(b), *misses = json_new_array(b);
    json_mut *skips = json_new_array(b), *notes = json_new_array(b);

    for (uint32_t i = 0; i < plan->launch_count; i++)
        json_push(b, launches, json_launch(b, p, &plan->launches[i]));
    for (uint32_t i = 0; i < plan->existing_count; i++)
        json_push(b, existing, json_existing(b, p, &plan->existing[i]));
    for (uint32_t i = 0; i < plan->miss_count; i++)
        json_push(b, misses, json_miss(b, p, &plan->misses[i]));
    for (uint32_t i = 0; i < plan->skip_count; i++) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "pod", p->pod_names[plan->skips[i].pod]);
        json_set_str(b, o, "reason", plan->skips[i].reason);
        json_push(b, skips, o);
    }
    vec_each(&p->notes, struct str, note)
        json_push(b, notes, json_new_str(b, *note));

    json_set(b, root, STR("launches"), launches);
    json_set(b, root, STR("existing"), existing);
    json_set(b, root, STR("unschedulable"), misses);
    json_set(b, root, STR("skipped"), skips);
    json_set(b, root, STR("totals"), json_totals(b, plan));
    if (p->explained_count)
        json_set(b, root, STR("explain"), json_explain(b, p));
    if (p->checked)
        json_set(b, root, STR("check"), json_check(b, p));
    json_set(b, root, STR("notes"), notes);
    return root;
}

void plan_json(const struct planning *p, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_write_pretty(json_plan(&b, p), out);
    buf_addc(out, '\n');
}

void plan_yaml(const struct planning *p, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF text = { 0 };
    struct doc doc;
    struct err err;
    json_build_init(&b);
    json_write_mut(json_plan(&b, p), &text);
    int rc = json_read_trusted(buf_str(&text), &doc, &err);
    KV_ASSERT(rc == 0); /* we wrote it */
    yaml_write(doc.root, out);
    doc_done(&doc);
}
