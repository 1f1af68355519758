/* compat/reference.h - names of images: `nginx:1.21-alpine`, `registry.example:5000/team/app@sha256:...`.
 *
 *     [host[:port]/]path[:tag][@digest]
 *
 * The first part is a host if it has a dot or a colon, or is `localhost`; else the host is docker.io,
 * and a path of one part is in its `library/`. Neither tag nor digest: `latest`. Both: the digest
 * counts.
 */
#pragma once

#include "api/common.h"

#define REFERENCE_BYTES_MAX 4096
#define REFERENCE_NAME_MAX 255 /* host and path */
#define REFERENCE_TAG_MAX 128

struct reference {
    struct str registry;   /* in lower case: "docker.io", "localhost:5000", "[::1]:5000" */
    struct str host;       /* to talk to: "registry-1.docker.io", else the registry */
    struct str repository; /* "library/nginx" */
    struct str tag;        /* "" if there is none: then there is a digest */
    struct str digest;     /* "sha256:..."; "" if there is none */
};

/* Texts are the arena's. ERR_INVALID says what is wrong and where. */
int reference_parse(struct arena *arena, struct str text, struct reference *out, struct err *err);
/* In full: "docker.io/library/nginx:1.21-alpine"; with a digest, without the tag. */
void reference_format(const struct reference *ref, struct buf *out);
/* The tag, or the digest if there is one: what a manifest is asked for by. */
struct str reference_which(const struct reference *ref);
/* Is `registry/repository` of this reference under one of the patterns? "registry.example/team/" is a
 * prefix of whole parts, `*` stands for any run of characters within a part, a bare host for all of
 * it. */
bool reference_is_under(const struct reference *ref, const struct str_list *patterns);
/* Is all of `text` like the pattern? `*` is any run of characters, `?` any one; case does not matter. */
bool reference_glob(struct str pattern, struct str text);
