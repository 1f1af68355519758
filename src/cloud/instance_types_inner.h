/* cloud/instance_types_inner.h - what the files of instance_types share. */
#pragma once

#include "cloud/instance_types.h"

/* The first i in [0, count) for which `before` is false; count if there is none. Where it is true
 * for some i it is true for all that are less. */
#define FIRST_NOT(count, i, before)                                                                \
    __extension__({                                                                                \
        uint32_t low_ = 0, high_ = (count);                                                        \
        while (low_ < high_) {                                                                     \
            uint32_t i = low_ + (high_ - low_) / 2;                                                \
            if (before)                                                                            \
                low_ = i + 1;                                                                      \
            else                                                                                   \
                high_ = i;                                                                         \
        }                                                                                          \
        low_;                                                                                      \
    })

/* What handles point at. Counted by handles; the columns are in the arena. */
struct instance_types_memory {
    struct rc rc;
    struct arena arena;
    const struct instance_types *maybe_base; /* a reference: a layer shares its columns */
};

/* Everything but the count, which other threads may be changing. */
static inline void instance_types_copy(struct instance_types *to, const struct instance_types *from)
{
    size_t start = offsetof(struct instance_types, type_count);
    memcpy((char *)to + start, (const char *)from + start, sizeof *to - start);
}

struct instance_types_memory *instance_types_memory_new(const struct instance_types *maybe_base);
void instance_types_memory_unref(struct instance_types_memory *memory);

/* The last step of a build: the checksum, the seal, and a handle with the caller's reference.
 * `columns` is copied; its memory's reference goes to the handle. */
const struct instance_types *instance_types_publish(struct instance_types *columns,
                                                    struct instance_types_options options);
uint64_t instance_types_checksum(const struct instance_types *s);

/* The price of the cheapest available offering of a type; USD_HOUR_MAX if there is none. */
usd_hour instance_types_lowest(const struct instance_types *s, uint32_t type);
/* Types by price, then by place. */
bool instance_types_cheaper(const usd_hour *price_cheapest, uint32_t a, uint32_t b);
void instance_types_sort_by_price(uint32_t *types, uint32_t count, const usd_hour *price_cheapest);

/* What is left for pods: `allocatable` of `columns`, which are s->resources still in the making, and
 * s->overdrawn. Columns that have it already keep it. */
void instance_types_subtract(struct instance_types *s, struct arena *arena,
                             struct resource_column *columns);
