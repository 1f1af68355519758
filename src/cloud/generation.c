#include "cloud/generation.h"

const char *const generation_member_names[GENERATION_MEMBERS] = {
    [GENERATION_TYPES] = "types",
    [GENERATION_ZONES] = "zones",
    [GENERATION_ON_DEMAND] = "on_demand",
    [GENERATION_SPOT] = "spot",
    [GENERATION_UNAVAILABLE] = "unavailable",
    [GENERATION_RESERVATIONS] = "reservations",
    [GENERATION_INPUTS] = "inputs",
    [GENERATION_OVERLAYS] = "overlays",
};

enum generation_member generation_difference(const struct generation *a, const struct generation *b)
{
    for (int i = 0; i < GENERATION_MEMBERS; i++)
        if (a->member[i] != b->member[i])
            return (enum generation_member)i;
    return GENERATION_MEMBERS;
}

bool generation_equal(const struct generation *a, const struct generation *b)
{
    return generation_difference(a, b) == GENERATION_MEMBERS;
}

/* Release and acquire: whoever reads the new number also sees the data it stands for. */
void generation_bump(struct generation_counters *c, enum generation_member what)
{
    atomic_fetch_add_explicit(&c->member[what], 1, memory_order_release);
}

void generation_read(const struct generation_counters *c, struct generation *out)
{
    for (int i = 0; i < GENERATION_MEMBERS; i++)
        out->member[i] = atomic_load_explicit(&c->member[i], memory_order_acquire);
}
