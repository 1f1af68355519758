/* Demands, and judging nodes by them.
 *
 * A verdict is about an image and a class, and lies in the image's row at the class's place. To judge nodes is to
 * look up their classes, then per class that occurs the cells of the demand's images. What is missing is evaluated
 * with no lock held, on sets and facts that are counted, and put in place afterwards; if the class is gone by
 * then, its serial number keeps the verdict from being taken for another's.
 *
 * A demand is handed out only when the nodes' classes show all that its rules mention.
 */
#include "compat/fleet_inner.h"

struct demand {
    atomic_uint refs; /* the step to zero happens under `demand_lock` */
    struct fleet *fleet;
    struct arena arena; /* owns all texts */
    struct str key;
    struct fleet_image *images;
    struct fleet_row **rows; /* by image; NULL: it has no facts */
    uint32_t count;
};

/* --- demands --- */

static void demand_key(const struct fleet_image *images, uint32_t count, struct buf *key)
{
    for (uint32_t i = 0; i < count; i++) {
        const size_t lens[] = { images[i].name.len, images[i].trouble.len };
        buf_add(key, (struct str){ (const char *)&images[i].maybe_facts, sizeof(const void *) });
        buf_add(key, (struct str){ (const char *)lens, sizeof lens });
        buf_add(key, images[i].name);
        buf_add(key, images[i].trouble);
    }
}

/* With `demand_lock` held. */
static struct fleet_row *row_hold(struct fleet *f, const struct image_facts *facts)
{
    uintptr_t found = 0;
    if (!map_get(&f->rows, (uintptr_t)facts, &found)) {
        struct fleet_row *row = kv_calloc(1, sizeof *row);
        row->facts = image_facts_ref(facts);
        found = (uintptr_t)row;
        map_put(&f->rows, (uintptr_t)facts, found);
    }
    struct fleet_row *row = (struct fleet_row *)found;
    row->users++;
    return row;
}

static struct demand *demand_make(struct fleet *f, struct str key, const struct fleet_image *images,
                                  uint32_t count)
{
    struct demand *demand = kv_calloc(1, sizeof *demand);
    struct arena *arena = &demand->arena;
    atomic_init(&demand->refs, 1);
    demand->fleet = f;
    demand->key = arena_str(arena, key);
    demand->images = arena_array(arena, struct fleet_image, count);
    demand->rows = arena_array(arena, struct fleet_row *, count);
    demand->count = count;
    pthread_mutex_lock(&f->demand_lock);
    for (uint32_t i = 0; i < count; i++) {
        demand->images[i] = (struct fleet_image){ .name = arena_str(arena, images[i].name),
                                                  .maybe_facts = images[i].maybe_facts,
                                                  .trouble = arena_str(arena, images[i].trouble) };
        if (images[i].maybe_facts)
            demand->rows[i] = row_hold(f, images[i].maybe_facts);
    }
    pthread_mutex_unlock(&f->demand_lock);
    return demand;
}

static const struct demand *demand_find(struct fleet *f, struct str key)
{
    pthread_mutex_lock(&f->demand_lock);
    struct demand *demand = str_table_get(&f->demands, key);
    if (demand)
        atomic_fetch_add_explicit(&demand->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&f->demand_lock);
    return demand;
}

const struct demand *fleet_demand(struct fleet *f, const struct fleet_image *images, uint32_t count)
{
    AUTO_BUF key = { 0 };
    demand_key(images, count, &key);
    const struct demand *found = demand_find(f, buf_str(&key));
    if (found)
        return found;

    pthread_mutex_lock(&f->change);
    found = demand_find(f, buf_str(&key)); /* somebody may have been faster */
    if (!found) {
        /* The rows come first: they keep what they mention in the mask. */
        struct demand *demand = demand_make(f, buf_str(&key), images, count);
        if (fleet_mask_grow(f, images, count))
            fleet_classify_all(f);
        pthread_mutex_lock(&f->demand_lock);
        str_table_put(&f->demands, demand->key, demand);
        pthread_mutex_unlock(&f->demand_lock);
        found = demand;
    }
    pthread_mutex_unlock(&f->change);
    return found;
}

