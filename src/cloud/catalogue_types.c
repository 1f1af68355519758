/* From machines to drafts. What all types have in common is made once: the class's rules, its
 * zones, and the requirements of a region's offerings (zones x capacity types), which every type's
 * offerings point at.
 *
 * Every type has an offering in every zone of the region for each way of buying it. Those that
 * cannot be had (the type is not offered there, the class has no subnet there, or the two do not go
 * together) are there and unavailable, so that an explanation can name them.
 */
#include "cloud/catalogue_types.h"

#include "bootstrap/boot.h"
#include "cloud/catalogue_labels.h"

#define RESERVED_PRICE_PART 10000000 /* of on-demand: paid for already, but never quite free */

enum { BUY_ON_DEMAND, BUY_SPOT, BUYS };

struct zone_lists {
    struct str_list names, ids; /* sorted */
};

struct class_view {
    const struct ec2nodeclass *maybe_class;
    const struct catalogue_region *region;
    struct allocatable_rules rules;
    uint32_t zones;                                    /* bit i: usable, the region's i-th */
    struct str zone_ids[CATALOGUE_ZONES_MAX];          /* "" where there is no subnet */
    struct zone_lists lists[1 << CATALOGUE_ZONES_MAX]; /* by set of zones, made when needed */
    struct requirements shapes[CATALOGUE_ZONES_MAX][BUYS];
    const struct resolved_reservation **reservations; /* by type, then id */
    uint32_t reservation_count;
    uint32_t reservation_at; /* how far the walk over types has come */
};

/* --- small lists --- */

static struct str_list list_of_one(struct arena *arena, struct str s)
{
    struct str *item = arena_new(arena, struct str);
    *item = s;
    return (struct str_list){ item, 1 };
}

static struct str_list sorted_list(struct str *items, uint32_t count)
{
    return (struct str_list){ items, (uint32_t)str_sort_unique(items, count) };
}

/* --- the class --- */

static uint32_t region_zone(const struct catalogue_region *region, struct str zone)
{
    uint32_t i = 0;
    while (i < region->zone_count && !str_eqz(zone, region->zones[i]))
        i++;
    return i;
}

/* Where the class has subnets; one without status (it never met a cloud) may be anywhere. */
static void read_zones(struct class_view *view)
{
    const struct catalogue_region *region = view->region;
    const struct ec2nodeclass *class_ = view->maybe_class;
    if (!class_ || class_->status.subnets.count == 0) {
        view->zones = (1u << region->zone_count) - 1;
        for (uint32_t z = 0; z < region->zone_count; z++)
            view->zone_ids[z] = str_of(region->zone_ids[z]);
        return;
    }
    for (uint32_t i = 0; i < class_->status.subnets.count; i++) {
        const struct resolved_subnet *subnet = &class_->status.subnets.items[i];
        uint32_t z = region_zone(region, subnet->zone);
        if (z == region->zone_count)
            continue;
        view->zones |= 1u << z;
        view->zone_ids[z] = subnet->zone_id.len ? subnet->zone_id : str_of(region->zone_ids[z]);
    }
}

static struct str flag_text(bool on)
{
    return on ? STR("true") : STR("false");
}

static struct str reservation_sort(const struct resolved_reservation *r)
{
    return r->type == RESERVATION_CAPACITY_BLOCK ? STR("capacity-block") : STR("default");
}

