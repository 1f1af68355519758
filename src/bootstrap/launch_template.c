/* The parts of a template one after another, each from the fields of the class that it comes from.
 * What EC2 would refuse at the launch, with a message that names none of our fields, is refused
 * here. */
#include "bootstrap/launch_template.h"

#include "bootstrap/boot.h"
#include "codec/base64.h"

#include <stdio.h>

/* --- block devices --- */

static const struct {
    const char *name;
    bool takes_iops, needs_iops, takes_throughput;
} volume_types[] = {
    [VOLUME_UNSET] = { "the default type", true, false, true },
    [VOLUME_STANDARD] = { "standard", false, false, false },
    [VOLUME_IO1] = { "io1", true, true, false },
    [VOLUME_IO2] = { "io2", true, true, false },
    [VOLUME_GP2] = { "gp2", false, false, false },
    [VOLUME_SC1] = { "sc1", false, false, false },
    [VOLUME_ST1] = { "st1", false, false, false },
    [VOLUME_GP3] = { "gp3", true, false, true },
};

static int volume_refused(uint32_t ix, const char *field, const char *why, struct err *err)
{
    return err_set(err, ERR_INVALID, "spec.blockDeviceMappings[%u].ebs%s: %s", ix, field, why);
}

static int volume_check(uint32_t ix, const struct launch_device *d, struct err *err)
{
    char why[96];
    const char *type = volume_types[d->type].name;

    if (!d->size_gib && !d->snapshot_id.len)
        return volume_refused(ix, "", "expected volumeSize or snapshotID", err);
    snprintf(why, sizeof why, "volumes of %s take none", type);
    if (d->iops && !volume_types[d->type].takes_iops)
        return volume_refused(ix, ".iops", why, err);
    if (d->throughput && !volume_types[d->type].takes_throughput)
        return volume_refused(ix, ".throughput", why, err);
    snprintf(why, sizeof why, "volumes of %s need it", type);
    if (!d->iops && volume_types[d->type].needs_iops)
        return volume_refused(ix, ".iops", why, err);
    if (d->initialization_rate && !d->snapshot_id.len)
        return volume_refused(ix, ".volumeInitializationRate", "needs snapshotID", err);
    return 0;
}

static int add_volume(uint32_t ix, const struct ebs_volume *ebs, struct launch_device *out,
                      struct err *err)
{
    out->has_ebs = true;
    out->delete_on_termination = ebs->delete_on_termination;
    out->encrypted = ebs->encrypted;
    out->type = ebs->type;
    out->size_gib = ebs->size.len ? ebs_size_gib(ebs->size) : 0;
    out->iops = ebs->iops.value;
    out->throughput = ebs->throughput.value;
    out->initialization_rate = ebs->initialization_rate.value;
    out->kms_key_id = ebs->kms_key_id;
    out->snapshot_id = ebs->snapshot_id;
    if (ebs->size.len && !out->size_gib)
        return volume_refused(ix, ".volumeSize", "is not a volume's size such as 100Gi", err);
    return volume_check(ix, out, err);
}

/* A class without mappings has the family's; a custom image then has what it was made with. */
static int build_devices(struct arena *arena, const struct ec2nodeclass_spec *spec,
                         struct launch_template *t, struct err *err)
{
    const struct family *family = family_of(ec2nodeclass_ami_family(spec));
    uint32_t count = spec->block_devices.count ? spec->block_devices.count : family->device_count;
    struct launch_device *devices = arena_array(arena, struct launch_device, count);