const struct demand *demand_ref(const struct demand *demand)
{
    atomic_fetch_add_explicit(&((struct demand *)demand)->refs, 1, memory_order_relaxed);
    return demand;
}

/* The row is nobody's any more: what is in it goes when the locks are released. */
static void row_free(struct fleet *f, struct fleet_row *row)
{
    pthread_rwlock_wrlock(&f->lock);
    f->cell_bytes -= row->cells.cap * sizeof(struct fleet_cell);
    pthread_rwlock_unlock(&f->lock);
    vec_done(&row->cells);
    image_facts_unref(row->facts);
    free(row);
}

void demand_unref(const struct demand *shared)
{
    struct demand *demand = (struct demand *)shared;
    if (!demand)
        return;
    unsigned refs = atomic_load_explicit(&demand->refs, memory_order_relaxed);
    while (refs > 1) {
        if (atomic_compare_exchange_weak_explicit(&demand->refs, &refs, refs - 1,
                                                  memory_order_release, memory_order_relaxed))
            return;
    }
    struct fleet *f = demand->fleet;
    pthread_mutex_lock(&f->demand_lock);
    bool last = atomic_fetch_sub_explicit(&demand->refs, 1, memory_order_acq_rel) == 1;
    if (last) {
        str_table_remove(&f->demands, demand->key);
        for (uint32_t i = 0; i < demand->count; i++) {
            struct fleet_row *row = demand->rows[i];
            if (row && --row->users > 0)
                demand->rows[i] = NULL;
            else if (row)
                map_remove(&f->rows, (uintptr_t)row->facts, NULL);
        }
    }
    pthread_mutex_unlock(&f->demand_lock);
    if (!last)
        return;
    for (uint32_t i = 0; i < demand->count; i++) {
        if (demand->rows[i])
            row_free(f, demand->rows[i]);
    }
    arena_done(&demand->arena);
    free(demand);
}

uint32_t demand_image_count(const struct demand *demand)
{
    return demand->count;
}

const struct fleet_image *demand_image(const struct demand *demand, uint32_t ix)
{
    KV_ASSERT(ix < demand->count);
    return &demand->images[ix];
}

bool demand_is_empty(const struct demand *demand)
{
    for (uint32_t i = 0; i < demand->count; i++) {
        const struct image_facts *facts = demand->images[i].maybe_facts;
        if (demand->images[i].trouble.len > 0)
            return false;
        if (facts &&
            (facts->platform_count || facts->spec.maybe_spec || facts->spec.trouble.len > 0))
            return false;
    }
    return true;
}

/* --- verdicts --- */

/* The verdict about one class, while it is found out. */
struct answer {
    struct fleet_verdict verdict;
    bool begun;
    const struct fleet_class *maybe_class; /* counted; it is to be evaluated */
    struct fleet_cell *cells;              /* by image; those without a serial are missing */
};

/* Weights above the limit of a spec do not come this far; below zero they are none. */
static struct fleet_cell cell_of(const struct fleet_class *class, enum match match, int64_t weight)
{
    if (weight < 0)
        weight = 0;
    if (weight > COMPAT_WEIGHT_MAX)
        weight = COMPAT_WEIGHT_MAX;
    return (struct fleet_cell){ .match = (unsigned)match & 3,
                                .weight = (uint64_t)weight & INT32_MAX,
                                .serial = class->serial & INT32_MAX };
}

static struct image_node node_view(const struct fleet_class *class)
{
    return (struct image_node){ class->os, class->architecture, class->maybe_set };
}

static void evaluate(struct fleet *f, const struct demand *demand, const struct fleet_class *class,
                     struct fleet_cell *cells)
{
    uint32_t evaluated = 0;
    struct image_node node = node_view(class);
    for (uint32_t i = 0; i < demand->count; i++) {
        const struct image_facts *facts = demand->images[i].maybe_facts;
        if (!facts || cells[i].serial)
            continue;
        struct image_verdict v = image_judge(facts, &node, &f->options.rules);
        cells[i] = cell_of(class, v.match, v.outcome.weight_best);
        evaluated++;
    }
    atomic_fetch_add_explicit(&f->evaluated, evaluated, memory_order_relaxed);
    if (f->maybe_evaluated)
        metric_add(f->maybe_evaluated, evaluated);
}

