/* Rendering is the family's; what holds for all of them is here: what is asked of the cluster's
 * settings, labels and taints before, joining the pieces and EC2's size limit after.
 *
 * Labels, taints and settings end up inside shell words, YAML, TOML and PowerShell. Each family
 * quotes for its language; what no node can have, or no setting means, is refused here once, so
 * that a value which a family's own tools do not quote (bootstrap.sh writes its arguments into a
 * systemd unit) is never handed to them. */
#include "bootstrap/boot.h"

#include "codec/selector.h"

#include <arpa/inet.h>

#define PARTS_NAMED_MAX 8 /* of an error: the rest are counted */

const char *boot_owner_name(enum boot_owner owner)
{
    static const char *const names[] = {
        [OWNER_USER] = "user",
        [OWNER_KARVE] = "karve",
        [OWNER_KUBELET] = "kubelet configuration",
    };
    return names[owner];
}

/* --- building --- */

/* `items` with room for one more. A list that came without a capacity is copied first. */
static void *grown(struct arena *arena, const void *items, uint32_t count, uint32_t *cap,
                   size_t size)
{
    if (items && count < *cap)
        return (void *)(uintptr_t)items;
    *cap = count < 8 ? 8 : 2 * count;
    char *copy = arena_alloc_array(arena, *cap, size);
    if (items)
        memcpy(copy, items, count * size);
    return copy;
}

void boot_add_piece(struct arena *arena, struct boot_text *out, struct str text,
                    enum boot_owner owner, struct str note)
{
    struct boot_piece *items =
        grown(arena, out->pieces.items, out->pieces.count, &out->piece_cap, sizeof *items);
    out->pieces.items = items;
    if (out->pieces.count) {
        struct boot_piece *last = &items[out->pieces.count - 1];
        if (last->owner == owner && !last->note.len && !note.len &&
            last->text.p + last->text.len == text.p) {
            last->text.len += text.len; /* it goes on */
            return;
        }
    }
    items[out->pieces.count++] = (struct boot_piece){ text, owner, note.p ? note : STR("") };
}

void boot_add_part(struct arena *arena, struct boot_text *out, struct str content_type,
                   enum boot_owner owner, size_t bytes)
{
    struct boot_part *items =
        grown(arena, out->parts.items, out->parts.count, &out->part_cap, sizeof *items);
    items[out->parts.count++] = (struct boot_part){ content_type, owner, bytes };
    out->parts.items = items;
}

void boot_warn(struct arena *arena, struct boot_text *out, const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    struct str *items =
        grown(arena, out->warnings.items, out->warnings.count, &out->warning_cap, sizeof *items);
    items[out->warnings.count++] = arena_str(arena, buf_str(&text));
    out->warnings.items = items;
}

struct str boot_user_place(struct arena *arena, const struct boot *boot, struct text_pos at)
{
    AUTO_BUF place = { 0 };
    uint32_t first = boot->user_data_pos.line;
    if (first)
        buf_addf(&place, "line %u (", first + at.line - 1);
    buf_addf(&place, "line %u", at.line);
    if (at.col)
        buf_addf(&place, ", column %u", at.col);
    buf_addf(&place, " of the user data%s", first ? ")" : "");
    return arena_str(arena, buf_str(&place));
}

/* --- what is asked of the settings --- */

static int check_setting(const char *what, struct str value, bool needed, struct err *err)
{
    if (needed && !value.len)
        return err_set(err, ERR_INVALID, "%s is not known", what);
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.p[i] < ' ' || value.p[i] == 0x7f)
            return err_set(err, ERR_INVALID, "%s %s has a control character in it", what,
                           STR_SHOWN(value));
        /* Windows looks for </powershell> before PowerShell looks for quotes. */
        if (value.p[i] == '<' || value.p[i] == '>')
            return err_set(err, ERR_INVALID, "%s %s has a tag in it", what, STR_SHOWN(value));
    }
    return 0;
}

bool boot_is_address(struct str text)
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (text.len >= sizeof copy || str_find(text, '\0') >= 0)
        return false;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    return inet_pton(AF_INET, copy, bytes) == 1 || inet_pton(AF_INET6, copy, bytes) == 1;
}