static struct requirements offering_labels(struct arena *arena, struct str capacity_type,
                                           struct str zone, struct str zone_id,
                                           const struct resolved_reservation *maybe_reservation)
{
    struct requirement *items = arena_array(arena, struct requirement, 6);
    struct str id = STR(""), interruptible = STR(""), sort = STR("");
    if (maybe_reservation) {
        id = maybe_reservation->id;
        interruptible = flag_text(maybe_reservation->interruptible);
        sort = reservation_sort(maybe_reservation);
    }
    const struct {
        struct str key, value;
    } labels[] = {
        { STR(LABEL_AWS("capacity-reservation-id")), id },
        { STR(LABEL_AWS("capacity-reservation-interruptible")), interruptible },
        { STR(LABEL_AWS("capacity-reservation-type")), sort },
        { STR(LABEL_CAPACITY_TYPE), capacity_type },
        { STR(LABEL_ZONE_ID), zone_id },
        { STR(LABEL_ZONE), zone },
    };
    uint32_t count = 0;
    for (size_t i = 0; i < KV_COUNT_OF(labels); i++) {
        if (!labels[i].value.len && str_eqz(labels[i].key, LABEL_ZONE_ID))
            continue; /* not known, which is not the same as "has none" */
        items[count].key = labels[i].key;
        if (labels[i].value.len)
            items[count].values = list_of_one(arena, labels[i].value);
        count++;
    }
    return (struct requirements){ items, count };
}

static void make_shapes(struct arena *arena, struct class_view *view)
{
    for (uint32_t z = 0; z < view->region->zone_count; z++) {
        struct str zone = str_of(view->region->zones[z]), id = view->zone_ids[z];
        view->shapes[z][BUY_ON_DEMAND] =
            offering_labels(arena, STR(CAPACITY_ON_DEMAND), zone, id, NULL);
        view->shapes[z][BUY_SPOT] = offering_labels(arena, STR(CAPACITY_SPOT), zone, id, NULL);
    }
}

static int by_type_and_id(const void *a, const void *b)
{
    const struct resolved_reservation *x = *(const struct resolved_reservation *const *)a;
    const struct resolved_reservation *y = *(const struct resolved_reservation *const *)b;
    int order = str_cmp(x->instance_type, y->instance_type);
    return order ? order : str_cmp(x->id, y->id);
}

static void sort_reservations(struct arena *arena, struct class_view *view)
{
    if (!view->maybe_class)
        return;
    uint32_t count = view->maybe_class->status.reservations.count;
    view->reservations = arena_array(arena, const struct resolved_reservation *, count);
    for (uint32_t i = 0; i < count; i++)
        view->reservations[i] = &view->maybe_class->status.reservations.items[i];
    qsort(view->reservations, count, sizeof(void *), by_type_and_id);
    view->reservation_count = count;
}

static int read_class(struct arena *arena, const struct catalogue_region *region,
                      const struct ec2nodeclass *maybe_class,
                      const struct allocatable_options *options, struct class_view *view,
                      struct err *err)
{
    struct allocatable_class class_ = { .family = AMI_FAMILY_AL2023 };
    *view = (struct class_view){ .maybe_class = maybe_class, .region = region };
    if ((maybe_class && allocatable_class_of(arena, maybe_class, &class_, err) < 0) ||
        allocatable_prepare(&class_, options, &view->rules, err) < 0)
        return -1;
    read_zones(view);
    make_shapes(arena, view);
    sort_reservations(arena, view);
    return 0;
}

/* --- does the class go with the machine? --- */

static bool interfaces_fit(const struct ec2nodeclass_spec *spec, const struct catalogue_machine *m)
{
    uint32_t efa_only = 0;
    for (uint32_t i = 0; i < spec->network_interfaces.count; i++) {
        const struct network_interface *interface = &spec->network_interfaces.items[i];
        if (!m->ena || interface->card_index >= m->machine.card_count ||
            interface->device_index >= m->machine.enis)
            return false;
        efa_only += interface->type == INTERFACE_EFA_ONLY;
    }
    return efa_only <= m->machine.efa_max;
}

