/* What to make of the answers: images become status.amis, and instance types get their image. */
#include "bootstrap/ami.h"

#include "bootstrap/boot.h"

#define KEY_GPU_COUNT "karpenter.k8s.aws/instance-gpu-count"
#define KEY_ACCELERATOR_COUNT "karpenter.k8s.aws/instance-accelerator-count"

/* --- requirements of an image --- */

static struct str arch_of(struct str architecture)
{
    if (str_eqz(architecture, "x86_64"))
        return STR("amd64");
    return str_eqz(architecture, "arm64") ? STR("arm64") : STR_NONE;
}

static struct expression label_in(struct arena *arena, struct str key, struct str value)
{
    struct str *values = arena_array(arena, struct str, 1);
    values[0] = value;
    return (struct expression){ .key = key, .op = OP_IN, .values = { values, 1 } };
}

static struct expression label_is(struct str key, enum requirement_op op)
{
    return (struct expression){ .key = key, .op = (uint8_t)op };
}

/* In the order of status.amis: short keys first, then by key. */
static void requirements_of(struct arena *arena, struct str arch, enum ami_variant variant,
                            const struct family *family, struct resolved_ami *out)
{
    struct expression *items = arena_array(arena, struct expression, 3);
    uint32_t count = 0;

    if (variant == AMI_WINDOWS)
        items[count++] = label_in(arena, STR(LABEL_OS), STR("windows"));
    items[count++] = label_in(arena, STR(LABEL_ARCH), arch);
    if (variant == AMI_WINDOWS)
        items[count++] = label_in(arena, STR(LABEL_WINDOWS_BUILD), str_of(family->windows_build));
    if (variant == AMI_NVIDIA)
        items[count++] = label_is(STR(KEY_GPU_COUNT), OP_EXISTS);
    if (variant == AMI_STANDARD)
        items[count++] = label_is(STR(KEY_GPU_COUNT), OP_DOES_NOT_EXIST);
    if (variant == AMI_STANDARD)
        items[count++] = label_is(STR(KEY_ACCELERATOR_COUNT), OP_DOES_NOT_EXIST);
    if (variant == AMI_NEURON)
        items[count++] = label_is(STR(KEY_ACCELERATOR_COUNT), OP_EXISTS);
    out->requirements.items = items;
    out->requirements.count = count;
}

/* --- one image for each set of requirements --- */

/* Requirements follow from architecture and variant: equal ones are equal pairs. */
struct slot {
    const struct ami_image *image; /* NULL: none yet */
    bool deprecated;
};
enum { ARCHES = 2, VARIANTS = 5 };

static bool is_better(const struct ami_image *a, bool a_deprecated, const struct slot *b)
{
    if (!b->image)
        return true;
    if (a_deprecated != b->deprecated)
        return b->deprecated;
    if (a->created_us != b->image->created_us)
        return a->created_us > b->image->created_us;
    int order = str_cmp(a->name, b->image->name);
    return order ? order > 0 : str_cmp(a->id, b->image->id) < 0;
}

static uint8_t variants_of(struct str id, const struct ami_source *sources, uint32_t count)
{
    uint8_t variants = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (str_eq(id, sources[i].id))
            variants |= sources[i].variants;
    }
    return variants ? variants : AMI_ANY;
}

struct sortable {
    const struct ami_image *image;
    struct resolved_ami ami;
    int variant;
};

static int newest_first(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    if (x->image->created_us != y->image->created_us)
        return x->image->created_us > y->image->created_us ? -1 : 1;
    int order = str_cmp(x->image->id, y->image->id);
    return order ? order : x->variant - y->variant; /* one image for two sets */
}

resolved_amis ami_resolve(struct arena *arena, enum ami_family family,
                          const struct ami_image *images, uint32_t image_count,
                          const struct ami_source *sources, uint32_t source_count, int64_t now_us)
{
    struct slot slots[ARCHES][VARIANTS] = { 0 };
    struct sortable found[ARCHES * VARIANTS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < image_count; i++) {
        const struct ami_image *image = &images[i];
        struct str arch = arch_of(image->architecture);
        uint8_t variants = variants_of(image->id, sources, source_count);
        bool deprecated = image->deprecated_us && image->deprecated_us <= now_us;
        for (int v = 0; v < VARIANTS && arch.p; v++) {
            struct slot *slot = &slots[str_eqz(arch, "arm64")][v];
            if ((variants & (1 << v)) && is_better(image, deprecated, slot))
                *slot = (struct slot){ image, deprecated };
        }
    }
    for (int a = 0; a < ARCHES; a++) {
        for (int v = 0; v < VARIANTS; v++) {
            const struct slot *slot = &slots[a][v];
            if (!slot->image)
                continue;
            struct sortable *f = &found[count++];
            *f = (struct sortable){ .image = slot->image, .variant = v };
            f->ami.id = arena_str(arena, slot->image->id);
            f->ami.name = arena_str(arena, slot->image->name);
            f->ami.deprecated = slot->deprecated;
            requirements_of(arena, a ? STR("arm64") : STR("amd64"), (enum ami_variant)(1 << v),
                            family_of(family), &f->ami);
        }
    }
    qsort(found, count, sizeof *found, newest_first);
    struct resolved_ami *amis = arena_array(arena, struct resolved_ami, count);
    for (uint32_t i = 0; i < count; i++)
        amis[i] = found[i].ami;
    return (resolved_amis){ amis, count };
}

/* --- an image for a type --- */

int ami_choices_of(struct arena *arena, const struct resolved_ami *amis, uint32_t count,
                   struct ami_choices *out, struct err *err)
{
    struct requirements *sets = arena_array(arena, struct requirements, count);
    for (uint32_t i = 0; i < count; i++) {
        if (requirements_from_expressions(arena, amis[i].requirements.items,
                                          amis[i].requirements.count, &sets[i], err) < 0)
            return err_wrap(err, "image %.*s", STR_ARG(amis[i].id));
    }
    *out = (struct ami_choices){ amis, sets, count };
    return 0;
}

const struct resolved_ami *ami_choose(const struct ami_choices *choices,
                                      const struct requirements *type)
{
    struct str_list well_known = label_rules_for(STR(AWS_GROUP))->well_known;
    for (uint32_t i = 0; i < choices->count; i++) {
        if (requirements_compatible(type, &choices->requirements[i], well_known, NULL))
            return &choices->amis[i];
    }
    return NULL;
}