static struct fleet_verdict combine(const struct demand *demand, const struct fleet_class *class,
                                    const struct fleet_cell *cells)
{
    struct fleet_verdict v = { .match = MATCH_YES,
                               .class_ix = class->slot,
                               .predicted = class->unobserved };
    for (uint32_t i = 0; i < demand->count; i++) {
        enum match match = demand->images[i].maybe_facts ? (enum match)cells[i].match : MATCH_YES;
        uint32_t weight = (uint32_t)cells[i].weight;
        if (demand->images[i].trouble.len > 0 && match > MATCH_ERROR)
            match = MATCH_ERROR;
        if (match < v.match) {
            v.match = match;
            v.image_ix = i;
        }
        if (weight && (v.weight == 0 || weight < v.weight))
            v.weight = weight;
    }
    return v;
}

/* The cells that are known, with `lock` held. True: all of them. */
static bool recall(const struct demand *demand, const struct fleet_class *class,
                   struct fleet_cell *cells)
{
    bool all = true;
    for (uint32_t i = 0; i < demand->count; i++) {
        const struct fleet_row *row = demand->rows[i];
        cells[i] = (struct fleet_cell){ 0 };
        if (!row)
            continue;
        if (class->slot < row->cells.count && row->cells.items[class->slot].serial == class->serial)
            cells[i] = row->cells.items[class->slot];
        else
            all = false;
    }
    return all;
}

static void remember(struct fleet *f, const struct demand *demand, const struct fleet_class *class,
                     const struct fleet_cell *cells)
{
    /* The place may be another class's by now: then its verdict is not overwritten. */
    if (class->slot >= f->classes.count || f->classes.items[class->slot] != class)
        return;
    for (uint32_t i = 0; i < demand->count; i++) {
        struct fleet_row *row = demand->rows[i];
        if (!row)
            continue;
        f->cell_bytes -= row->cells.cap * sizeof(struct fleet_cell);
        vec_reserve(&row->cells, class->slot + (size_t)1);
        while (row->cells.count <= class->slot)
            vec_push(&row->cells, (struct fleet_cell){ 0 });
        row->cells.items[class->slot] = cells[i];
        f->cell_bytes += row->cells.cap * sizeof(struct fleet_cell);
    }
}

/* Look up what is known of the class, with `lock` held. What is not is for `answer_finish`. */
static void answer_begin(const struct demand *demand, const struct fleet_class *class,
                         struct arena *arena, struct fleet_cell *scratch, struct answer *out)
{
    out->begun = true;
    if (recall(demand, class, scratch)) {
        out->verdict = combine(demand, class, scratch);
        return;
    }
    rc_ref(&class->rc);
    out->maybe_class = class;
    out->cells = arena_array(arena, struct fleet_cell, demand->count);
    memcpy(out->cells, scratch, demand->count * sizeof *scratch);
}

static void answers_finish(struct fleet *f, const struct demand *demand, struct answer *answers,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct answer *a = &answers[i];
        if (!a->maybe_class)
            continue;
        evaluate(f, demand, a->maybe_class, a->cells);
        a->verdict = combine(demand, a->maybe_class, a->cells);
    }
    pthread_rwlock_wrlock(&f->lock);
    for (size_t i = 0; i < count; i++) {
        if (answers[i].maybe_class)
            remember(f, demand, answers[i].maybe_class, answers[i].cells);
    }
    pthread_rwlock_unlock(&f->lock);
    for (size_t i = 0; i < count; i++)
        fleet_class_unref(answers[i].maybe_class);
}

