/* Machines: what nodes are instances of, and what is predicted of them.
 *
 * A machine is found by all its fields. Nodes that have published nothing yet, and questions about nodes that
 * are not there, get the class that is predicted of it, which is worked out once for a state of the
 * predictor and of the mask.
 */
#include "compat/fleet_inner.h"

#define MACHINES_MAX 10000 /* kept, beside those of nodes; a cloud has about 1,000 types */

/* --- keys --- */

static void key_number(struct buf *key, uint64_t n)
{
    buf_add(key, (struct str){ (const char *)&n, sizeof n });
}

static void key_text(struct buf *key, struct str s)
{
    key_number(key, s.len);
    buf_add(key, s);
}

static void key_map(struct buf *key, const struct str_map *map)
{
    key_number(key, map->count);
    for (uint32_t i = 0; i < map->count; i++) {
        key_text(key, map->items[i].key);
        key_text(key, map->items[i].value);
    }
}

static void key_features(struct buf *key, const struct features *f)
{
    key_number(key, f->flags.count);
    for (uint32_t i = 0; i < f->flags.count; i++) {
        key_text(key, f->flags.items[i].key);
        key_number(key, f->flags.items[i].elements.count);
        for (uint32_t k = 0; k < f->flags.items[i].elements.count; k++)
            key_text(key, f->flags.items[i].elements.items[k].key);
    }
    key_number(key, f->attributes.count);
    for (uint32_t i = 0; i < f->attributes.count; i++) {
        key_text(key, f->attributes.items[i].key);
        key_map(key, &f->attributes.items[i].elements);
    }
    key_number(key, f->instances.count);
    for (uint32_t i = 0; i < f->instances.count; i++) {
        key_text(key, f->instances.items[i].key);
        key_number(key, f->instances.items[i].elements.count);
        for (uint32_t k = 0; k < f->instances.items[i].elements.count; k++)
            key_map(key, &f->instances.items[i].elements.items[k].attributes);
    }
    key_number(key, f->has_kernel_config);
    key_map(key, &f->kernel_config);
}

