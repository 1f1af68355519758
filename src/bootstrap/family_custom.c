/* Custom images: nobody but their owner knows how they start, so user data is theirs alone and
 * passes as it is. Labels and taints reach the Node when it registers; reservations are what
 * spec.kubelet says. "" says that the image needs none; a missing field is more likely forgotten. */
#include "bootstrap/boot.h"
#include "bootstrap/families.h"

static int render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                  struct err *err)
{
    if (!boot->user_data.p)
        return err_set(err, ERR_INVALID,
                       "spec.userData: is missing, expected what the custom image boots with (\"\" "
                       "if it needs none)");
    boot_add_part(arena, out, STR("text/plain"), OWNER_USER, boot->user_data.len);
    if (boot->user_data.len)
        boot_add_piece(arena, out, arena_str(arena, boot->user_data), OWNER_USER, STR(""));
    return 0;
}

const struct family family_custom = {
    .id = AMI_FAMILY_CUSTOM,
    .name = "Custom",
    .alias = NULL,
    .ephemeral_device = NULL,
    .ephemeral_default_gib = 20,
    .reserved_by_eni_pods = true,
    .eni_limited_pods = true,
    .pods_per_core = true,
    .render = render,
};
