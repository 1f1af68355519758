/* Can the pods be where the plan puts them? Taints, labels, images, resources and host ports, for nodes
 * that are there, claims on their way, and everything that a launch may become.
 */
#include "sched/check_inner.h"

#include "api/resources.h"

/* --- images --- */

static bool fit_will_do(const struct checker *c, enum fit fit)
{
    return fit == FIT_YES || (fit == FIT_UNKNOWN && c->snap->fits.unknown != FIT_UNKNOWN_AS_NO);
}

/* Every row that the launch may become runs them. */
static void check_launch_images(struct checker *c, const struct site *p, uint32_t pod,
                                const struct sched_fit *fit)
{
    const struct blueprint *b = p->maybe_blueprint;
    const struct instance_types *s = b->pool->types;
    const uint8_t *maybe_rows = sched_fit_rows(fit, b->launch->pool);
    combination_each(b, of)
    {
        if (fit_will_do(c, sched_fit_of(maybe_rows, s->offering_row[of.offering])))
            continue;
        finding(c, pod, p->index, "%s: its images %s do not run on %.*s, which %s may become",
                pod_shown(c, pod), STR_SHOWN(fit->images), STR_ARG(s->names[of.type]), p->name);
        return;
    }
}

static void check_images(struct checker *c, const struct site *p, uint32_t pod,
                         const struct sched_fit *fit)
{
    const uint8_t *maybe_list = p->kind == SITE_NODE ? fit->nodes : fit->claims;
    if (p->kind == SITE_LAUNCH)
        check_launch_images(c, p, pod, fit);
    else if (!fit_will_do(c, sched_fit_of(maybe_list, p->index)))
        finding(c, pod, PLAN_NONE, "%s: its images %s do not run on %s", pod_shown(c, pod),
                STR_SHOWN(fit->images), p->name);
}

/* --- one pod --- */

static void check_pod_may_be(struct checker *c, const struct site *p, uint32_t pod)
{
    const struct stamp *stamp = &c->stamps.items[c->stamp_of[pod]];
    const struct pod_spec *spec = stamp->pod->spec;
    const struct taint *taint = taint_in_the_way(p->taints, p->taint_count, spec->tolerations.items,
                                                 spec->tolerations.count);
    if (taint)
        finding(c, pod, site_launch(p), "%s does not tolerate the taint %.*s of %s",
                pod_shown(c, pod), STR_ARG(taint->key), p->name);

    enum verdict v = ask_verdict(c, stamp->ask, p);
    if (v == NEVER)
        finding(c, pod, site_launch(p), "%s: its node selector or affinity does not find %s",
                pod_shown(c, pod), p->name);
    if (v == SOMETIMES)
        finding(c, pod, site_launch(p),
                "%s: its node selector or affinity does not find all that %s may become",
                pod_shown(c, pod), p->name);

    if (spec->resource_claims.count)
        finding(c, pod, site_launch(p),
                "%s has resource claims, which are not handled, and is on %s", pod_shown(c, pod),
                p->name);
    if (!stamp->request)
        finding(c, pod, site_launch(p), "%s asks for more than can be counted, and is on %s",
                pod_shown(c, pod), p->name);
}

/* --- resources --- */

static void add_request(const struct checker *c, wide *sum, const int64_t *maybe_request)
{
    for (uint32_t r = 0; maybe_request && r < c->resources.count; r++)
        sum[r] += maybe_request[r];
}

const wide *placed_requests(struct checker *c, const struct site *p)
{
    wide *sum = arena_array(&c->scratch, wide, c->resources.count);
    for (uint32_t i = 0; i < p->placed.count; i++)
        add_request(c, sum, c->stamps.items[c->stamp_of[p->placed.items[i]]].request);
    return sum;
}