static int check_dns(const struct boot *boot, struct err *err)
{
    for (uint32_t i = 0; boot->kubelet && i < boot->kubelet->cluster_dns.count; i++) {
        struct str dns = boot->kubelet->cluster_dns.items[i];
        if (!boot_is_address(dns))
            return err_set(err, ERR_INVALID, "spec.kubelet.clusterDNS[%u]: %s is not an IP address",
                           i, STR_SHOWN(dns));
    }
    struct str dns = boot_cluster_dns(boot);
    if (dns.p && !boot_is_address(dns))
        return err_set(err, ERR_INVALID, "the cluster's DNS address %s is not an IP address",
                       STR_SHOWN(dns));
    return 0;
}

static int check_cluster(const struct boot *boot, const struct family *family, struct err *err)
{
    static const struct boot_cluster unknown;
    const struct boot_cluster *c = boot->cluster ? boot->cluster : &unknown;

    if (check_setting("the cluster's name", c->name, family->needs_cluster, err) < 0 ||
        check_setting("the cluster's endpoint", c->endpoint, family->needs_cluster, err) < 0 ||
        check_setting("the cluster's certificate authority", c->ca, false, err) < 0 ||
        check_setting("the cluster's service CIDR", c->service_cidr, family->needs_service_cidr,
                      err) < 0)
        return -1;
    if (family->needs_cluster && check_dns(boot, err) < 0)
        return -1;
    if (c->name.len && c->name.p[0] == '-')
        return err_set(err, ERR_INVALID, "the cluster's name %s reads as an option",
                       STR_SHOWN(c->name));
    return 0;
}

/* Of a node, not of a NodePool: there a taint's value may have a slash, which kubelets refuse. */
static int check_pair(const char *what, struct str key, struct str value, struct err *err)
{
    const char *problem = label_key_problem(key);
    if (problem)
        return err_set(err, ERR_INVALID, "%s %s: the key %s", what, STR_SHOWN(key), problem);
    problem = label_value_problem(value);
    if (problem)
        return err_set(err, ERR_INVALID, "%s %s: the value %s %s", what, STR_SHOWN(key),
                       STR_SHOWN(value), problem);
    return 0;
}

static int check_labels(const struct boot *boot, struct err *err)
{
    for (uint32_t i = 0; i < boot->labels.count; i++)
        if (check_pair("label", boot->labels.items[i].key, boot->labels.items[i].value, err) < 0)
            return -1;
    return 0;
}

static int check_taints(const struct boot *boot, struct err *err)
{
    for (uint32_t i = 0; i < boot->taints.count; i++) {
        const struct taint *taint = &boot->taints.items[i];
        if (check_pair("taint", taint->key, taint->value, err) < 0)
            return -1;
        if (taint->effect == EFFECT_ANY)
            return err_set(err, ERR_INVALID, "taint %s: the effect is missing",
                           STR_SHOWN(taint->key));
    }
    return 0;
}

/* --- what becomes of the pieces --- */

static void join(struct arena *arena, struct boot_text *out)
{
    AUTO_BUF text = { 0 };
    for (uint32_t i = 0; i < out->pieces.count; i++)
        buf_add(&text, out->pieces.items[i].text);
    out->text = arena_str(arena, buf_str(&text));
}

static int larger_first(const void *a, const void *b)
{
    const struct boot_part *x = *(const struct boot_part *const *)a;
    const struct boot_part *y = *(const struct boot_part *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x > y) - (x < y);
}

/* ", of that user 16010, karve 3743": who wrote how much of a document that is one part. */
static void add_owners(const struct boot_text *out, struct buf *list)
{
    static const enum boot_owner owners[] = { OWNER_USER, OWNER_KARVE, OWNER_KUBELET };
    size_t bytes[KV_COUNT_OF(owners)] = { 0 };
    const char *before = ", of that";
    for (uint32_t i = 0; i < out->pieces.count; i++)
        bytes[out->pieces.items[i].owner] += out->pieces.items[i].text.len;
    if (bytes[out->parts.items[0].owner] == out->text.len)
        return;
    for (size_t i = 0; i < KV_COUNT_OF(owners); i++) {
        if (!bytes[owners[i]])
            continue;
        buf_addf(list, "%s %s %zu", before, boot_owner_name(owners[i]), bytes[owners[i]]);
        before = ",";
    }
}

