/* api/builtin.h - what the kinds that Kubernetes brings have in common: references to other
 * objects, conditions of the older form, rules that many tables name, and places for problems. */
#pragma once

#include "api/common.h"
#include "api/place.h"

/* core/v1 ObjectReference. */
struct object_reference {
    struct str kind, namespace_, name, uid, api_version, resource_version, field_path;
};
extern const struct schema object_reference_schema;

/* Conditions as Nodes, Deployments, Jobs and claims have them: reason and message are optional, and
 * the times of the last heartbeat, probe or update are known but not kept, because they would make
 * every report of an unchanged node a new object. */
extern const struct schema plain_condition_schema;
extern const struct rule condition_list_rule; /* a list map by type */

extern const struct rule required_text_rule; /* at least one character */
extern const struct rule count_rule;         /* int32, not negative */
extern const struct rule subdomain_rule;     /* a DNS-1123 subdomain: the name of most objects */
extern const struct rule percent_rule;       /* an int-or-string that is a count or "NN%" */
extern const struct rule micro_time_rule;    /* a time with microseconds, always six digits */

/* For rules about changes: the value at a dotted path is what it was. Null is absent. */
bool json_kept(const json_val *self, const json_val *old, const char *path);

/* Add a problem at a dotted path below the object's root ("spec.template.metadata.labels"). It
 * points at the value or, if that is missing, at its nearest parent. */
void report_at(struct report *report, const json_val *root, const char *path, const char *fmt, ...)
    KV_PRINTF(4, 5);
void warn_at(struct report *report, const json_val *root, const char *path, const char *fmt, ...)
    KV_PRINTF(4, 5);

/* metadata.name is one DNS label (Namespaces, StatefulSets), not a subdomain with dots. */
void check_name_is_label(const struct object *object, const json_val *root, struct report *report);

/* A count or a percentage of `total`, rounded up or down; 0 when it is unset or negative. */
int64_t int_or_percent_of(const struct int_or_str *value, int64_t total, bool round_up);

bool json_mut_is(const json_mut *maybe_v, const char *word); /* that string */

/* Set object.key to `v` unless it is there. For `complete` functions. */
void json_default(struct json_build *b, json_mut *object, const char *key, json_mut *v);
