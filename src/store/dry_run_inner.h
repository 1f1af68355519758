/* store/dry_run_inner.h - what the files of the dry run share. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "store/dry_run.h"

/* --- dry_run_told.c: what was told already --- */

/* Two generations: when the younger is full the older is forgotten, and what is met again is young
 * again. Thread safe. */
struct dry_told {
    pthread_mutex_t lock;
    struct map young, old; /* hash of a write to struct told_write */
    uint64_t count;        /* of writes, ever */
};

void dry_told_init(struct dry_told *t);
void dry_told_done(struct dry_told *t);
/* Is it new? */
bool dry_told_add(struct dry_told *t, uint64_t hash);
/* The same of a creation whose name is no part of its content. `name` becomes the one it was told with:
 * the k-th of one decision is the k-th of the one before. */
bool dry_told_add_named(struct dry_told *t, uint64_t hash, int64_t now_ns, struct arena *arena,
                        struct str *name);

/* A hash of the tree; texts that are times all count as equal. `skip` (may be NULL) is left out. */
uint64_t dry_told_hash(const json_val *v, const json_val *skip, uint64_t salt);
uint64_t dry_told_hash_str(struct str s, uint64_t salt);

/* --- dry_run_apply.c: what writes would have made --- */

/* The object that this text would have become. ERR_INVALID: it would have been refused. */
int dry_create(struct object_pool *pool, const struct object_ref *ref, const json_val *said,
               int64_t now_us, const struct object **out, struct err *err);
/* `now` as the patch would have made it; `text` is its JSON. *changed: the patch says something new. */
int dry_patch(struct object_pool *pool, const struct object *now, struct str text,
              struct patch_options opts, const json_val *patch, const struct object **out,
              bool *changed, struct err *err);
