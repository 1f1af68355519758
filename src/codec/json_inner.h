/* codec/json_inner.h - what the files behind codec/json.h share, and nobody else needs. */
#pragma once

#include "codec/json.h"

extern const yyjson_alc json_alloc; /* never fails: running out of memory ends the process */

/* The keys of an object in byte order: what finding duplicates, comparing, canonical writing and
 * merging have in common. Sorting keeps each of them at n log n whatever the keys are; a hash
 * would have to fear chosen ones. */
#define JSON_KEYS_FEW 24 /* most objects; more take the heap */

struct json_keys {
    const json_val **items; /* equal keys keep their order in the object */
    size_t count;
    const json_val *few[JSON_KEYS_FEW];
};

/* `object` may be NULL or not an object: then there are no keys. Not to be moved once filled. */
void json_keys_init(struct json_keys *keys, const json_val *object);
void json_keys_done(struct json_keys *keys);
#define AUTO_JSON_KEYS __attribute__((cleanup(json_keys_done))) struct json_keys

const json_val *json_keys_find(const struct json_keys *keys,
                               struct str key); /* the value, or NULL */

static inline const json_val *json_value_of(const json_val *key)
{
    return yyjson_obj_iter_get_val((json_val *)key);
}

/* A number as its value, whichever way it was written: 1, 1.0 and 1e0 are one. */
struct json_number {
    bool is_integer, negative; /* an integer is the sign and the magnitude */
    uint64_t magnitude;
    double real;
};
struct json_number json_number_of(const json_val *v);
bool json_number_equal(struct json_number a, struct json_number b);
