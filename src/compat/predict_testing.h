/* compat/predict_testing.h - asking predictions, for the tests of this room. */
#pragma once

#include "compat/compat_testing.h"
#include "compat/predict.h"

static inline struct machine_kind kind_of(const char *type, const char *architecture,
                                          const char *image)
{
    return (struct machine_kind){ .instance_type = str_of(type),
                                  .architecture = str_of(architecture),
                                  .os = STR("linux"),
                                  .image = str_of(image) };
}

static inline const struct feature_set *world_predict(struct world *w, struct predictor *predictor,
                                                      const struct machine_kind *machine)
{
    FEATURE_DRAFT draft = { 0 };
    predictor_draft(predictor, machine, &w->arena, &draft);
    return world_make(w, &draft);
}

static inline void world_learn(struct world *w, struct predictor *predictor,
                               const struct machine_kind *machine, const char *features)
{
    predictor_learn(predictor, machine, &world_object(w, "nfd", "node1", features)->spec.features);
}

/* Does a set answer a term so? "feature", "element: {op: Exists}". */
static inline enum match world_ask(struct world *w, const struct feature_set *set,
                                   const char *feature, const char *expressions)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "[{name: r, matchFeatures: [{feature: %s, matchExpressions: {%s}}]}]", feature,
             expressions);
    return world_match(world_rules(w, text.p), set);
}

/* 'y' the flag is there, 'n' it is not, '?' not known, by word. */
static inline char world_has(struct world *w, const struct feature_set *set, const char *feature,
                             const char *element)
{
    static const char letters[] = {
        [MATCH_NO] = 'n', [MATCH_ERROR] = 'e', [MATCH_UNKNOWN] = '?', [MATCH_YES] = 'y'
    };
    AUTO_BUF text = { 0 };
    buf_addf(&text, "%s: {op: Exists}", element);
    return letters[world_ask(w, set, feature, text.p)];
}

static inline enum match world_equals(struct world *w, const struct feature_set *set,
                                      const char *feature, const char *element, const char *value)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "%s: {op: In, value: ['%s']}", element, value);
    return world_ask(w, set, feature, text.p);
}