    for (uint32_t i = 0; i < spec->block_devices.count; i++) {
        const struct block_device *device = &spec->block_devices.items[i];
        if (!device->device_name.len)
            return err_set(err, ERR_INVALID,
                           "spec.blockDeviceMappings[%u].deviceName: expected a device such as "
                           "/dev/xvda",
                           i);
        devices[i].name = device->device_name;
        if (device->ebs && add_volume(i, device->ebs, &devices[i], err) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < family->device_count && !spec->block_devices.count; i++)
        devices[i] = (struct launch_device){
            .name = str_of(family->devices[i].name),
            .has_ebs = true,
            .encrypted = TRI_TRUE,
            .type = VOLUME_GP3,
            .size_gib = family->devices[i].gib,
        };
    t->block_devices.items = devices;
    t->block_devices.count = count;
    return 0;
}

/* --- network interfaces --- */

static void give_addresses(struct launch_interface *i, const struct ec2nodeclass_spec *spec,
                           const struct launch_choice *choice, bool primary)
{
    i->associate_public_ip = spec->associate_public_ip;
    i->maybe_tracking = spec->connection_tracking;
    if (!primary)
        return;
    if (choice->ipv6) {
        i->ipv6_address_count = 1;
        i->primary_ipv6 = true;
        i->ipv6_prefix_count = spec->ip_prefix_count;
    } else {
        i->ipv4_prefix_count = spec->ip_prefix_count;
    }
}

/* As the class lists them; else one for each EFA that the claim asks for, each on a card of its
 * own; else one. */
static int build_interfaces(struct arena *arena, const struct ec2nodeclass_spec *spec,
                            const struct launch_choice *choice, struct launch_template *t,
                            struct err *err)
{
    uint32_t listed = spec->network_interfaces.count;
    uint32_t count = listed ? listed : choice->efa_count ? choice->efa_count : 1;
    struct launch_interface *interfaces = arena_array(arena, struct launch_interface, count);

    if (count > 1 && spec->associate_public_ip == TRI_TRUE)
        return err_set(err, ERR_INVALID,
                       "spec.associatePublicIPAddress: an instance with %u network interfaces "
                       "cannot have one, only an instance with a single one can",
                       count);
    for (uint32_t i = 0; i < count; i++) {
        struct launch_interface *out = &interfaces[i];
        bool efa_only = false;
        out->groups = choice->security_groups;
        if (listed) {
            const struct network_interface *in = &spec->network_interfaces.items[i];
            efa_only = in->type == INTERFACE_EFA_ONLY;
            out->card_index = in->card_index;
            out->device_index = in->device_index;
            out->type = efa_only ? "efa-only" : NULL;
        } else if (choice->efa_count) {
            out->card_index = i;
            out->device_index = i > 0; /* the first card's comes first: it is the primary */
            out->type = "efa";
        }
        if (!efa_only)
            give_addresses(out, spec, choice, !out->card_index && !out->device_index);
    }
    t->interfaces.items = interfaces;
    t->interfaces.count = count;
    return 0;
}

/* --- metadata, reservations, tags --- */

static void build_metadata(const struct ec2nodeclass_spec *spec, struct str region,
                           struct launch_template *t)
{
    const struct metadata_options *m = &spec->metadata_options;
    /* us-iso-*, us-isob-*, us-isof-*: the partition without IPv6 metadata refuses the word. */
    bool no_ipv6 = str_starts(region, STR("us-iso"));

