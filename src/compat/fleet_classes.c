/* Classes of nodes, and the mask that makes them few.
 *
 * A class is found by what it consists of: the set (equal sets are one pointer), the platform and whether it
 * was observed. When rules mention something new, every node is projected again from its NodeFeatures, which
 * is why those are kept. A node whose projection stays the same stays in its class, and so do the verdicts.
 *
 * What the mask has of rules that nobody uses any more costs some classes too many, and no wrong answer. It is
 * dropped when the mask has doubled since it was last dropped, which nodes are projected for anyway.
 */
#include "compat/fleet_inner.h"

#define MASK_MENTIONS_MIN 64 /* dropping less than this is not worth it */

/* --- classes --- */

static struct str class_key(struct fleet *f, const struct feature_set *maybe_set,
                            const struct machine_kind *machine, bool unobserved)
{
    buf_clear(&f->key);
    buf_add(&f->key, (struct str){ (const char *)&maybe_set, sizeof(const void *) });
    buf_addc(&f->key, unobserved ? 'p' : 'o');
    buf_add(&f->key, machine->os);
    buf_addc(&f->key, '/');
    buf_add(&f->key, machine->architecture);
    return buf_str(&f->key);
}

static struct fleet_class *class_new(struct fleet *f, const struct feature_set *maybe_set,
                                     const struct machine_kind *machine, bool unobserved)
{
    size_t os = machine->os.len, architecture = machine->architecture.len;
    struct fleet_class *class = kv_calloc(1, sizeof *class + os + architecture);
    rc_init(&class->rc);
    if (os)
        memcpy(class->text, machine->os.p, os);
    if (architecture)
        memcpy(class->text + os, machine->architecture.p, architecture);
    class->os = (struct str){ class->text, os };
    class->architecture = (struct str){ class->text + os, architecture };
    class->unobserved = unobserved;
    class->maybe_set = maybe_set ? feature_set_ref(maybe_set) : NULL;
    /* 31 bits, as in a cell. A verdict that is mistaken for another's would have to lie there while two
     * thousand million classes come and go. */
    f->serial_last = f->serial_last % INT32_MAX + 1;
    class->serial = f->serial_last;
    return class;
}

struct fleet_class *fleet_class_hold(struct fleet *f, const struct feature_set *maybe_set,
                                     const struct machine_kind *machine, bool unobserved)
{
    struct str key = class_key(f, maybe_set, machine, unobserved);
    struct fleet_class *class = str_table_get(&f->classes_by_key, key);
    if (!class) {
        class = class_new(f, maybe_set, machine, unobserved);
        str_table_put(&f->classes_by_key, key, class);
        pthread_rwlock_wrlock(&f->lock);
        if (f->slots_free.count) {
            class->slot = vec_pop(&f->slots_free);
            f->classes.items[class->slot] = class;
        } else {
            class->slot = (uint32_t)f->classes.count;
            vec_push(&f->classes, class);
        }
        pthread_rwlock_unlock(&f->lock);
    }
    class->users++;
    return class;
}

void fleet_class_drop(struct fleet *f, struct fleet_class *class)
{
    if (!class || --class->users > 0)
        return;
    struct machine_kind platform = { .os = class->os, .architecture = class->architecture };
    str_table_remove(&f->classes_by_key,
                     class_key(f, class->maybe_set, &platform, class->unobserved));
    pthread_rwlock_wrlock(&f->lock);
    f->classes.items[class->slot] = NULL;
    pthread_rwlock_unlock(&f->lock);
    vec_push(&f->slots_free, class->slot);
    fleet_class_unref(class);
}

void fleet_class_unref(const struct fleet_class *shared)
{
    struct fleet_class *class = (struct fleet_class *)shared;
    if (!class || !rc_unref(&class->rc))
        return;
    feature_set_unref(class->maybe_set);
    free(class);
}

/* --- projections --- */