/* The least of it that the node may turn out to have. */
static int64_t claim_has(const struct site *p, struct str name)
{
    const struct nodeclaim *claim = p->maybe_claim;
    const struct blueprint *b = p->maybe_blueprint;
    if (claim->status.allocatable.count)
        return milli_floor(resources_get(&claim->status.allocatable, name));
    if (!b)
        return milli_floor(resources_get(&claim->spec.resources.requests, name));
    const struct instance_types *s = b->pool->types;
    const struct resource_column *column = instance_types_resource(s, name);
    int64_t least = column ? INT64_MAX : 0;
    combination_each(b, of)
    {
        int64_t here = column ? column->allocatable[s->offering_row[of.offering]] : 0;
        least = here < least ? here : least;
    }
    return least;
}

static int64_t site_has(const struct site *p, struct str name)
{
    if (!p->maybe_node)
        return claim_has(p, name);
    const struct node_object_status *status = &p->maybe_node->status;
    const struct resources *says =
        status->allocatable.count ? &status->allocatable : &status->capacity;
    int64_t has = milli_floor(resources_get(says, name));
    bool initialized =
        str_eqz(str_map_get(&p->maybe_node->object.meta.labels, STR(LABEL_INITIALIZED)), "true");
    return has || initialized || !p->maybe_claim ? has : claim_has(p, name);
}

/* Daemons that belong on the node and are not there yet. */
static bool daemon_is_missing(struct checker *c, const struct daemon *d, const struct site *p)
{
    for (uint32_t i = 0; i < p->bound_count; i++) {
        if (daemon_owns(d->set, c->snap->pods[p->bound[i]]))
            return false;
    }
    return daemon_verdict(c, d, p, NULL) != NEVER;
}

static void check_node_resources(struct checker *c, const struct site *p)
{
    const wide *placed = placed_requests(c, p);
    wide *sum = arena_array(&c->scratch, wide, c->resources.count);
    memcpy(sum, placed, c->resources.count * sizeof *sum);
    for (uint32_t i = 0; i < p->bound_count; i++)
        add_request(c, sum, c->stamps.items[c->stamp_of[p->bound[i]]].request);
    vec_each(&c->daemons, struct daemon, d) {
        if (daemon_is_missing(c, d, p))
            add_request(c, sum, d->request);
    }
    for (uint32_t r = 0; r < c->resources.count; r++) {
        struct str name = c->resources.items[r];
        wide have = site_has(p, name);
        /* A node may be overdrawn already; pods that ask for nothing of it do not make it worse. */
        if (placed[r] > 0 && sum[r] > have)
            finding(c, p->placed.items[0], PLAN_NONE, "%s has %s %.*s, and %s would be asked of it",
                    p->name, amount_shown(c, name, have), STR_ARG(name),
                    amount_shown(c, name, sum[r]));
    }
}

static int64_t row_has(const struct resource_column *maybe_column, uint32_t row)
{
    return maybe_column ? maybe_column->allocatable[row] : 0;
}

/* Every combination holds them all, with the daemons that would be there. */
static void check_launch_resources(struct checker *c, const struct site *p)
{
    const struct blueprint *b = p->maybe_blueprint;
    const struct instance_types *s = b->pool->types;
    uint32_t count = c->resources.count;
    const wide *placed = placed_requests(c, p);
    wide *sum = arena_array(&c->scratch, wide, count);
    const struct resource_column **columns =
        arena_array(&c->scratch, const struct resource_column *, count);
    for (uint32_t r = 0; r < count; r++)
        columns[r] = instance_types_resource(s, c->resources.items[r]);

    uint32_t row_before = INSTANCE_TYPE_NONE;
    combination_each(b, of)
    {
        uint32_t row = s->offering_row[of.offering];
        if (row == row_before && !b->unsure_count)
            continue;
        row_before = row;
        for (uint32_t r = 0; r < count; r++)
            sum[r] = placed[r] + b->daemons[r];
        for (uint32_t i = 0; i < b->unsure_count; i++) {
            const struct daemon *d = &c->daemons.items[b->unsure[i]];
            if (daemon_verdict(c, d, p, &of) != NEVER)
                add_request(c, sum, d->request);
        }
        for (uint32_t r = 0; r < count; r++) {
            if (sum[r] == 0 || sum[r] <= row_has(columns[r], row))
                continue;
            const struct offering_shape *shape = &s->shapes[s->offering_shape[of.offering]];
            finding(c, PLAN_NONE, p->index,
                    "%s: %.*s (%.*s, %.*s) has %s %.*s, and pods and daemons ask for %s", p->name,
                    STR_ARG(s->names[of.type]), STR_ARG(shape->zone), STR_ARG(shape->capacity_type),
                    amount_shown(c, c->resources.items[r], row_has(columns[r], row)),
                    STR_ARG(c->resources.items[r]), amount_shown(c, c->resources.items[r], sum[r]));
            return; /* the types after it are much the same */
        }
    }
}

