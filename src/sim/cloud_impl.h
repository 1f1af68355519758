/* sim/cloud_impl.h - what the files of the simulated cloud share. For cloud*.c only. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "cloud/fake_node.h"
#include "sim/cloud.h"
#include "sim/timers.h"

__extension__ typedef __int128 wide_int; /* for products of prices */

/* --- cloud_types.c: what can be had, and for how much --- */

struct price_rule {
    struct offering_match match; /* texts are the market's */
    int64_t factor_ppm;          /* millionths */
};

/* An answer for pools whose types have that generation, in three steps. */
struct types_answer {
    struct generation of;
    const struct instance_types *base;   /* as the catalogue says; NULL: the answer is not used */
    const struct instance_types *priced; /* with the rules of that version */
    const struct instance_types *marked; /* and with that version of the marks; NULL: not made */
    uint64_t price_version, mark_version;
};
#define TYPES_ANSWERS_MAX 8

struct market {
    const struct cloud_provider *maybe_types;
    struct generation_counters counters;
    struct unavailable *marks;
    struct arena arena; /* texts of matches: they are few */
    VEC(struct offering_match) droughts;
    VEC(struct price_rule) prices;
    struct str_table zones_out;
    uint64_t price_version;
    struct types_answer answers[TYPES_ANSWERS_MAX];
    uint32_t answer_next; /* which goes when another is needed */
};

void market_init(struct market *m, const struct cloud_provider *maybe_types,
                 const struct clock *clock);
void market_done(struct market *m);
/* As launches find them: with prices, without marks. Borrowed until the next call. */
int market_types(struct market *m, const struct nodepool *pool, const struct instance_types **out,
                 struct err *err);
/* As the control plane sees them: with marks. One reference for the caller. */
int market_types_marked(struct market *m, const struct nodepool *pool,
                        const struct instance_types **out, struct err *err);
int market_generation(struct market *m, const struct nodepool *pool, struct generation *out,
                      struct err *err);
bool market_is_dry(const struct market *m, const struct instance_types *types, uint32_t offering);

/* --- cloud_instances.c: instances over time --- */

enum vm_state {
    VM_BOOTING,
    VM_WAITING, /* has booted; the network keeps it from joining */
    VM_JOINED,
    VM_LOST,
    VM_ENDING,
    VM_ENDED, /* only the token is left, and perhaps a Node that nobody has missed yet */
};

struct vm {
    struct arena arena; /* owns the texts; empty once it is only a token */
    struct instance instance;
    struct str claim_uid, node_class;
    enum vm_state state;
    bool image_broken; /* when it was launched */
    bool has_node;     /* it has joined, once */
    bool missed;       /* it has ended, and its Node is known not to be ready */
    usd_hour price;
    struct timer timer; /* what is next, by the state */
};

struct sim_cloud {
    struct sim_cloud_options options;
    struct cloud_provider port;
    struct node_class_kind node_classes[FAKE_CLASSES_MAX];
    struct market market;
    struct str_table by_token;       /* struct vm, all that ever were */
    struct str_table by_provider_id; /* struct vm, those that have not ended */
    struct str_table broken[3];      /* per enum sim_break: names of node classes, or "" */
    struct timers timers;
    struct sim_cloud_stats stats;
    /* Money: the sum of running prices, and its integral up to a moment, in price x ns. */
    usd_hour rate;
    int64_t billed_ns;
    wide_int spent;
};

extern const struct fake_naming sim_naming;

static inline int64_t cloud_now_ns(const struct sim_cloud *c)
{
    return clock_mono_ns(c->options.clock);
}
bool cloud_is_broken(const struct sim_cloud *c, enum sim_break what, struct str node_class);
struct str claim_token(const struct nodeclaim *claim);

/* Takes it over, and starts it: it will have booted after `boot_ns`. */
void vm_start(struct sim_cloud *c, struct vm *vm, int64_t boot_ns);
/* It has joined in an earlier life of the program, and its Node is that, or gone again. */
void vm_recover_joined(struct sim_cloud *c, struct vm *vm, const struct node *maybe_node);
void vm_end(struct sim_cloud *c, struct vm *vm);  /* begins its end; once it has, nothing */
void vm_kill(struct sim_cloud *c, struct vm *vm); /* at once; once it has ended, nothing */
void vm_mend(struct sim_cloud *c, struct vm *vm); /* the network may be fine now */
void vm_free(struct vm *vm);
void cloud_bill(struct sim_cloud *c, usd_hour change); /* of the rate, from now on */
/* The delay that the class wants, or one of the cloud's own. */
int64_t cloud_boot_ns(const struct sim_cloud *c, const struct object *maybe_class,
                      struct str claim_uid);