/* A node with more features than a set can have is one of which nothing is known. */
static struct fleet_class *class_of_draft(struct fleet *f, struct feature_draft *draft,
                                          const struct machine_kind *machine, bool unobserved)
{
    struct err err = { 0 };
    AUTO_FEATURE_SET set = NULL;
    if (feature_set_make(f->pool, draft, &set, &err) < 0) {
        FEATURE_DRAFT nothing = { .maybe_mask = &f->mask, .others_unknown = true };
        int rc = feature_set_make(f->pool, &nothing, &set, &err);
        KV_ASSERT(rc == 0);
    }
    return fleet_class_hold(f, set, machine, unobserved);
}

struct fleet_class *fleet_class_observed(struct fleet *f, const struct fleet_node *node)
{
    FEATURE_DRAFT draft = { .maybe_mask = &f->mask };
    feature_draft_node(&draft, node->features.items, (uint32_t)node->features.count,
                       f->options.nfd_namespace);
    return class_of_draft(f, &draft, &node->maybe_machine->machine, false);
}

struct fleet_class *fleet_class_predicted(struct fleet *f, const struct machine_kind *machine)
{
    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { .maybe_mask = &f->mask, .others_unknown = true };
    if (f->options.maybe_predictor)
        predictor_draft(f->options.maybe_predictor, machine, &arena, &draft);
    else if (machine->maybe_declared)
        feature_draft_features(&draft, machine->maybe_declared);
    return class_of_draft(f, &draft, machine, true);
}

void fleet_classify_all(struct fleet *f)
{
    VEC(struct fleet_move) moves = { 0 };
    str_table_each(&f->nodes, it) {
        struct fleet_node *node = it->value;
        if (node->exists)
            vec_push(&moves, (struct fleet_move){ node, fleet_node_class(f, node) });
    }
    fleet_move(f, moves.items, moves.count);
    vec_done(&moves);
}

/* --- the mask --- */

static void mask_add_copies(struct fleet *f, const struct feature_mask *from)
{
    vec_reserve(&f->mask.mentions, f->mask.mentions.count + from->mentions.count);
    const struct feature_mask before = f->mask; /* sorted, unlike what is added */
    for (size_t i = 0; i < from->mentions.count; i++) {
        struct feature_mention mention = from->mentions.items[i];
        if (feature_mask_has(&before, mention))
            continue;
        mention.feature = arena_str(&f->mask_texts, mention.feature);
        mention.element = arena_str(&f->mask_texts, mention.element);
        vec_push(&f->mask.mentions, mention);
    }
    feature_mask_settle(&f->mask);
}

/* Only what demands that there still are mention. */
static void mask_compact(struct fleet *f)
{
    FEATURE_MASK live = { 0 };
    /* While somebody is changing things no row of theirs can go: the facts are theirs. Those of others may,
     * hence the lock, until the texts are copied. */
    pthread_mutex_lock(&f->demand_lock);
    map_each(&f->rows, it) {
        const struct fleet_row *row = (const struct fleet_row *)it->value;
        image_facts_mention(row->facts, &live);
    }
    feature_mask_settle(&live);
    vec_clear(&f->mask.mentions);
    arena_reset(&f->mask_texts);
    mask_add_copies(f, &live);
    pthread_mutex_unlock(&f->demand_lock);
    f->mask_compact_at = 2 * f->mask.mentions.count + MASK_MENTIONS_MIN;
}

bool fleet_mask_grow(struct fleet *f, const struct fleet_image *images, uint32_t count)
{
    FEATURE_MASK wanted = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        if (images[i].maybe_facts)
            image_facts_mention(images[i].maybe_facts, &wanted);
    }
    feature_mask_settle(&wanted);

    size_t before = f->mask.mentions.count;
    mask_add_copies(f, &wanted);
    if (f->mask.mentions.count == before)
        return false;
    if (f->mask.mentions.count > f->mask_compact_at)
        mask_compact(f);
    pthread_rwlock_wrlock(&f->lock);
    f->mask_version++;
    pthread_rwlock_unlock(&f->lock);
    return true;
}
