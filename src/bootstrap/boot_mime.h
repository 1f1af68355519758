/* bootstrap/boot_mime.h - user data of the families whose nodes run cloud-init (AL2, AL2023): the
 * user's text as the parts of an archive, and an archive of the user's parts and ours.
 */
#pragma once

#include "bootstrap/boot.h"
#include "codec/mime.h"

#define SHELL_CONTENT_TYPE "text/x-shellscript; charset=\"us-ascii\""
#define NODECONFIG_MEDIA_TYPE "application/node.eks.aws"

struct boot_mime_part {
    struct mime_part mime;
    enum boot_owner owner;
    LIST(struct boot_piece) pieces; /* of the body, in order; none: all of it is the owner's */
};

struct boot_mime {
    struct boot_mime_part *parts;
    uint32_t count;
};

/* The user's parts. An archive gives those in it, with every header; any other text one part, of
 * the type that cloud-init would find by how it starts. A text that says nothing is a script for
 * bash, with a warning in `text`. A NodeConfig is a part too if the family `takes_nodeconfig`, and
 * ERR_INVALID if not. Blank user data has no parts. Errors have their place. */
int boot_user_parts(struct arena *arena, const struct boot *boot, bool takes_nodeconfig,
                    struct boot_mime *out, struct boot_text *text, struct err *err);

/* A part of ours. `body` has the pieces and is left as it is. */
struct boot_mime_part boot_managed_part(struct arena *arena, struct str content_type,
                                        const struct boot_text *body);

/* The archive of `mime`: its pieces and parts go to `out`. */
void boot_mime_write(struct arena *arena, const struct boot_mime *mime, struct boot_text *out);
