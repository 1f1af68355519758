/* cloud/instance_types.h - a snapshot of what can be launched: instance types and their offerings.
 *
 * Immutable, counted, columnar. It is built once from drafts (or as a layer over another snapshot,
 * sharing every column that the layer does not touch) and then read without a lock by any number
 * of threads; nothing on the read path allocates or copies.
 *
 * Types are in the order of their names and are named by their place, offerings lie type after
 * type. What distinguishes offerings (zone, capacity type, reservation, ...) is one of a few
 * distinct requirement sets, a `shape`: 6 zones x 2 capacity types are 12 shapes however many
 * types there are. To ask "which types can be had as spot in zone a" is to look at the shapes and
 * OR their bitsets.
 *
 * Amounts of resources are in thousandths of the resource's unit (millicores, milli-bytes), so one
 * rule serves all of them: capacity is rounded down, requests are rounded up, and an int64 holds 8
 * PiB.
 *
 * Where an offering overrides capacity or overhead, the type has several rows: row t is type t as
 * it is, and rows from type_count on are (type, override) pairs that some offerings are of.
 */
#pragma once

#include "api/requirements.h"
#include "base/bitset.h"
#include "base/rc.h"
#include "cloud/price.h"

/* --- what a provider says --- */

struct offering_draft {
    /* Must have zone and capacity type with one value each; others as the cloud has them (zone id,
     * reservation id, partition). */
    struct requirements requirements;
    usd_hour price;
    bool available;
    int64_t reservation_capacity;       /* instances left, for a reserved offering; else 0 */
    struct resources capacity_override; /* these resources differ from the type's */
    struct resources overhead_override;
};

struct instance_type_draft {
    struct str name;
    /* Well-known labels that the type does not have are DoesNotExist. Instance type, zone and
     * capacity type are filled in from the name and the offerings when they are not there. */
    struct requirements requirements;
    struct resources capacity;
    struct resources overhead; /* kube-reserved + system-reserved + eviction threshold */
    const struct offering_draft *offerings;
    uint32_t offering_count;
};

/* --- the snapshot --- */

/* A bitset that is cut to the words it has members in: word i of it is word `first` + i of a whole
 * one. Types are in the order of names, so the types of a family lie together, and a set of one
 * costs one word: the index grows with what it holds, not with types x values. */
struct posting {
    const uint64_t *words;
    uint32_t first, count; /* of words */
};

static inline bool posting_has(const struct posting *p, uint32_t i)
{
    uint32_t word = i / 64 - p->first; /* wraps below `first`, and is too large then */
    return word < p->count && (p->words[word] >> (i % 64) & 1);
}
static inline void posting_or(struct bitset *dst, const struct posting *p) /* dst |= p */
{
    for (uint32_t i = 0; i < p->count; i++)
        dst->words[p->first + i] |= p->words[i];
}

enum { CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_OTHER };

struct offering_shape {
    struct requirements requirements;
    struct str zone, capacity_type;
    struct str reservation_id; /* "" if none */
    uint8_t capacity_type_ix;  /* CAPACITY_TYPE_*, in the order of preference */
    uint32_t zone_ix;          /* into `zones` */
    struct posting offerings;  /* all of this shape */
    struct posting types;      /* that have an *available* offering of this shape */
};

struct label_value { /* a posting list */
    struct str text;
    struct posting types; /* whose requirement on the key allows this value by name */
};

struct label_column {
    struct str key;
    const struct label_value *values; /* sorted by text */
    uint32_t value_count;
    struct bitset defined;    /* types that say anything about the key */
    struct bitset absent;     /* types that say DoesNotExist */
    struct bitset complement; /* types that say Exists, NotIn or bounds: asked one by one */
    struct bitset several;    /* types that allow two or more values */
    /* Values that are integers, ascending, for Gt, Lt and their kin. */
    const struct label_number {
        int64_t number;
        uint32_t value; /* into `values` */
    } * numbers;
    uint32_t number_count;
};

/* One amount per row. Allocatable is capacity less overhead, and of memory also less huge pages, which
 * use it up and do not overdraw it. Columns that are equal (no overhead) are one. */