void fleet_judge(struct fleet *f, const struct demand *demand, const struct str *names,
                 uint32_t count, struct fleet_verdict *out)
{
    AUTO_ARENA arena = { 0 };
    bool incomplete = false;
    fleet_refresh(f);
    atomic_fetch_add_explicit(&f->judged, count, memory_order_relaxed);
    struct fleet_cell *scratch = arena_array(&arena, struct fleet_cell, demand->count);

    pthread_rwlock_rdlock(&f->lock);
    size_t class_count = f->classes.count;
    struct answer *answers = arena_array(&arena, struct answer, class_count);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t found = (uintptr_t)str_table_get(&f->names, names[i]);
        uint32_t slot = found ? f->class_of.items[found - 1] : CLASS_NONE;
        out[i].class_ix = slot;
        if (slot == CLASS_NONE || answers[slot].begun)
            continue;
        answer_begin(demand, f->classes.items[slot], &arena, scratch, &answers[slot]);
        incomplete = incomplete || answers[slot].maybe_class;
    }
    pthread_rwlock_unlock(&f->lock);

    if (incomplete)
        answers_finish(f, demand, answers, class_count);
    for (uint32_t i = 0; i < count; i++) {
        if (out[i].class_ix == CLASS_NONE)
            out[i] = (struct fleet_verdict){ .match = MATCH_UNKNOWN, .class_ix = CLASS_NONE };
        else
            out[i] = answers[out[i].class_ix].verdict;
    }
}

struct fleet_verdict fleet_judge_machine(struct fleet *f, const struct demand *demand,
                                         const struct machine_kind *machine)
{
    AUTO_ARENA arena = { 0 };
    struct answer answer = { 0 };
    const struct fleet_class *class = fleet_class_of_machine(f, machine);
    struct fleet_cell *scratch = arena_array(&arena, struct fleet_cell, demand->count);
    atomic_fetch_add_explicit(&f->judged, 1, memory_order_relaxed);
    pthread_rwlock_rdlock(&f->lock);
    answer_begin(demand, class, &arena, scratch, &answer);
    pthread_rwlock_unlock(&f->lock);
    if (answer.maybe_class)
        answers_finish(f, demand, &answer, 1);
    fleet_class_unref(class);
    return answer.verdict;
}

/* --- words --- */

static void explain_image(struct fleet *f, const struct fleet_image *image,
                          const struct fleet_class *class, struct buf *out)
{
    struct image_node node = node_view(class);
    name_format(image->name, out);
    buf_addc(out, ' ');
    size_t before = out->len;
    if (image->maybe_facts)
        image_explain(image->maybe_facts, &node, &f->options.rules, out);
    bool told = out->len > before;
    if (told && class->unobserved && class->maybe_set)
        buf_addz(out, " (as predicted)");
    if (told && !image->trouble.len)
        return;
    buf_addz(out, told ? "; and " : "cannot be judged: "); /* no other node would do either */
    message_format(image->trouble, out);
}

static void explain_class(struct fleet *f, const struct demand *demand,
                          const struct fleet_class *class, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    struct fleet_cell *cells = arena_array(&arena, struct fleet_cell, demand->count);
    pthread_rwlock_rdlock(&f->lock);
    recall(demand, class, cells);
    pthread_rwlock_unlock(&f->lock);
    evaluate(f, demand, class, cells);
    struct fleet_verdict verdict = combine(demand, class, cells);
    if (verdict.match != MATCH_YES)
        explain_image(f, &demand->images[verdict.image_ix], class, out);
}

void fleet_explain(struct fleet *f, const struct demand *demand, struct str node, struct buf *out)
{
    const struct fleet_class *class = NULL;
    pthread_rwlock_rdlock(&f->lock);
    uintptr_t found = (uintptr_t)str_table_get(&f->names, node);
    uint32_t slot = found ? f->class_of.items[found - 1] : CLASS_NONE;
    if (slot != CLASS_NONE) {
        class = f->classes.items[slot];
        rc_ref(&class->rc);
    }
    pthread_rwlock_unlock(&f->lock);
    if (class)
        explain_class(f, demand, class, out);
    else
        buf_addz(out, "the node is not known here");
    fleet_class_unref(class);
}

void fleet_explain_machine(struct fleet *f, const struct demand *demand,
                           const struct machine_kind *machine, struct buf *out)
{
    const struct fleet_class *class = fleet_class_of_machine(f, machine);
    explain_class(f, demand, class, out);
    fleet_class_unref(class);
}
