/* The image families by id and by name. A new one is a file and a line here. */
#include "bootstrap/boot.h"
#include "bootstrap/families.h"

static const struct family *const families[] = {
    &family_al2,         &family_al2023,      &family_bottlerocket, &family_custom,
    &family_windows2019, &family_windows2022, &family_windows2025,
};

const struct family *family_of(enum ami_family id)
{
    for (size_t i = 0; i < KV_COUNT_OF(families); i++)
        if (families[i]->id == id)
            return families[i];
    return &family_al2;
}

const struct family *family_by_name(struct str name)
{
    for (size_t i = 0; i < KV_COUNT_OF(families); i++)
        if (str_eq(name, str_of(families[i]->name)))
            return families[i];
    return NULL;
}
