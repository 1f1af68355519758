/* compat/feature_set_inner.h - between feature_draft.c, which lays out a set, and feature_set.c, which
 * keeps it. */
#pragma once

#include "compat/feature_set.h"

struct feature_shape {
    uint32_t feature_count; /* struct set_feature, at the front of the words */
    uint32_t list_words;    /* features and lists */
    uint32_t text_words;    /* behind them: the bytes of all texts, padded with zeros */
    bool others_unknown;
};

/* The pool's set with these words, counted once more; they are copied. */
const struct feature_set *feature_sets_intern(struct feature_sets *pool,
                                              const struct feature_shape *shape,
                                              const uint32_t *words);
