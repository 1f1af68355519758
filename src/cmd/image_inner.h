/* cmd/image_inner.h - what the verbs of `karve image` share. */
#pragma once

#include "cmd/image_setup.h"
#include "codec/json.h"

struct image_work {
    const struct invocation *inv;
    const char *name; /* "image check", for complaints */
    struct arena arena;
    struct image_setup setup; /* with its registry */
    struct log *log;          /* warnings, on stderr */
    struct reference ref;
    struct str full; /* the reference, spelled out */
    bool json, colour;
};

/* The verbs. An enum exit_code; what they have to say is printed. */
int image_inspect(struct image_work *w);
int image_check(struct image_work *w);
int image_push(struct image_work *w);

/* What the registry says of the image; EXIT_NO if it does not have it, which has been said. */
int image_look_up(struct image_work *w, bool platform_only, const struct image_facts **out);
/* Say what a registry, or the way to it, would not do. */
int image_complain(const struct image_work *w, const struct err *err);
/* "linux/arm64/v8"; "any" for what is not told. */
void image_platform_format(const struct platform *p, struct buf *out);

/* --- rules in words (image_words.c) --- */

/* The rules of a set, a line for each thing that they ask for, behind so many blanks. */
void image_rules_format(const json_val *rules, uint32_t indent, struct buf *out);

/* --- who could run it (image_subjects.c) --- */

/* A node, or an instance type. */
struct image_subject {
    struct str name;
    struct machine_kind machine;
    enum match match;
    bool predicted; /* nobody has published its features */
    uint32_t weight;
    struct str why;  /* "" if it can. NUL-terminated, as is the next */
    struct str gist; /* the same where many are shown together */
};

struct image_subjects {
    struct arena arena;
    bool are_nodes;
    const char *of; /* "of the catalogue", "of NodePool x": in a sentence. NULL: no more to say */
    VEC(struct image_subject) items;

    struct manifests manifests; /* from files, and from a live cluster */
    bool live;
    struct loaded_types loaded;
};

/* Whom the flags ask about. An enum exit_code; what is wrong has been said. */
int image_subjects_load(struct image_subjects *s, struct image_work *w);
void image_subjects_done(struct image_subjects *s);