const char *catalogue_mismatch(const struct ec2nodeclass *maybe_class,
                               const struct catalogue_machine *m)
{
    enum ami_family family =
        maybe_class ? ec2nodeclass_ami_family(&maybe_class->spec) : AMI_FAMILY_AL2023;
    if (family == AMI_FAMILY_AL2023 && str_starts(m->machine.name, STR("a1.")))
        return "AL2023 does not boot on the first Graviton";
    if (family_of(family)->windows && m->machine.arch == MACHINE_ARM64)
        return "Windows does not boot on arm64";
    if (!maybe_class)
        return NULL;
    const struct ec2nodeclass_spec *spec = &maybe_class->spec;
    bool nested = spec->cpu_options && spec->cpu_options->nested_virtualization == ON_OFF_ENABLED;
    if (nested && !m->machine.nested_virtualization)
        return "the node class asks for nested virtualization";
    if (spec->connection_tracking && !str_eqz(m->machine.hypervisor, "nitro"))
        return "the node class's connectionTracking needs a nitro hypervisor";
    if (!interfaces_fit(spec, m))
        return "the node class's networkInterfaces do not fit its network cards";
    return NULL;
}

/* --- one type --- */

struct type_view {
    const struct catalogue_machine *machine;
    uint32_t zones; /* where it can be had */
    bool compatible;
    const struct resolved_reservation *const *reservations;
    uint32_t reservation_count;
};

/* Types come in the order of names, and reservations are sorted by them: each is passed once. */
static struct type_view next_type(struct class_view *view, const struct catalogue_machine *m)
{
    uint32_t *at = &view->reservation_at, count = view->reservation_count;
    while (*at < count && str_cmp(view->reservations[*at]->instance_type, m->machine.name) < 0)
        (*at)++;
    uint32_t first = *at;
    while (*at < count && str_eq(view->reservations[*at]->instance_type, m->machine.name))
        (*at)++;
    return (struct type_view){ .machine = m,
                               .zones = m->zones & view->zones,
                               .compatible = !catalogue_mismatch(view->maybe_class, m),
                               .reservations = count ? &view->reservations[first] : NULL,
                               .reservation_count = *at - first };
}

/* Types that are offered in the same zones share the lists of them. */
static const struct zone_lists *zone_lists(struct arena *arena, struct class_view *view,
                                           uint32_t zones)
{
    struct zone_lists *lists = &view->lists[zones];
    if (lists->names.items)
        return lists;
    struct str *names = arena_array(arena, struct str, CATALOGUE_ZONES_MAX);
    struct str *ids = arena_array(arena, struct str, CATALOGUE_ZONES_MAX);
    uint32_t count = 0;
    for (uint32_t z = 0; z < view->region->zone_count; z++) {
        if (!(zones >> z & 1))
            continue;
        names[count] = str_of(view->region->zones[z]);
        ids[count++] = view->zone_ids[z];
    }
    lists->names = sorted_list(names, count);
    lists->ids = sorted_list(ids, count);
    return lists;
}

static void place_reservations(struct arena *arena, const struct type_view *type,
                               struct type_placement *out)
{
    uint32_t count = type->reservation_count;
    if (!count)
        return;
    struct str *ids = arena_array(arena, struct str, count);
    struct str *sorts = arena_array(arena, struct str, count);
    struct str *interruptible = arena_array(arena, struct str, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct resolved_reservation *r = type->reservations[i];
        ids[i] = r->id;
        sorts[i] = reservation_sort(r);
        interruptible[i] = flag_text(r->interruptible);
    }
    out->reservation_ids = sorted_list(ids, count);
    out->reservation_types = sorted_list(sorts, count);
    out->reservation_interruptible = sorted_list(interruptible, count);
}