static void machine_key(const struct machine_kind *m, struct buf *key)
{
    const struct str texts[] = {
        m->instance_type,    m->architecture,    m->os, m->image, m->gpu_name, m->cpu_manufacturer,
        m->gpu_manufacturer, m->accelerator_name
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        key_text(key, texts[i]);
    key_number(key, (uint64_t)m->cpu);
    if (m->maybe_declared)
        key_features(key, m->maybe_declared);
}

/* --- the table --- */

void fleet_machine_free(struct fleet *f, struct fleet_machine *machine)
{
    fleet_class_drop(f, machine->maybe_class);
    arena_done(&machine->arena);
    free(machine);
}

/* Machines that were asked about and that no node is: they can be predicted again. */
static void forget_unused(struct fleet *f)
{
    VEC(struct fleet_machine *) unused = { 0 };
    pthread_rwlock_wrlock(&f->lock);
    str_table_each(&f->machines, it) {
        struct fleet_machine *machine = it->value;
        if (machine->users > 0)
            continue;
        vec_push(&unused, machine);
        str_table_remove(&f->machines, it->key);
    }
    pthread_rwlock_unlock(&f->lock);
    vec_each(&unused, struct fleet_machine *, it)
        fleet_machine_free(f, *it);
    vec_done(&unused);
}

/* But for what is declared. */
static void machine_copy(struct arena *a, const struct machine_kind *m, struct machine_kind *out)
{
    *out = (struct machine_kind){
        .instance_type = arena_str(a, m->instance_type),
        .architecture = arena_str(a, m->architecture),
        .os = arena_str(a, m->os),
        .image = arena_str(a, m->image),
        .cpu_manufacturer = arena_str(a, m->cpu_manufacturer),
        .gpu_name = arena_str(a, m->gpu_name),
        .gpu_manufacturer = arena_str(a, m->gpu_manufacturer),
        .accelerator_name = arena_str(a, m->accelerator_name),
        .cpu = m->cpu,
    };
}

static struct fleet_machine *machine_find(struct fleet *f, struct str key,
                                          const struct machine_kind *m)
{
    struct fleet_machine *entry = str_table_get(&f->machines, key);
    if (entry)
        return entry;
    if (f->machines.live_count >= f->names.live_count + MACHINES_MAX)
        forget_unused(f);

    entry = kv_calloc(1, sizeof *entry);
    machine_copy(&entry->arena, m, &entry->machine);
    pthread_rwlock_wrlock(&f->lock);
    str_table_put(&f->machines, key, entry);
    pthread_rwlock_unlock(&f->lock);
    return entry;
}

/* --- of nodes --- */

struct fleet_machine *fleet_machine_hold(struct fleet *f, const struct machine_kind *machine)
{
    AUTO_BUF key = { 0 };
    machine_key(machine, &key);
    struct fleet_machine *entry = machine_find(f, buf_str(&key), machine);
    entry->users++;
    return entry;
}

void fleet_machine_drop(struct fleet *f KV_UNUSED, struct fleet_machine *maybe_machine)
{
    if (maybe_machine)
        maybe_machine->users--; /* it stays as one that may be asked about */
}

/* --- predicting --- */

struct fleet_lesson *fleet_lesson_of(struct fleet *f, const struct fleet_node *node)
{
    if (!f->options.maybe_predictor || !node->exists || node->features.count == 0)
        return NULL;
    struct fleet_lesson *lesson = kv_calloc(1, sizeof *lesson);
    machine_copy(&lesson->arena, &node->maybe_machine->machine, &lesson->machine);
    lesson->nfd_namespace = arena_str(&lesson->arena, f->options.nfd_namespace);
    vec_each(&node->features, const struct node_feature *, it) {
        object_ref(&(*it)->object);
        vec_push(&lesson->features, *it);
    }
    return lesson;
}

void fleet_learn(struct fleet *f, struct fleet_lesson *lesson)
{
    if (!lesson)
        return;
    predictor_learn_node(f->options.maybe_predictor, &lesson->machine, lesson->features.items,
                         (uint32_t)lesson->features.count, lesson->nfd_namespace);
    vec_each(&lesson->features, const struct node_feature *, it)
        object_unref(&(*it)->object);
    vec_done(&lesson->features);
    arena_done(&lesson->arena);
    free(lesson);
}

static uint64_t predictor_version(struct fleet *f)
{
    return f->options.maybe_predictor ? predictor_generation(f->options.maybe_predictor) : 0;
}

static bool machine_is_fresh(struct fleet *f, const struct fleet_machine *entry, uint64_t version)
{
    return entry->maybe_class && entry->predictor_version == version &&
           entry->mask_version == f->mask_version;
}

struct fleet_class *fleet_machine_class(struct fleet *f, struct fleet_machine *entry,
                                        const struct machine_kind *machine)
{
    uint64_t version = predictor_version(f); /* before: what is learnt meanwhile is not lost */
    if (machine_is_fresh(f, entry, version))
        return entry->maybe_class;
    struct fleet_class *class = fleet_class_predicted(f, machine), *old = entry->maybe_class;
    pthread_rwlock_wrlock(&f->lock);
    entry->maybe_class = class;
    entry->predictor_version = version;
    entry->mask_version = f->mask_version;
    pthread_rwlock_unlock(&f->lock);
    fleet_class_drop(f, old);
    return class;
}

const struct fleet_class *fleet_class_of_machine(struct fleet *f,
                                                 const struct machine_kind *machine)
{
    AUTO_BUF key = { 0 };
    const struct fleet_class *class = NULL;
    uint64_t version = predictor_version(f);
    machine_key(machine, &key);

    pthread_rwlock_rdlock(&f->lock);
    struct fleet_machine *entry = str_table_get(&f->machines, buf_str(&key));
    if (entry && machine_is_fresh(f, entry, version)) {
        class = entry->maybe_class;
        rc_ref(&class->rc);
    }
    pthread_rwlock_unlock(&f->lock);
    if (class)
        return class;

    pthread_mutex_lock(&f->change);
    class = fleet_machine_class(f, machine_find(f, buf_str(&key), machine), machine);
    rc_ref(&class->rc);
    pthread_mutex_unlock(&f->change);
    return class;
}
