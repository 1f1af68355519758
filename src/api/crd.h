/* api/crd.h - what follows from the tables of our own kinds: their CustomResourceDefinitions, and a
 * reference of their fields for people. */
#pragma once

#include "api/object.h"

/* The apiextensions.k8s.io/v1 CustomResourceDefinition of a kind that has `crd`. */
json_mut *crd_build(struct json_build *b, const struct kind *kind);

/* Every field in Markdown: path, type, default, rules, meaning. */
void crd_reference(const struct kind *kind, struct buf *out);