/* --- host ports --- */

struct port_user {
    struct port port;
    const char *name;
    uint32_t pod; /* PLAN_NONE: a daemon, or bound already */
};
typedef VEC(struct port_user) port_users;

static void check_ports_of(struct checker *c, const struct site *p, port_users *taken,
                           port_list ports, const char *name, uint32_t pod)
{
    size_t before = taken->count; /* a pod is not in its own way */
    for (uint32_t i = 0; i < ports.count; i++) {
        for (size_t k = 0; k < before && pod != PLAN_NONE; k++) {
            if (ports_conflict(&ports.items[i], &taken->items[k].port))
                finding(c, pod, site_launch(p), "%s: %s and %s both take host port %ld", p->name,
                        taken->items[k].name, name, (long)ports.items[i].port);
        }
        vec_push(taken, (struct port_user){ ports.items[i], name, pod });
    }
}

static const char *daemon_shown(struct checker *c, const struct daemon *d)
{
    return arena_strf(&c->scratch, "daemon %.*s", STR_ARG(d->set->object.meta.name)).p;
}

static void check_ports(struct checker *c, const struct site *p)
{
    port_users taken = { 0 };
    for (uint32_t i = 0; i < p->bound_count; i++) {
        const struct stamp *stamp = &c->stamps.items[c->stamp_of[p->bound[i]]];
        if (stamp->ports.count)
            check_ports_of(c, p, &taken, stamp->ports, pod_shown(c, p->bound[i]), PLAN_NONE);
    }
    vec_each(&c->daemons, struct daemon, d) {
        if (d->ports.count && daemon_is_missing(c, d, p))
            check_ports_of(c, p, &taken, d->ports, daemon_shown(c, d), PLAN_NONE);
    }
    for (uint32_t i = 0; i < p->placed.count; i++) {
        uint32_t pod = p->placed.items[i];
        const struct stamp *stamp = &c->stamps.items[c->stamp_of[pod]];
        if (stamp->ports.count)
            check_ports_of(c, p, &taken, stamp->ports, pod_shown(c, pod), pod);
    }
    vec_done(&taken);
}

void check_residents(struct checker *c, const struct site *p)
{
    if (!p->placed.count)
        return;
    if (p->deleting)
        finding(c, p->placed.items[0], PLAN_NONE, "%s is being deleted, and pods go to it",
                p->name);
    for (uint32_t i = 0; i < p->placed.count; i++)
        check_pod_may_be(c, p, p->placed.items[i]);
    for (uint32_t i = 0; i < p->placed.count; i++) {
        uint32_t pod = p->placed.items[i];
        uint32_t fit = snapshot_pod_fit(c->snap, pod);
        bool told = i && fit == snapshot_pod_fit(c->snap, p->placed.items[i - 1]);
        if (fit != UINT32_MAX && !told) /* pods that ask for the same mostly stand together */
            check_images(c, p, pod, &c->snap->fits.items[fit]);
    }
    if (p->kind == SITE_LAUNCH)
        check_launch_resources(c, p);
    else
        check_node_resources(c, p);
    check_ports(c, p);
}
