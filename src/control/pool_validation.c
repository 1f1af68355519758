/* ValidationSucceeded of a NodePool: what its schema cannot say, and no API server has refused.
 *
 * The rules are those of `karve validate` (api/nodepool_check.c). They name the place of a problem in
 * the object's JSON, which is not kept once an object is decoded, so what they look at is written
 * as JSON again. Budgets are left out: there is nothing about them that makes a pool invalid.
 */
#include "control/controllers.h"

#include "api/json_parts.h"
#include "control/pools.h"

#define PROBLEMS_SHOWN 5

static json_mut *checked_parts(const struct nodepool *pool, struct json_build *b)
{
    const struct node_template *template = &pool->spec.template;
    json_mut *root = json_new_object(b);
    json_mut *meta = json_mut_object(b, root, STR("metadata"));
    json_mut *spec = json_mut_object(b, root, STR("spec"));
    json_mut *node = json_mut_object(b, spec, STR("template"));
    json_mut *node_meta = json_mut_object(b, node, STR("metadata"));
    json_mut *node_spec = json_mut_object(b, node, STR("spec"));

    json_set(b, meta, STR("annotations"), json_labels(b, &pool->object.meta.annotations));
    json_set(b, node_meta, STR("labels"), json_labels(b, &template->meta.labels));
    json_set(
        b, node_spec, STR("requirements"),
        json_expressions(b, template->spec.requirements.items, template->spec.requirements.count));
    json_set(b, node_spec, STR("taints"),
             json_taints(b, template->spec.taints.items, template->spec.taints.count));
    json_set(
        b, node_spec, STR("startupTaints"),
        json_taints(b, template->spec.startup_taints.items, template->spec.startup_taints.count));
    return root;
}

static struct str problems_text(const struct report *report, struct arena *arena)
{
    AUTO_BUF text = { 0 };
    uint32_t shown = 0;
    vec_each(&report->problems, struct problem, p) {
        if (p->severity != PROBLEM_ERROR || shown == PROBLEMS_SHOWN)
            continue;
        buf_addf(&text, "%s%.*s: %.*s", shown++ ? "; " : "", STR_ARG(p->path), STR_ARG(p->what));
    }
    if (report->error_count > shown)
        buf_addf(&text, "; and %u more", report->error_count - shown);
    return arena_str(arena, buf_str(&text));
}

/* "" if nothing is wrong. */
static struct str pool_problems(const struct nodepool *pool, struct arena *arena)
{
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 };
    struct doc doc = { 0 };
    struct err err = { 0 };
    struct report report = { .arena = arena };

    json_build_init(&b);
    json_write_mut(checked_parts(pool, &b), &text);
    if (json_read_trusted(buf_str(&text), &doc, &err) < 0)
        return arena_strf(arena, "it cannot be read: %s", err.text);
    nodepool_check(&pool->object, doc.root, &report);
    struct str problems = report.error_count ? problems_text(&report, arena) : STR("");
    report_done(&report);
    doc_done(&doc);
    return problems;
}

void pool_judge_spec(const struct nodepool *pool, struct condition_set *set, struct arena *arena)
{
    struct str problems = pool_problems(pool, arena);
    if (problems.len)
        conditions_set_false(set, CONDITION_VALIDATION_SUCCEEDED,
                             REASON_NODE_POOL_VALIDATION_FAILED, problems);
    else
        conditions_set_true(set, CONDITION_VALIDATION_SUCCEEDED);
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = pool_managed(c, key);
    struct err err = { 0 };
    if (!object)
        return outcome_done();
    const struct nodepool *pool = nodepool_of(object);
    struct condition_set *set = pool_conditions(c, pool, &arena);
    pool_judge_spec(pool, set, &arena);
    if (control_patch_conditions(c, object, set, NULL, &err) < 0)
        return control_failed(c, &nodepool_validation, key, &err);
    return outcome_done();
}

const struct controller nodepool_validation = {
    .name = "nodepool.validation",
    .reconcile = reconcile,
    .triggers = { { &nodepool_kind, trigger_own_name } },
};