static int too_large(struct arena *arena, const struct boot_text *out, struct err *err)
{
    AUTO_BUF list = { 0 };
    uint32_t count = out->parts.count;
    const struct boot_part **parts = arena_array(arena, const struct boot_part *, count);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = &out->parts.items[i];
    qsort(parts, count, sizeof(struct boot_part *), larger_first);

    for (uint32_t i = 0; i < count && i < PARTS_NAMED_MAX; i++)
        buf_addf(&list, "%s%.*s (%s) %zu", i ? ", " : ": ", STR_ARG(parts[i]->content_type),
                 boot_owner_name(parts[i]->owner), parts[i]->bytes);
    if (count > PARTS_NAMED_MAX)
        buf_addf(&list, ", and %u smaller parts", count - PARTS_NAMED_MAX);
    if (count == 1)
        add_owners(out, &list);
    return err_set(err, ERR_INVALID, "the user data has %zu bytes, EC2 takes at most %d%.*s",
                   out->text.len, USERDATA_BYTES_MAX, STR_ARG(buf_str(&list)));
}

enum userdata_order boot_order_of(const struct ec2nodeclass *class_)
{
    struct str order =
        str_map_get(&class_->object.meta.annotations, STR("karve.io/userdata-order"));
    return str_eqz(order, "user-managed") ? ORDER_USER_MANAGED : ORDER_MANAGED_USER_MANAGED;
}

bool boot_class_ok(struct arena *arena, const struct ec2nodeclass *class_,
                   const struct boot_cluster *maybe_cluster, struct boot_problem *why)
{
    static const struct boot_cluster words = { .name = { "cluster", 7 },
                                               .endpoint = { "https://cluster", 15 },
                                               .ca = { "QQ==", 4 },
                                               .service_cidr = { "10.0.0.0/16", 11 } };
    struct kubelet_config kubelet;
    struct boot_text text = { 0 };
    struct err err = { 0 };
    struct boot boot = {
        .cluster = maybe_cluster ? maybe_cluster : &words,
        .family = ec2nodeclass_ami_family(&class_->spec),
        .order = boot_order_of(class_),
        .user_data = class_->spec.user_data,
        .kubelet = &kubelet,
        .raid0 = class_->spec.instance_store_policy == INSTANCE_STORE_RAID0,
    };

    why->reason = NULL;
    if (kubelet_config_read(arena, class_->spec.kubelet, boot.family, &kubelet, &err) < 0)
        why->reason = "InvalidKubeletConfiguration";
    else if (boot.family == AMI_FAMILY_CUSTOM && !boot.user_data.p)
        why->reason = "UserDataMissing";
    if (!why->reason && family_of(boot.family)->render(arena, &boot, &text, &err) < 0)
        why->reason = "UserDataInvalid";
    if (!why->reason) {
        join(arena, &text);
        if (text.text.len <= USERDATA_BYTES_MAX)
            return true;
        why->reason = "UserDataSizeLimitExceeded";
        too_large(arena, &text, &err);
    }
    why->message = err.text[0] ? arena_str(arena, str_of(err.text))
                               : STR("spec.userData: is missing, expected what the custom image "
                                     "boots with (\"\" if it needs none)");
    return false;
}

int boot_render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                struct err *err)
{
    const struct family *family = family_of(boot->family);
    struct boot_text text = { 0 };

    if (check_cluster(boot, family, err) < 0 || check_labels(boot, err) < 0 ||
        check_taints(boot, err) < 0)
        return -1;
    if (family->render(arena, boot, &text, err) < 0)
        return -1;
    join(arena, &text);
    if (text.text.len > USERDATA_BYTES_MAX)
        return too_large(arena, &text, err);
    if (text.text.len > USERDATA_BYTES_WARN)
        boot_warn(arena, &text, "the user data has %zu bytes of the %d that EC2 takes",
                  text.text.len, USERDATA_BYTES_MAX);
    *out = text;
    return 0;
}
