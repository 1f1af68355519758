/* AL2: MIME archives for cloud-init, and /etc/eks/bootstrap.sh.
 *
 * The default order is managed -> user -> managed. The first part bootstraps the node with the
 * kubelet held back, so the user's parts find the kubelet's configuration in place and may change
 * it; the last part starts the kubelet. `user-managed` is what Karpenter ships: the user's parts,
 * then one that bootstraps and starts. Without user data that one is all.
 *
 * cloud-init runs scripts in the order of their file names. Parts are named part-000, part-001,
 * ..., unless a header gives them a name; then ours need names that sort around it. The commands of
 * a cloud-config (runcmd) become a script, too: its name is runcmd, and it belongs between ours. */
#include "bootstrap/al2_scripts.h"
#include "bootstrap/boot_mime.h"
#include "bootstrap/families.h"

#define FIRST_NAME "0-0-karve-bootstrap.sh"
#define LAST_NAME "zzz-karve-kubelet.sh"

/* --- the bootstrap script --- */

static void add_quoted(struct buf *out, struct str word)
{
    buf_addc(out, '\'');
    for (size_t i = 0; i < word.len; i++) {
        if (word.p[i] == '\'')
            buf_addz(out, "'\\''");
        else
            buf_addc(out, word.p[i]);
    }
    buf_addc(out, '\'');
}

/* An option of bootstrap.sh on a line of its own. */
static void add_option(struct arena *arena, struct boot_text *script, const char *option,
                       struct str value, enum boot_owner owner)
{
    AUTO_BUF line = { 0 };
    buf_addf(&line, " \\\n  %s ", option);
    add_quoted(&line, value);
    boot_add_piece(arena, script, arena_str(arena, buf_str(&line)), owner, STR(""));
}

static void add_word(struct arena *arena, struct boot_text *script, const char *words)
{
    boot_add_piece(arena, script, arena_strf(arena, " \\\n  %s", words), OWNER_KARVE, STR(""));
}

static struct boot_mime_part bootstrap_part(struct arena *arena, const struct boot *boot, bool held)
{
    struct boot_text script = { 0 };
    AUTO_BUF start = { 0 };
    buf_addf(&start, "#!/bin/bash\nset -euxo pipefail\n%s/etc/eks/bootstrap.sh ",
             held ? al2_hold : "");
    add_quoted(&start, boot->cluster->name);
    boot_add_piece(arena, &script, arena_str(arena, buf_str(&start)), OWNER_KARVE, STR(""));

    add_option(arena, &script, "--apiserver-endpoint", boot->cluster->endpoint, OWNER_KARVE);
    if (boot->cluster->ca.len)
        add_option(arena, &script, "--b64-cluster-ca", boot->cluster->ca, OWNER_KARVE);
    struct str dns = boot_cluster_dns(boot);
    if (str_find(dns, ':') >= 0)
        add_word(arena, &script, "--ip-family ipv6");
    if (dns.len) {
        bool by_user = boot->kubelet && boot->kubelet->cluster_dns.count;
        add_option(arena, &script, "--dns-cluster-ip", dns, by_user ? OWNER_KUBELET : OWNER_KARVE);
    }
    if (boot_max_pods(boot).set)
        add_word(arena, &script, "--use-max-pods false");
    boot_add_piece(arena, &script, STR(" \\\n  --kubelet-extra-args '"), OWNER_KARVE, STR(""));
    boot_add_kubelet_args(arena, boot, &script);
    boot_add_piece(arena, &script, STR("'"), OWNER_KARVE, STR(""));
    if (boot->raid0)
        add_word(arena, &script, "--local-disks raid0");
    if (held)
        add_word(arena, &script, "--kubelet-disabled");
    return boot_managed_part(arena, STR(SHELL_CONTENT_TYPE), &script);
}

static struct boot_mime_part start_part(struct arena *arena)
{
    struct boot_text script = { 0 };
    boot_add_piece(arena, &script, str_of(al2_start), OWNER_KARVE, STR(""));
    return boot_managed_part(arena, STR(SHELL_CONTENT_TYPE), &script);
}

/* --- the order in which cloud-init runs them --- */

/* "zz.sh" of "utf-8''zz.sh". What is percent-encoded there is cleaned away with the signs. */
static struct str plain_name(struct str extended)
{
    struct str charset, language, name;
    if (!str_cut(extended, '\'', &charset, &name) || !str_cut(name, '\'', &language, &name))
        return extended;
    return name;
}

