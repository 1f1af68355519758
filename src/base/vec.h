/* base/vec.h - growable arrays of any type.
 *
 *     VEC(pod_ix) ready = { 0 };
 *     vec_push(&ready, ix);
 *     vec_each(&ready, pod_ix, it) use(*it);
 *     vec_done(&ready);
 *
 * A vec is an open struct of items, count and cap: hot loops read `items` directly. Pointers into
 * it die at the next push.
 */
#pragma once

#include "base/kv.h"

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, cap;                                                                         \
    }

#define vec_reserve(v, n)                                                                          \
    do {                                                                                           \
        size_t vec_need_ = (n);                                                                    \
        if (vec_need_ > (v)->cap) {                                                                \
            size_t vec_cap_ = (v)->cap ? (v)->cap * 2 : 8;                                         \
            (v)->cap = vec_cap_ < vec_need_ ? vec_need_ : vec_cap_;                                \
            (v)->items = kv_realloc((v)->items, (v)->cap, sizeof *(v)->items);                     \
        }                                                                                          \
    } while (0)

#define vec_push(v, ...)                                                                           \
    do {                                                                                           \
        vec_reserve(v, (v)->count + 1);                                                            \
        (v)->items[(v)->count++] = (__VA_ARGS__);                                                  \
    } while (0)

#define vec_pop(v) ((v)->items[--(v)->count])
#define vec_last(v) ((v)->items[(v)->count - 1])
#define vec_clear(v) ((void)((v)->count = 0))

#define vec_done(v)                                                                                \
    do {                                                                                           \
        free((v)->items);                                                                          \
        (v)->items = NULL;                                                                         \
        (v)->count = (v)->cap = 0;                                                                 \
    } while (0)

#define vec_each(v, type, it)                                                                      \
    for (__typeof__(type) *it = (v)->items, *it##_end_ = it ? it + (v)->count : it;                \
         it != it##_end_; it++)
