/* Any text is profiles or refused with words, and what is refused changes nothing. What was read is
 * written so that another predictor writes the same again; reading it once more teaches nothing;
 * and every machine can be predicted from it. */
#include "compat/predict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void predict(struct predictor *predictor, struct feature_sets *pool, const char *type,
                    const char *image)
{
    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { 0 };
    AUTO_FEATURE_SET set = NULL;
    struct err err = { 0 };
    struct machine_kind machine = { .instance_type = str_of(type), .image = str_of(image) };
    predictor_draft(predictor, &machine, &arena, &draft);
    int rc = feature_set_make(pool, &draft, &set, &err);
    KV_ASSERT(rc == 0 || err.kind == ERR_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct err err = { 0 };
    AUTO(predictor) first = predictor_new((struct predictor_options){ 0 });
    AUTO(predictor) second = predictor_new((struct predictor_options){ 0 });
    if (predictor_load(first, "profiles", text, &err) < 0) {
        struct predictor_stats stats = predictor_stats(first);
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        KV_ASSERT(stats.pairs + stats.types + stats.images == 0);
        KV_ASSERT(stats.bytes == 0);
        return 0;
    }
    AUTO_BUF written = { 0 };
    AUTO_BUF again = { 0 };
    predictor_save(first, &written);
    int rc = predictor_load(second, "again", buf_str(&written), &err);
    KV_ASSERT(rc == 0);
    predictor_save(second, &again);
    KV_ASSERT(str_eq(buf_str(&written), buf_str(&again)));

    uint64_t generation = predictor_generation(second);
    rc = predictor_load(second, "once more", buf_str(&written), &err);
    KV_ASSERT(rc == 0);
    KV_ASSERT(predictor_generation(second) == generation);

    AUTO(feature_sets) pool = feature_sets_new();
    predict(first, pool, "m5.large", "ami-1");
    predict(first, pool, "m5.large", "ami-2");
    predict(first, pool, "p5.48xlarge", "ami-1");
    return 0;
}