/* The file name that a part asks for, as cloud-init cleans it; STR_NONE: none. */
static struct str file_name(struct arena *arena, const struct mime_part *part)
{
    struct str disposition = mime_header(part, "content-disposition");
    struct str name = mime_param(arena, disposition, "filename");
    if (!name.p)
        name = plain_name(mime_param(arena, disposition, "filename*"));
    if (!name.p)
        name = mime_param(arena, mime_header(part, "content-type"), "name");
    if (!name.len)
        return STR_NONE;
    char *clean = arena_array(arena, char, name.len);
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i] == '/' ? '_' : name.p[i];
        if (char_is_alnum(c) || (c != '\0' && strchr("_-.()", c)))
            clean[len++] = c;
    }
    return (struct str){ clean, len };
}

static void set_name(struct arena *arena, struct boot_mime_part *part, const char *name)
{
    struct mime_header *headers = arena_array(arena, struct mime_header, 2);
    struct str value = arena_strf(arena, "attachment; filename=\"%s\"", name);
    headers[0] = (struct mime_header){ STR("Content-Disposition"), value };
    headers[1] = part->mime.headers[0];
    part->mime.headers = headers;
    part->mime.header_count = 2;
}

/* cloud-init looks into a part that does not say what it is, and expands templates, archives and
 * includes: whatever is not certainly a script may bring a cloud-config. */
static bool may_be_cloud_config(struct arena *arena, const struct mime_part *part)
{
    struct str type = mime_content_type(arena, part);
    return !str_starts(type, STR("text/x-shellscript")) && !str_eqz(type, "text/cloud-boothook");
}

/* cloud-init runs scripts in the order of their file names, and the commands of a cloud-config
 * (`runcmd`) are such a script. Where either is about, ours get names that sort around them. */
static void keep_order(struct arena *arena, const struct boot_mime *user,
                       struct boot_mime_part *maybe_first, struct boot_mime_part *last,
                       struct boot_text *out)
{
    bool named = false;
    for (uint32_t i = 0; maybe_first && i < user->count; i++)
        named |= may_be_cloud_config(arena, &user->parts[i].mime);
    for (uint32_t i = 0; i < user->count; i++) {
        struct str name = file_name(arena, &user->parts[i].mime);
        named |= name.p != NULL;
        if (!name.p)
            continue;
        if (str_cmp(name, STR(LAST_NAME)) >= 0)
            boot_warn(arena, out,
                      "the part %s runs after the kubelet was started: cloud-init runs "
                      "parts with file names in the order of the names",
                      STR_SHOWN(name));
        else if (maybe_first && str_cmp(name, STR(FIRST_NAME)) <= 0)
            boot_warn(arena, out,
                      "the part %s runs before the node is bootstrapped: cloud-init runs "
                      "parts with file names in the order of the names",
                      STR_SHOWN(name));
    }
    if (named && maybe_first)
        set_name(arena, maybe_first, FIRST_NAME);
    if (named)
        set_name(arena, last, LAST_NAME);
}

static int render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                  struct err *err)
{
    struct boot_mime user, all = { 0 };
    if (boot_user_parts(arena, boot, false, &user, out, err) < 0)
        return -1;

    bool held = user.count > 0 && boot->order == ORDER_MANAGED_USER_MANAGED;
    all.parts = arena_array(arena, struct boot_mime_part, (size_t)user.count + 2);
    if (held)
        all.parts[all.count++] = bootstrap_part(arena, boot, true);
    for (uint32_t i = 0; i < user.count; i++)
        all.parts[all.count++] = user.parts[i];
    all.parts[all.count++] = held ? start_part(arena) : bootstrap_part(arena, boot, false);

    keep_order(arena, &user, held ? &all.parts[0] : NULL, &all.parts[all.count - 1], out);
    boot_mime_write(arena, &all, out);
    return 0;
}

static const struct family_device devices[] = { { "/dev/xvda", 20 } };

const struct family family_al2 = {
    .id = AMI_FAMILY_AL2,
    .name = "AL2",
    .alias = "al2",
    .devices = devices,
    .device_count = KV_COUNT_OF(devices),
    .ephemeral_device = "/dev/xvda",
    .ephemeral_default_gib = 20,
    .reserved_by_eni_pods = true,
    .eni_limited_pods = true,
    .pods_per_core = true,
    .checks_kubelet_fields = true,
    .do_not_sync_taints = true,
    .needs_cluster = true,
    .render = render,
};