    t->metadata.http_endpoint = m->http_endpoint ? m->http_endpoint : ON_OFF_ENABLED;
    t->metadata.http_tokens = m->http_tokens ? m->http_tokens : HTTP_TOKENS_REQUIRED;
    t->metadata.hop_limit = m->hop_limit.set ? m->hop_limit.value : 1;
    t->metadata.http_ipv6 = m->http_ipv6 ? m->http_ipv6 : ON_OFF_DISABLED;
    if (no_ipv6)
        t->metadata.http_ipv6 = ON_OFF_UNSET;
    t->metadata.instance_tags = "disabled";
}

/* With the gate on, an instance that is not meant for a reservation must not use up an open one. */
static int build_reservation(const struct launch_choice *choice, struct launch_template *t,
                             struct err *err)
{
    bool reserved = str_eqz(choice->capacity_type, CAPACITY_RESERVED);
    if (reserved && !choice->reserved_capacity)
        return err_set(err, ERR_INVALID, "capacity reservations are not enabled");
    if (reserved && !choice->reservation_id.len)
        return err_set(err, ERR_INVALID, "a reserved launch needs the id of its reservation");
    if (!choice->reserved_capacity)
        return 0;
    t->reservation.preference = reserved ? "capacity-reservations-only" : "none";
    if (!reserved)
        return 0;
    t->reservation.target_id = choice->reservation_id;
    if (choice->interruptible)
        t->market_type = "interruptible-capacity-reservation";
    else if (choice->capacity_block)
        t->market_type = "capacity-block";
    return 0;
}

/* Ours win: what they say is how instances are found again. */
static void build_tags(struct arena *arena, const struct ec2nodeclass_spec *spec,
                       const struct launch_choice *choice, struct launch_template *t)
{
    const struct str_pair own[] = {
        { arena_strf(arena, "kubernetes.io/cluster/%.*s", STR_ARG(choice->cluster_name)),
          STR("owned") },
        { STR(LABEL_NODEPOOL), choice->nodepool },
        { STR("eks:eks-cluster-name"), choice->cluster_name },
        { STR("karpenter.k8s.aws/ec2nodeclass"), choice->class_name },
    };
    struct str_pair *tags =
        arena_array(arena, struct str_pair, spec->tags.count + KV_COUNT_OF(own));
    uint32_t count = 0;

    for (uint32_t i = 0; i < spec->tags.count; i++) {
        bool ours = false;
        for (size_t o = 0; o < KV_COUNT_OF(own); o++)
            ours |= str_eq(spec->tags.items[i].key, own[o].key);
        if (!ours)
            tags[count++] = spec->tags.items[i];
    }
    for (size_t o = 0; o < KV_COUNT_OF(own); o++)
        tags[count++] = own[o];
    qsort(tags, count, sizeof *tags, str_pair_order);
    t->tags = (struct str_map){ tags, count };
    t->tags_spot_request = str_eqz(choice->capacity_type, CAPACITY_SPOT);
}

/* --- the whole --- */

static int check_choice(const struct launch_choice *choice, struct err *err)
{
    const struct {
        struct str value;
        const char *what;
    } needed[] = {
        { choice->image_id, "an image" },
        { choice->instance_profile, "an instance profile" },
        { choice->cluster_name, "the cluster's name" },
        { choice->nodepool, "the name of its NodePool" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(needed); i++) {
        if (!needed[i].value.len)
            return err_set(err, ERR_INVALID, "a launch needs %s", needed[i].what);
    }
    if (!choice->security_groups.count)
        return err_set(err, ERR_INVALID,
                       "spec.securityGroupSelectorTerms: no security group was found");
    if (choice->user_data.len > USERDATA_BYTES_MAX)
        return err_set(err, ERR_INVALID,
                       "spec.userData: %zu bytes with what karve adds, EC2 takes %d",
                       choice->user_data.len, USERDATA_BYTES_MAX);
    return 0;
}

int launch_template_build(struct arena *arena, const struct ec2nodeclass *class_,
                          const struct launch_choice *choice, struct launch_template *out,
                          struct err *err)
{
    const struct ec2nodeclass_spec *spec = &class_->spec;
    struct launch_template t = { 0 };
    AUTO_BUF encoded = { 0 };

    if (check_choice(choice, err) < 0 || build_devices(arena, spec, &t, err) < 0 ||
        build_interfaces(arena, spec, choice, &t, err) < 0 ||
        build_reservation(choice, &t, err) < 0)
        return -1;
    build_metadata(spec, choice->region, &t);
    build_tags(arena, spec, choice, &t);
    base64_encode(choice->user_data, &encoded);
    t.image_id = choice->image_id;
    t.instance_profile = choice->instance_profile;
    t.user_data = arena_str(arena, buf_str(&encoded));
    t.monitoring = spec->detailed_monitoring;
    t.nested_virtualization = spec->cpu_options ? spec->cpu_options->nested_virtualization : 0;
    t.enclaves = choice->enclaves;
    t.placement.tenancy = choice->tenancy.len ? choice->tenancy : STR("default");
    t.placement.group_id = choice->placement_group_id;
    t.placement.partition = choice->partition;
    *out = t;
    return 0;
}

/* --- the name --- */

/* Every text with its length and every number at its full width, so that no two templates write the
 * same bytes. */
static void put_int(struct buf *b, int64_t v)
{
    buf_addf(b, "%lld;", (long long)v);
}

static void put_maybe(struct buf *b, struct maybe_int v)
{
    buf_addf(b, v.set ? "%lld;" : "-;", (long long)v.value);
}

static void put_str(struct buf *b, struct str s)
{
    buf_addf(b, "%zu:", s.len);
    buf_add(b, s);
}

static void put_device(struct buf *b, const struct launch_device *d)
{
    put_str(b, d->name);
    buf_addf(b, "%d,%d,%d,%d;", d->has_ebs, d->delete_on_termination, d->encrypted, d->type);
    put_int(b, d->size_gib);
    put_int(b, d->iops);
    put_int(b, d->throughput);
    put_int(b, d->initialization_rate);
    put_str(b, d->kms_key_id);
    put_str(b, d->snapshot_id);
}

static void put_interface(struct buf *b, const struct launch_interface *i)
{
    static const struct connection_tracking none;
    const struct connection_tracking *tracking = i->maybe_tracking ? i->maybe_tracking : &none;
    put_int(b, i->card_index);
    put_int(b, i->device_index);
    put_str(b, str_of(i->type));
    put_int(b, i->groups.count);
    for (uint32_t g = 0; g < i->groups.count; g++)
        put_str(b, i->groups.items[g]);
    buf_addf(b, "%d,%d;", i->associate_public_ip, i->primary_ipv6);
    put_maybe(b, i->ipv4_prefix_count);
    put_maybe(b, i->ipv6_prefix_count);
    put_int(b, i->ipv6_address_count);
    put_maybe(b, tracking->tcp_established_s);
    put_maybe(b, tracking->udp_stream_s);
    put_maybe(b, tracking->udp_s);
}

void launch_template_name(const struct launch_template *t, char out[LAUNCH_TEMPLATE_NAME_MAX])
{
    AUTO_BUF b = { 0 };
    put_str(&b, t->image_id);
    put_str(&b, t->instance_profile);
    put_str(&b, t->user_data);
    buf_addf(&b, "%d,%d,%d;", t->monitoring, t->nested_virtualization, t->enclaves);
    put_int(&b, t->block_devices.count);
    for (uint32_t i = 0; i < t->block_devices.count; i++)
        put_device(&b, &t->block_devices.items[i]);
    put_int(&b, t->interfaces.count);
    for (uint32_t i = 0; i < t->interfaces.count; i++)
        put_interface(&b, &t->interfaces.items[i]);
    buf_addf(&b, "%d,%d,%d;", t->metadata.http_endpoint, t->metadata.http_ipv6,
             t->metadata.http_tokens);
    put_int(&b, t->metadata.hop_limit);
    put_str(&b, str_of(t->metadata.instance_tags));
    put_str(&b, t->placement.tenancy);
    put_str(&b, t->placement.group_id);
    put_maybe(&b, t->placement.partition);
    put_str(&b, str_of(t->reservation.preference));
    put_str(&b, t->reservation.target_id);
    put_str(&b, str_of(t->market_type));
    for (uint32_t i = 0; i < t->tags.count; i++) {
        put_str(&b, t->tags.items[i].key);
        put_str(&b, t->tags.items[i].value);
    }
    buf_addf(&b, "%d", t->tags_spot_request);
    snprintf(out, LAUNCH_TEMPLATE_NAME_MAX, "karpenter.k8s.aws/%016llx",
             (unsigned long long)kv_hash(b.p, b.len));
}