struct resource_column {
    struct str name;
    enum quantity_format format;
    const int64_t *capacity, *overhead, *allocatable; /* thousandths */
    struct posting overrides; /* rows whose capacity of it is the offering's own, not the type's */
};

struct instance_types {
    struct rc rc; /* the only thing that changes; everything else may be in sealed memory */

    uint32_t type_count, offering_count, row_count;
    uint32_t shape_count, zone_count, key_count, resource_count;

    const struct str *names;        /* per type, sorted */
    const uint32_t *offering_start; /* type_count + 1: offerings of t are [start[t], start[t+1]) */
    const uint32_t *offering_type;  /* per offering */
    const uint32_t *offering_row;   /* per offering: whose resources it has */
    const uint16_t *offering_shape; /* per offering: into `shapes` */
    const uint32_t *reservation_capacity; /* per offering: instances left, 0 if not reserved */
    struct bitset available;              /* over offerings */
    /* prices[t][k] is the price of t's k-th offering. A pointer per type, so that a layer has new
     * prices for the types it touches and shares the others. */
    const usd_hour *const *prices;
    /* Types by their cheapest available offering, then by name; those with none last. */
    const uint32_t *price_order;
    const usd_hour *price_cheapest; /* per type: USD_HOUR_MAX if nothing is available */

    const struct offering_shape *shapes;     /* sorted by zone, capacity type, then the rest */
    const struct str *zones;                 /* sorted */
    const struct label_column *labels;       /* sorted by key */
    const struct resource_column *resources; /* sorted by name */
    const uint32_t *row_type;                /* per row */
    const int64_t *zeros;                    /* per row: the overhead of resources that have none */
    struct bitset overridden;                /* types that have more than one row */
    struct bitset overdrawn; /* rows with more overhead than capacity of something: nothing fits */

    /* Distinct requirements, and which of them each type has, sorted by key. */
    const struct requirement *requirement_pool;
    uint32_t requirement_count;
    const uint32_t *type_requirements;       /* ids, type after type */
    const uint32_t *type_requirements_start; /* type_count + 1 */

    /* What a layer changed; NULL words in a snapshot without layers. */
    struct bitset priced;       /* offerings whose price is an overlay's */
    struct bitset recapacitied; /* types whose capacity an overlay changed */

    uint64_t checksum;                 /* of all of the above; see instance_types_verify */
    size_t bytes;                      /* of this snapshot's own memory, without what it shares */
    const struct instance_types *base; /* NULL, or the snapshot that this is a layer over */
    struct instance_types_memory *memory;
};

/* Sealing makes a stray write through a cast fault at once instead of corrupting every reader.
 * Debug builds always seal. */
struct instance_types_options {
    bool seal;
};

#define INSTANCE_TYPES_MAX 20000
#define INSTANCE_OFFERINGS_MAX 2000000
#define INSTANCE_SHAPES_MAX 60000
#define INSTANCE_CELLS_MAX (32u << 20) /* words of postings, and of resource columns */

/* Drafts are copied, and their order does not matter: equal drafts give equal checksums. ERR_INVALID
 * names the type and the offering: names that are equal, no or several zones or capacity types, a
 * negative amount or price, lists that are not sorted, or more than the limits above. The result
 * has one reference. */
int instance_types_build(const struct instance_type_draft *drafts, uint32_t count,
                         struct instance_types_options options, const struct instance_types **out,
                         struct err *err);

const struct instance_types *instance_types_ref(const struct instance_types *s);
void instance_types_unref(const struct instance_types *s); /* NULL is fine */
static inline void instance_types_unref_cleanup(const struct instance_types **s)
{
    instance_types_unref(*s);
}
#define AUTO_INSTANCE_TYPES                                                                        \
    __attribute__((cleanup(instance_types_unref_cleanup))) const struct instance_types *

/* Another handle to the same columns with a count of its own: threads that take references to
 * different handles do not fight over one cache line. */
const struct instance_types *instance_types_replica(const struct instance_types *s);

