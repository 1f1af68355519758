/* cloud/catalogue.h - instance types without a cloud: the built-in catalogue, or a file.
 *
 * The built-in one is a snapshot of EC2's list: families, sizes, hardware and list prices as
 * compact tables of facts (catalogue_data_*.c), dated CATALOGUE_DATE. Labels are those that the AWS
 * provider gives. NodePools of kwok have its synthetic types instead (cloud/kwok.h). A file (YAML
 * or JSON, see docs/catalogue.md) replaces both, for every node class.
 */
#pragma once

#include "bootstrap/allocatable.h"
#include "cloud/provider.h"

#define CATALOGUE_DATE "2026-02" /* of the list prices */
#define CATALOGUE_REGION "us-east-1"
#define CATALOGUE_FILE_BYTES_MAX ((size_t)64 << 20)

/* --- the built-in facts --- */

struct catalogue_machine {
    struct machine machine;
    usd_hour on_demand; /* in us-east-1 */
    uint32_t
        spot_permille; /* of the on-demand price, before the zone's own variation; 0: no spot */
    uint32_t zones;    /* bit i: offered in a region's i-th zone */
    bool ena;          /* its network cards are ENA */
};

uint32_t catalogue_machine_count(void);
/* Every type, in the order of names; built at the first call, lives for ever. Thread safe. */
const struct catalogue_machine *catalogue_machines(void);
const struct catalogue_machine *catalogue_machine_find(struct str name); /* NULL: not known */

#define CATALOGUE_ZONES_MAX 6

struct catalogue_region {
    const char *name;        /* "eu-west-1" */
    uint32_t price_permille; /* of us-east-1's list prices */
    uint32_t zone_count;
    const char *zones[CATALOGUE_ZONES_MAX];    /* "eu-west-1a", ... */
    const char *zone_ids[CATALOGUE_ZONES_MAX]; /* "euw1-az3", ... */
};
const struct catalogue_region *catalogue_region_find(struct str name); /* NULL: not known */
extern const struct catalogue_region catalogue_regions[];
extern const uint32_t catalogue_region_count;

/* In dollars per hour. us-east-1's on-demand prices are the list's; all others are estimates. */
usd_hour catalogue_on_demand(const struct catalogue_machine *m, const struct catalogue_region *r);
usd_hour catalogue_spot(const struct catalogue_machine *m, const struct catalogue_region *r,
                        uint32_t zone_ix);

/* Why nothing of a machine is available to a class, in a few words; NULL: they go together. Without
 * a class: AL2023. */
const char *catalogue_mismatch(const struct ec2nodeclass *maybe_class,
                               const struct catalogue_machine *m);

/* --- a provider that knows types but launches nothing --- */

/* Where node classes are found; NULL result: no such class, and class defaults are used. Called by
 * any thread, on every read of a generation. */
typedef const struct object *catalogue_class_fn(void *ctx, const struct node_class_ref *ref);

struct catalogue_options {
    struct str region;               /* empty: CATALOGUE_REGION */
    const char *maybe_path;          /* a catalogue file instead of the built-in one */
    catalogue_class_fn *maybe_class; /* borrowed objects, valid while the catalogue is asked */
    void *class_ctx;
    const struct allocatable_options *maybe_allocatable; /* copied; NULL: ALLOCATABLE_DEFAULTS */
};

struct catalogue;
/* ERR_INVALID: no such region, or a broken file, with its line and field. ERR_NOT_FOUND,
 * ERR_UNAVAILABLE: the file cannot be read. */
int catalogue_new(struct catalogue_options options, struct catalogue **out, struct err *err);
void catalogue_free(struct catalogue *c); /* NULL is fine */
KV_AUTO_TYPE(catalogue, catalogue_free)

/* Its create, delete, get and is_drifted fail with ERR_INVALID ("the catalogue launches nothing"),
 * and list is empty. The types follow the pool's EC2NodeClass: image family, kubelet, block
 * devices, subnets and reservations in its status. A class that is not found, or of a group that is
 * not known, is AL2023 in every zone. */
const struct cloud_provider *catalogue_provider(struct catalogue *c);
/* Counters to bump when a simulation changes something. */
struct generation_counters *catalogue_counters(struct catalogue *c);

/* A file's text as drafts in the arena, in the order of the file. `path` is only for messages.
 * ERR_INVALID names file, line, column and field of the first problem. */
int catalogue_file_read(struct arena *arena, const char *path, struct str text,
                        const struct instance_type_draft **out, uint32_t *count, struct err *err);
