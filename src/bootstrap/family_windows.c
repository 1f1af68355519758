/* Windows: one PowerShell block, the user's commands first and then the bootstrap script of the EKS
 * image. The block's tags are ours; the user's text has none of its own. */
#include "bootstrap/boot.h"
#include "bootstrap/families.h"

/* A single-quoted PowerShell string: only the quote itself is special, and stands twice. PowerShell
 * takes the typographic single quotes (U+2018 to U+201B) for quotes, too. */
static void add_quoted(struct buf *b, struct str s)
{
    buf_addc(b, '\'');
    for (size_t i = 0; i < s.len; i++) {
        struct str rest = str_sub(s, i, s.len);
        bool typographic = str_starts(rest, STR("\xe2\x80")) && rest.len > 2 &&
                           (unsigned char)rest.p[2] >= 0x98 && (unsigned char)rest.p[2] <= 0x9b;
        if (typographic)
            buf_add(b, str_sub(rest, 0, 3));
        else if (s.p[i] == '\'')
            buf_addc(b, '\'');
        buf_addc(b, s.p[i]);
    }
    buf_addc(b, '\'');
}

static bool has_at(struct str text, size_t at, struct str word) /* in any case */
{
    if (text.len - at < word.len)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (char_lower(text.p[at + i]) != word.p[i])
            return false;
    }
    return true;
}

/* A tag in the user's text would end our block in the middle. */
static int check_tags(struct arena *arena, const struct boot *boot, struct err *err)
{
    static const struct str tags[] = { { "<powershell>", 12 }, { "</powershell>", 13 } };
    struct text_pos at = { 1, 1 };
    for (size_t i = 0; i < boot->user_data.len; i++, at.col++) {
        for (size_t t = 0; t < KV_COUNT_OF(tags); t++) {
            if (has_at(boot->user_data, i, tags[t]))
                return err_set(err, ERR_INVALID,
                               "spec.userData: %s: %s is added by karve, expected the commands "
                               "inside it alone",
                               boot_user_place(arena, boot, at).p, tags[t].p);
        }
        if (boot->user_data.p[i] == '\n')
            at = (struct text_pos){ at.line + 1, 0 };
    }
    return 0;
}

static void add_user(struct arena *arena, const struct boot *boot, struct boot_text *out)
{
    bool ended = str_ends(boot->user_data, STR("\n"));
    if (!boot->user_data.len)
        return;
    boot_add_piece(arena, out,
                   arena_strf(arena, "%.*s%s", STR_ARG(boot->user_data), ended ? "" : "\n"),
                   OWNER_USER, STR(""));
}

static int render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                  struct err *err)
{
    struct str dns = boot_cluster_dns(boot);
    bool own_dns = boot->kubelet && boot->kubelet->cluster_dns.count;
    size_t bytes = 0;
    AUTO_BUF call = { 0 };

    if (check_tags(arena, boot, err) < 0)
        return -1;
    boot_add_piece(arena, out, STR("<powershell>\n"), OWNER_KARVE, STR(""));
    add_user(arena, boot, out);

    buf_addz(&call,
             "& \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\" -EKSClusterName ");
    add_quoted(&call, boot->cluster->name);
    buf_addz(&call, " -APIServerEndpoint ");
    add_quoted(&call, boot->cluster->endpoint);
    if (boot->cluster->ca.len) {
        buf_addz(&call, " -Base64ClusterCA ");
        add_quoted(&call, boot->cluster->ca);
    }
    buf_addz(&call, " -KubeletExtraArgs '");
    boot_add_piece(arena, out, arena_str(arena, buf_str(&call)), OWNER_KARVE, STR(""));
    boot_add_kubelet_args(arena, boot, out);
    boot_add_piece(arena, out, STR("'"), OWNER_KARVE, STR(""));
    if (dns.len) {
        buf_clear(&call);
        buf_addz(&call, " -DNSClusterIP ");
        add_quoted(&call, dns);
        boot_add_piece(arena, out, arena_str(arena, buf_str(&call)),
                       own_dns ? OWNER_KUBELET : OWNER_KARVE, STR(""));
    }
    boot_add_piece(arena, out, STR("\n</powershell>\n"), OWNER_KARVE, STR(""));

    for (uint32_t i = 0; i < out->pieces.count; i++)
        bytes += out->pieces.items[i].text.len;
    boot_add_part(arena, out, STR("text/x-powershell"), OWNER_KARVE, bytes);
    return 0;
}

static const struct family_device devices[] = { { "/dev/sda1", 50 } };

#define WINDOWS(year, build)                                                                       \
    {                                                                                              \
        .id = AMI_FAMILY_WINDOWS##year, .name = "Windows" #year, .alias = "windows" #year,         \
        .devices = devices, .device_count = KV_COUNT_OF(devices), .ephemeral_device = "/dev/sda1", \
        .ephemeral_default_gib = 50, .pods_per_core = true, .checks_kubelet_fields = true,         \
        .do_not_sync_taints = true, .windows = true, .windows_build = build,                       \
        .needs_cluster = true, .render = render,                                                   \
    }

const struct family family_windows2019 = WINDOWS(2019, "10.0.17763");
const struct family family_windows2022 = WINDOWS(2022, "10.0.20348");
const struct family family_windows2025 = WINDOWS(2025, "10.0.26100");