/* Does everything that readers see still have the checksum it was built with? */
bool instance_types_verify(const struct instance_types *s);

/* --- layers --- */

struct price_edit { /* sorted by offering, each offering once */
    uint32_t offering;
    usd_hour price;
};
struct capacity_edit { /* sorted by type, then resource; each pair once */
    uint32_t type;
    struct str resource;
    int64_t milli; /* from 0 up; replaces the type's capacity, rows with their own keep it */
};

/* `base` with some prices and capacities replaced. Edits that change nothing are left out of the
 * result; with no edit left the result is another reference to `base` itself, but an offering that an
 * overlay prices at what it cost before still counts as priced. Layers do not nest: `base` has no
 * base. */
const struct instance_types *instance_types_layer(const struct instance_types *base,
                                                  const struct price_edit *prices,
                                                  uint32_t price_count,
                                                  const struct capacity_edit *capacities,
                                                  uint32_t capacity_count,
                                                  struct instance_types_options options);

/* --- reading --- */

#define INSTANCE_TYPE_NONE UINT32_MAX

uint32_t instance_types_find(const struct instance_types *s, struct str name); /* or NONE */
const struct label_column *instance_types_label(const struct instance_types *s,
                                                struct str key); /* or NULL */
const struct resource_column *instance_types_resource(const struct instance_types *s,
                                                      struct str name); /* or NULL */
const struct requirement *instance_type_requirement(const struct instance_types *s, uint32_t type,
                                                    struct str key); /* or NULL */
static inline usd_hour instance_types_price(const struct instance_types *s, uint32_t offering)
{
    uint32_t t = s->offering_type[offering];
    return s->prices[t][offering - s->offering_start[t]];
}

/* `out` (over types) &= the types whose requirement on r's key is compatible with r, as
 * requirements_compatible says: types that do not define the key stay in if r is NotIn or
 * DoesNotExist, or if `may_be_undefined`. Needs no memory but its own stack and out's words. */
void instance_types_narrow(const struct instance_types *s, const struct requirement *r,
                           bool may_be_undefined, struct bitset *out);
/* The same for a whole set; `may_be_undefined` lists the keys (sorted). */
void instance_types_narrow_all(const struct instance_types *s, const struct requirements *set,
                               struct str_list may_be_undefined, struct bitset *out);

/* Shapes (a bitset over shapes) that a node with the requirements `set` can be launched as: for
 * every key that both speak of there is a value that suits both. What only one speaks of says
 * nothing against it: a pool's own labels are not the offering's, and a reservation that nobody
 * asked for is as good as any. */
void instance_types_shapes(const struct instance_types *s, const struct requirements *set,
                           struct bitset *out);
/* out (over types) = types with an available offering among these shapes. */
void instance_types_offered(const struct instance_types *s, const struct bitset *shapes,
                            struct bitset *out);
/* out (over types) &= types that have a row on which the request fits and, on that row, an available
 * offering among the shapes. */
void instance_types_fitting(const struct instance_types *s, const struct resources *request,
                            const struct bitset *shapes, struct bitset *out);

/* The cheapest available offering of `type` among the shapes; INSTANCE_TYPE_NONE if there is none. Of equal
 * prices the preferred capacity type (reserved, spot, on-demand), then the first. */
uint32_t instance_types_cheapest(const struct instance_types *s, uint32_t type,
                                 const struct bitset *shapes);

/* For writing them somewhere: in the caller's arena. Zero amounts are left out. */
struct requirements instance_type_requirements(const struct instance_types *s, uint32_t type,
                                               struct arena *arena);
struct resources instance_type_capacity(const struct instance_types *s, uint32_t row,
                                        struct arena *arena);
struct resources instance_type_overhead(const struct instance_types *s, uint32_t row,
                                        struct arena *arena);
struct resources instance_type_allocatable(const struct instance_types *s, uint32_t row,
                                           struct arena *arena);

/* Thousandths of a quantity: down for what there is, up for what is asked. Saturating. */
int64_t milli_floor(struct quantity q);
int64_t milli_ceil(struct quantity q);
