/* node/configs_testing.h - configurations of a test's pod, and looking things up in them. */
#pragma once

#include "node/configs_inner.h"
#include "node/volumes_testing.h"

static inline struct container_config_input input_of(struct place *p, const struct node_pod *pod,
                                                     const char *container)
{
    return (struct container_config_input){
        .pod = pod,
        .container = node_pod_container(pod, str_of(container)),
        .facts = &p->facts,
        .objects = &p->objects,
        .image_ref = STR("sha256:1234"),
    };
}

/* "(none)": no such key; the last of several. */
static inline struct str entry_of(Cri__Entry **items, size_t count, const char *key)
{
    struct str found = STR("(none)");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(items[i]->key, key) == 0)
            found = str_of(items[i]->value);
    }
    return found;
}

static inline const Cri__Mount *mount_at(const Cri__ContainerConfig *config, const char *path)
{
    for (size_t i = 0; i < config->n_mounts; i++) {
        if (strcmp(config->mounts[i]->container_path, path) == 0)
            return config->mounts[i];
    }
    return NULL;
}

/* "a b c" */
static inline struct str words_of(struct place *p, char **items, size_t count)
{
    AUTO_BUF out = { 0 };
    for (size_t i = 0; i < count; i++)
        buf_addf(&out, "%s%s", i ? " " : "", items[i]);
    return arena_str(&p->arena, buf_str(&out));
}
