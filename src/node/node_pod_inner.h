/* node/node_pod_inner.h - the tables that pods are decoded by, and what is done after them; for
 * node_pod*.c only.
 *
 * Tables (api/schema.h) fill the structs of node_pod.h. Where JSON nests more than the struct does
 * (valueFrom.fieldRef.fieldPath), the nested object's table is over the same struct: FLAT. What a
 * table cannot say (which of several members is there, defaults that depend on others) is settled
 * afterwards, with the JSON at hand.
 */
#pragma once

#include "node/node_pod.h"

#define ANNOTATION_CONFIG_SEEN "kubernetes.io/config.seen"

/* A nested object whose fields belong to the struct that holds it. */
#define FLAT(name_, sub_)                                                                          \
    {                                                                                              \
        .type = FIELD_STRUCT, .name = name_, .name_len = sizeof(name_) - 1, .sub = &(sub_)         \
    }

/* Where the settling of a pod is: the value, its place for messages, and the pod's memory. */
struct settling {
    struct arena *arena;
    struct path path;
    const json_val *json;
    struct err *err;
};

/* The member of that name; `up` must outlive it. */
static inline struct settling settling_in(const struct settling *up, const char *name)
{
    return (struct settling){ .arena = up->arena,
                              .path = { .up = &up->path, .name = str_of(name) },
                              .json = json_get(up->json, str_of(name)),
                              .err = up->err };
}
static inline struct settling settling_at(const struct settling *up, uint32_t ix,
                                          const json_val *item)
{
    return (struct settling){
        .arena = up->arena, .path = { .up = &up->path, .index = ix }, .json = item, .err = up->err
    };
}
/* ERR_INVALID: "spec.containers[0].ports: what". */
int settling_refuse(const struct settling *at, const char *fmt, ...) KV_PRINTF(2, 3);
/* Decode this value by a table. */
int settling_decode(const struct settling *at, const struct schema *schema, void *out);

/* The first of the names (NULL-terminated) that is a member and not null: 1 + its index. 0: none. */
uint8_t json_which(const json_val *object, const char *const *names);

/* Decode and settle pod->doc, which is all that is set. */
int node_pod_fill(struct node_pod *pod, struct err *err);

extern const struct schema node_container_schema;
int settle_container(const struct settling *at, const struct node_pod *pod,
                     struct node_container *container);

extern const struct schema node_probe_schema, node_handler_schema;
int settle_probe(const struct settling *at, struct probe *probe);
int settle_handler(const struct settling *at, struct handler *handler);

extern const struct schema node_volume_schema;
int settle_volume(const struct settling *at, struct node_volume *volume);

extern const struct schema node_security_schema, node_pod_security_schema;
int settle_pod_security(const struct settling *at, struct node_pod *pod);
/* What the container does not say, the pod says. */
void security_merge(struct security_context *own, const struct security_context *pod);

/* A quantity may be written as a number: `text` is what it would be as a string. Absent stays absent,
 * and then `maybe_out` is left alone. */
int settle_quantity(const struct settling *at, struct str *text, struct quantity *maybe_out);