static struct requirements type_labels(struct arena *arena, struct class_view *view,
                                       const struct type_view *type)
{
    static const struct str capacity_types[] = { { CAPACITY_ON_DEMAND, 9 },
                                                 { CAPACITY_RESERVED, 8 },
                                                 { CAPACITY_SPOT, 4 } };
    const struct machine *m = &type->machine->machine;
    const struct family *family = view->rules.family;
    struct type_placement placement = { .region = str_of(view->region->name) };

    if (!family->windows)
        placement.os = STR("linux");
    else if (m->arch == MACHINE_AMD64)
        placement.os = STR("windows");
    placement.windows_build = str_of(family->windows_build);

    struct str *buys = arena_array(arena, struct str, KV_COUNT_OF(capacity_types));
    uint32_t count = 0;
    const bool has[] = { m->on_demand, type->reservation_count > 0, m->spot };
    for (size_t i = 0; i < KV_COUNT_OF(capacity_types); i++) {
        if (has[i])
            buys[count++] = capacity_types[i];
    }
    placement.capacity_types = (struct str_list){ buys, count };
    const struct zone_lists *lists = zone_lists(arena, view, type->zones);
    placement.zones = lists->names;
    placement.zone_ids = lists->ids;
    place_reservations(arena, type, &placement);
    return machine_labels(arena, m, &placement);
}

static struct offering_draft reserved_offering(struct arena *arena, const struct class_view *view,
                                               const struct type_view *type,
                                               const struct resolved_reservation *r)
{
    uint32_t z = region_zone(view->region, r->availability_zone);
    bool known = z < view->region->zone_count;
    bool usable = known && (view->zones >> z & 1);
    return (struct offering_draft){
        .requirements = offering_labels(arena, STR(CAPACITY_RESERVED), r->availability_zone,
                                        known ? view->zone_ids[z] : STR(""), r),
        .price = catalogue_on_demand(type->machine, view->region) / RESERVED_PRICE_PART,
        .available = type->compatible && usable && r->state != RESERVATION_EXPIRING,
        .reservation_capacity = CATALOGUE_RESERVATION_CAPACITY,
    };
}

static void make_offerings(struct arena *arena, const struct class_view *view,
                           const struct type_view *type, struct instance_type_draft *out)
{
    const struct catalogue_machine *m = type->machine;
    usd_hour on_demand = catalogue_on_demand(m, view->region);
    uint32_t count = 0;
    struct offering_draft *all = arena_array(
        arena, struct offering_draft, view->region->zone_count * BUYS + type->reservation_count);
    for (uint32_t z = 0; z < view->region->zone_count; z++) {
        bool available = type->compatible && (type->zones >> z & 1);
        if (m->machine.on_demand)
            all[count++] = (struct offering_draft){ .requirements = view->shapes[z][BUY_ON_DEMAND],
                                                    .price = on_demand,
                                                    .available = available };
        if (m->machine.spot)
            all[count++] = (struct offering_draft){ .requirements = view->shapes[z][BUY_SPOT],
                                                    .price = catalogue_spot(m, view->region, z),
                                                    .available = available };
    }
    for (uint32_t i = 0; i < type->reservation_count; i++) {
        const struct resolved_reservation *r = type->reservations[i];
        if (r->availability_zone.len && r->id.len)
            all[count++] = reserved_offering(arena, view, type, r);
    }
    out->offerings = all;
    out->offering_count = count;
}

int catalogue_types(struct arena *arena, const struct catalogue_region *region,
                    const struct ec2nodeclass *maybe_class,
                    const struct allocatable_options *allocatable,
                    const struct instance_type_draft **out, struct err *err)
{
    const struct catalogue_machine *machines = catalogue_machines();
    uint32_t count = catalogue_machine_count();
    struct class_view view;
    if (read_class(arena, region, maybe_class, allocatable, &view, err) < 0)
        return -1;

    struct instance_type_draft *drafts = arena_array(arena, struct instance_type_draft, count);
    for (uint32_t i = 0; i < count; i++) {
        struct type_view type = next_type(&view, &machines[i]);
        struct node_resources resources;
        allocatable_of(arena, &view.rules, &machines[i].machine, &resources);
        drafts[i].name = machines[i].machine.name;
        drafts[i].requirements = type_labels(arena, &view, &type);
        drafts[i].capacity = resources.capacity;
        drafts[i].overhead = resources.overhead;
        make_offerings(arena, &view, &type, &drafts[i]);
    }
    *out = drafts;
    return 0;
}
