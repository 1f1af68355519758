/* One short function per kind that has something to say; quantities in the order that people look
 * for them. */
#include "api/describe.h"

#include "api/ec2nodeclass.h"
#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "api/nodeoverlay.h"
#include "api/nodepool.h"
#include "api/policy.h"
#include "api/requests.h"
#include "api/storage.h"
#include "api/workloads.h"

/* Parts of a description are joined by commas. */
static void part(struct buf *out, size_t start, const char *fmt, ...) KV_PRINTF(3, 4);
static void part(struct buf *out, size_t start, const char *fmt, ...)
{
    va_list args;
    if (out->len > start)
        buf_addz(out, ", ");
    va_start(args, fmt);
    buf_vaddf(out, fmt, args);
    va_end(args);
}

static void amount(const struct resource *r, size_t start, struct buf *out)
{
    char text[QUANTITY_TEXT_MAX];
    quantity_format(r->amount, text);
    part(out, start, "%s %.*s", text, STR_ARG(r->name));
}

static bool is_first(const struct resource *r) /* what people look for before the rest */
{
    return str_eq(r->name, STR("cpu")) || str_eq(r->name, STR("memory"));
}

static void amounts(const struct resources *r, struct buf *out)
{
    size_t start = out->len;
    for (uint32_t i = 0; i < r->count; i++) {
        if (is_first(&r->items[i]))
            amount(&r->items[i], start, out);
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (!is_first(&r->items[i]))
            amount(&r->items[i], start, out);
    }
}

static void spec_amounts(const struct pod_spec *spec, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct resources requests;
    struct err err;
    if (pod_spec_requests(spec, &arena, &requests, &err) < 0)
        buf_addz(out, err.text);
    else if (requests.count == 0)
        buf_addz(out, "no requests");
    else
        amounts(&requests, out);
}

static void pods(int64_t count, const struct pod_template *maybe_template, struct buf *out)
{
    buf_addf(out, "%lld pod%s", (long long)count, count == 1 ? "" : "s");
    if (maybe_template) {
        buf_addz(out, " of ");
        spec_amounts(&maybe_template->spec, out);
    }
}

static int64_t or_one(struct maybe_int n)
{
    return n.set ? n.value : 1;
}

static void describe_job(const struct job_spec *spec, struct buf *out)
{
    int64_t parallel = or_one(spec->parallelism);
    pods(parallel, spec->maybe_template, out);
    if (spec->completions.set && spec->completions.value != parallel)
        buf_addf(out, " until %lld succeed", (long long)spec->completions.value);
}

static void describe_claim(const struct pvc *pvc, struct buf *out)
{
    amounts(&pvc->spec.resources.requests, out);
    if (pvc->spec.storage_class_name.len)
        buf_addf(out, " of %.*s", STR_ARG(pvc->spec.storage_class_name));
    if (pvc->spec.volume_name.len)
        buf_addf(out, ", bound to %.*s", STR_ARG(pvc->spec.volume_name));
}

static void describe_nodepool(const struct nodepool *pool, struct buf *out)
{
    size_t start = out->len;
    const struct claim_node_spec *spec = &pool->spec.template.spec;
    if (pool->spec.weight.set)
        part(out, start, "weight %lld", (long long)pool->spec.weight.value);
    if (pool->spec.limits.count) {
        part(out, start, "up to ");
        amounts(&pool->spec.limits, out);
    }
    if (spec->taints.count)
        part(out, start, "tainted");
}

static void describe_overlay(const struct nodeoverlay *overlay, struct buf *out)
{
    size_t start = out->len;
    if (overlay->spec.price.p)
        part(out, start, "price %.*s", STR_ARG(overlay->spec.price));
    if (overlay->spec.price_adjustment.p)
        part(out, start, "price %.*s", STR_ARG(overlay->spec.price_adjustment));
    if (overlay->spec.capacity.count) {
        part(out, start, "adds ");
        amounts(&overlay->spec.capacity, out);
    }
}

static void describe_ec2nodeclass(const struct ec2nodeclass *class, struct buf *out)
{
    size_t start = out->len;
    for (uint32_t i = 0; i < class->spec.ami_terms.count; i++) {
        const struct ami_term *term = &class->spec.ami_terms.items[i];
        struct str image = term->alias.p ? term->alias : term->id.p ? term->id : term->name;
        if (image.p)
            part(out, start, "image %.*s", STR_ARG(image));
    }
    if (class->spec.role.p)
        part(out, start, "role %.*s", STR_ARG(class->spec.role));
}

static void describe_pdb(const struct pdb *pdb, struct buf *out)
{
    const struct pdb_spec *spec = &pdb->spec;
    const struct int_or_str *bound =
        spec->min_available.set ? &spec->min_available : &spec->max_unavailable;
    buf_addz(out, spec->min_available.set ? "keeps " : "may lose ");
    if (bound->str.p)
        buf_add(out, bound->str);
    else
        buf_addf(out, "%lld", (long long)bound->number);
}

void object_describe(const struct object *object, struct buf *out)
{
    const struct kind *kind = object->kind;
    if (kind == &pod_kind) {
        spec_amounts(pod_of(object)->spec, out);
    } else if (kind == &deployment_kind) {
        const struct deployment_spec *spec = &deployment_of(object)->spec;
        pods(or_one(spec->replicas), spec->maybe_template, out);
    } else if (kind == &replica_set_kind) {
        const struct replica_set_spec *spec = &replica_set_of(object)->spec;
        pods(or_one(spec->replicas), spec->maybe_template, out);
    } else if (kind == &stateful_set_kind) {
        const struct stateful_set_spec *spec = &stateful_set_of(object)->spec;
        pods(or_one(spec->replicas), spec->maybe_template, out);
    } else if (kind == &daemon_set_kind) {
        const struct daemon_set_spec *spec = &daemon_set_of(object)->spec;
        buf_addz(out, "on every node");
        if (spec->maybe_template) {
            buf_addz(out, ": ");
            spec_amounts(&spec->maybe_template->spec, out);
        }
    } else if (kind == &job_kind) {
        describe_job(&job_of(object)->spec, out);
    } else if (kind == &cron_job_kind) {
        const struct cron_job_spec *spec = &cron_job_of(object)->spec;
        buf_addf(out, "at %.*s: ", STR_ARG(spec->schedule));
        describe_job(&spec->job_template.spec, out);
    } else if (kind == &nodepool_kind) {
        describe_nodepool(nodepool_of(object), out);
    } else if (kind == &nodeoverlay_kind) {
        describe_overlay(nodeoverlay_of(object), out);
    } else if (kind == &ec2nodeclass_kind) {
        describe_ec2nodeclass(ec2nodeclass_of(object), out);
    } else if (kind == &pdb_kind) {
        describe_pdb(pdb_of(object), out);
    } else if (kind == &priority_class_kind) {
        buf_addf(out, "priority %lld", (long long)priority_class_of(object)->value);
    } else if (kind == &pvc_kind) {
        describe_claim(pvc_of(object), out);
    } else if (kind == &pv_kind) {
        amounts(&pv_of(object)->spec.capacity, out);
    } else if (kind == &storage_class_kind) {
        buf_add(out, storage_class_of(object)->provisioner);
    }
}
