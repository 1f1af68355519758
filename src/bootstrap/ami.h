/* bootstrap/ami.h - which machine images a node class means. Pure: what to ask AWS for, and what to
 * make of the answers.
 *
 *     terms -> parameters and queries -> (AWS) -> images -> status.amis -> one image per type
 *
 * An alias ("al2023@v20260714") names SSM parameters, each of which holds the id of an image for
 * some instance types. Other terms are filters of DescribeImages. Of the images that suit the same
 * instance types the newest is kept. Results live in the arena.
 */
#pragma once

#include "api/ec2nodeclass.h"
#include "api/requirements.h"

/* --- aliases --- */

struct ami_alias {
    enum ami_family family;
    struct str version; /* as written: "latest", "v20260714" */
    bool latest;        /* what the parameter holds changes with time */
};

#define AMI_ALIAS_MAX 30

/* ERR_INVALID says what an alias looks like, or which families there are. Borrows from `text`. */
int ami_alias_parse(struct str text, struct ami_alias *out, struct err *err);

/* What an instance type must be for an image; as bits of a set. */
enum ami_variant {
    AMI_STANDARD = 1 << 0, /* no GPU and no accelerator */
    AMI_NVIDIA = 1 << 1,   /* a GPU */
    AMI_NEURON = 1 << 2,   /* an accelerator */
    AMI_WINDOWS = 1 << 3,  /* of the family's build */
    AMI_ANY = 1 << 4,      /* of the right architecture */
};

bool ami_cluster_minor(struct str version, int64_t *minor); /* 33 of "1.33"; false: not that form */

struct ami_parameter {
    struct str path;  /* of the SSM parameter that holds the image's id */
    uint8_t variants; /* the instance types that the image is for */
};
typedef LIST(struct ami_parameter) ami_parameters;

/* The parameters of an alias on a cluster of that version ("1.33"), in a fixed order. Some do not
 * exist for some versions: that is no error unless none does. ERR_INVALID: no such version, or one
 * that has no images of the family (AL2 from 1.33 on, Windows 2025 before 1.35). */
int ami_alias_parameters(struct arena *arena, const struct ami_alias *alias,
                         struct str cluster_version, ami_parameters *out, struct err *err);

/* --- other terms --- */

struct ami_filter { /* of DescribeImages; any of the values */
    struct str name;
    struct str_list values;
};
struct ami_query { /* one call: all filters */
    struct str_list owners;
    LIST(struct ami_filter) filters;
};
typedef LIST(struct ami_query) ami_queries;

/* The calls for the terms of a class. `ids` are what parameters held (of aliases and ssmParameter
 * terms); one that is no image's id is passed over. */
ami_queries ami_queries_of(struct arena *arena, const struct ec2nodeclass_spec *spec,
                           struct str_list ids);

/* --- images --- */

struct ami_image {                     /* as DescribeImages gives it */
    struct str id, name, architecture; /* "x86_64", "arm64"; others are passed over */
    int64_t created_us, deprecated_us; /* 0: never */
};

struct ami_source { /* an image that an alias's parameter named, and what it is for */
    struct str id;
    uint8_t variants;
};

/* status.amis: one image for each set of requirements. Images that no source names are for any type
 * of their architecture. Of those with equal requirements: not deprecated before deprecated, then
 * the newer, then the greater name. Sorted newest first, then by id. */
typedef LIST(struct resolved_ami) resolved_amis;
resolved_amis ami_resolve(struct arena *arena, enum ami_family family,
                          const struct ami_image *images, uint32_t image_count,
                          const struct ami_source *sources, uint32_t source_count, int64_t now_us);

/* --- an image for a type --- */

struct ami_choices { /* status.amis, made ready to be asked a thousand times */
    const struct resolved_ami *amis;
    const struct requirements *requirements; /* of each */
    uint32_t count;
};
int ami_choices_of(struct arena *arena, const struct resolved_ami *amis, uint32_t count,
                   struct ami_choices *out, struct err *err);
/* The first that suits a type with these labels; NULL: none does. */
const struct resolved_ami *ami_choose(const struct ami_choices *choices,
                                      const struct requirements *type);

/* Bottlerocket's version ("1.46.0", "latest") as the alias says, else a name term, else the name of
 * the image itself (absent: not known yet). STR_NONE: nobody says. */
struct str ami_bottlerocket_version(const struct ec2nodeclass_spec *spec, struct str image_name);
