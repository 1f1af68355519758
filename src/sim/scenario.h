/* sim/scenario.h - what happens in a simulation, as a YAML file says it. docs/simulate.md has the
 * format; mistakes are told with file, line and field.
 */
#pragma once

#include "control/control.h"
#include "sim/cloud.h"
#include "sim/faults.h"

#define SCENARIO_BYTES_MAX ((size_t)16 << 20) /* of the file, and of each that it names */
#define SCENARIO_OBJECTS_MAX 100000           /* at the start */
#define SCENARIO_ACTIONS_MAX 100000
#define SCENARIO_REPLICAS_MAX 1000000
#define SCENARIO_DURATION_MAX_NS ((int64_t)366 * 24 * 3600 * 1000000000)

enum action_kind {
    ACTION_SAY,    /* only the words, for the timeline */
    ACTION_APPLY,  /* objects: created, or changed as kubectl apply would */
    ACTION_DELETE, /* one by name, or some of a kind */
    ACTION_SCALE,
    ACTION_PRICE,
    ACTION_DROUGHT,
    ACTION_OUTAGE,
    ACTION_BREAK,  /* an image, the network, launching */
    ACTION_KILL,   /* instances: a number of them, chosen by the seed */
    ACTION_CRASH,  /* the control plane */
    ACTION_FAULTS, /* other rates */
};
#define ACTION_KIND_COUNT (ACTION_FAULTS + 1)

struct action {
    enum action_kind kind;
    int64_t at_ns;  /* since the start */
    struct str say; /* shown on the timeline; "" if the file does not say: see action_words */
    int line;       /* of the file; 0 if made up */
    bool ends;      /* of a drought, an outage, something broken, a price, faults: it is over */
    union {
        struct { /* apply: JSON texts, one object each */
            const struct str *objects;
            uint32_t object_count;
        } apply;
        struct {
            const struct kind *kind;
            struct str namespace_, name; /* "" is any of that kind, of all namespaces */
            int64_t replicas;            /* scale */
            uint32_t any;                /* delete without a name: so many, chosen by the seed */
        } target;                        /* delete and scale */
        struct {
            struct offering_match match;
            double factor;
        } offering; /* price and drought */
        struct str zone;
        struct {
            struct str node_class;
            enum sim_break what;
        } broken;
        struct {
            uint32_t count;
            struct offering_match match;
        } kill;
        struct {
            uint32_t calls; /* it dies at that call from now on, 1 is the next; 0: at once */
            bool after_effect;
        } crash;
        struct fault_rates rates; /* faults */
    };
};

struct chaos {         /* random actions besides the timeline: sim/chaos.h */
    uint32_t steps;    /* 0: none */
    struct span pause; /* between two */
    uint32_t actions;  /* bit per enum action_kind */
};

struct scenario {
    struct arena arena; /* owns all of it */
    struct str name, about;
    int64_t start_us, duration_ns, sample_ns;
    uint64_t seed;
    struct str catalogue_path, region; /* "" for the built-in ones */
    bool kwok_types;                   /* the 144 synthetic types instead of a catalogue */
    struct str_list zones;             /* of the catalogue, sorted */
    struct control_settings settings;
    struct span boot, ready, terminate, pod_start, pod_stop, job_run, startup_taints;
    double boot_failure_rate, ready_failure_rate;
    int64_t event_delay_ns; /* at most: how late watches are */
    struct fault_rates rates;
    double crashes_per_hour;
    const struct str *objects; /* JSON texts: what is there at the start */
    uint32_t object_count;
    const struct action *timeline; /* by time */
    uint32_t timeline_count;
    struct chaos chaos;
};

/* Built-in scenarios ("black-friday", "chaos") are found by name where no file has it. */
int scenario_load(const char *path, struct scenario **out, struct err *err);
/* `path` is for messages and what the file refers to. All that is wrong is told, a line each, as far
 * as an error holds it. */
int scenario_parse(const char *path, struct str text, struct scenario **out, struct err *err);
void scenario_free(struct scenario *s); /* NULL is fine */
KV_AUTO_TYPE(scenario, scenario_free)
extern const char *const scenario_names[];   /* built in; NULL-terminated */
const char *scenario_text(const char *name); /* of a built-in one; NULL: there is none */

/* The scenario as a file again, with all that it took from other files: what is found by shrinking
 * is printed so. */
void scenario_write(const struct scenario *s, struct buf *out);
/* What the action does, in a line: "scale Deployment shop/web to 40". */
void action_words(const struct action *a, struct buf *out);
