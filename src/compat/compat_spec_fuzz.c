/* Any text is a spec or refused with words. What the strict take the others take, without a warning.
 * A spec's rules match a node, a blurred one and their masked twins within bounds, and whoever says
 * no can say why; the mask changes no answer. */
#include "compat/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void describe(struct feature_draft *draft, bool blurred)
{
    static const struct str_pair gpu[] = { { STR("class"), STR("0302") },
                                           { STR("vendor"), STR("10de") } };
    static const struct str_map device = { gpu, KV_COUNT_OF(gpu) };
    feature_draft_flag(draft, STR("cpu.cpuid"), STR("AVX2"));
    feature_draft_attribute(draft, STR("cpu.cpuid"), STR("AVX10_VERSION"), STR("1"));
    feature_draft_attribute(draft, STR("kernel.version"), STR("full"),
                            STR("6.1.115-126.197.amzn2023.x86_64"));
    feature_draft_attribute(draft, STR("kernel.version"), STR("major"), STR("6"));
    feature_draft_attribute(draft, STR("f"), STR("value"), STR("aaaaaaaaaaaaaaaaaaaaaaaa!"));
    feature_draft_instance(draft, STR("pci.device"), &device);
    if (blurred) {
        feature_draft_unsure(draft, STR("cpu.cpuid"), STR("AMXTILE"));
        feature_draft_completeness(draft, STR("pci.device"), FEATURE_PARTIAL);
        draft->others_unknown = true;
    }
}

static void match_one(const struct compat_set *set, struct feature_sets *pool,
                      const struct feature_mask *mask, bool blurred)
{
    struct err err = { 0 };
    FEATURE_DRAFT whole_draft = { 0 }, seen_draft = { .maybe_mask = mask };
    AUTO_FEATURE_SET whole = NULL;
    AUTO_FEATURE_SET seen = NULL;
    AUTO_ARENA arena = { 0 };
    struct rules_options options = { .combine = RULES_ALL };
    describe(&whole_draft, blurred);
    describe(&seen_draft, blurred);
    int rc = feature_set_make(pool, &whole_draft, &whole, &err);
    KV_ASSERT(rc == 0);
    rc = feature_set_make(pool, &seen_draft, &seen, &err);
    KV_ASSERT(rc == 0);

    struct rules_outcome all = rules_match(set->rules, whole, options);
    KV_ASSERT(rules_match(set->rules, seen, options).match == all.match);
    struct rule_reasons why = rules_explain(&arena, set->rules, whole, options);
    KV_ASSERT((why.count == 0) == (all.match == MATCH_YES));
    for (uint32_t i = 0; i < why.count; i++) {
        AUTO_BUF words = { 0 };
        rule_reason_format(&why.items[i], &words);
        KV_ASSERT(words.len > 0);
        KV_ASSERT(why.items[i].match != MATCH_YES);
    }
    options.combine = RULES_ANY;
    KV_ASSERT(rules_count(set->rules) == 0 ||
              rules_match(set->rules, whole, options).match >= all.match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct err err = { 0 }, strict_err = { 0 };
    AUTO_COMPAT_SPEC spec = NULL;
    AUTO_COMPAT_SPEC strict = NULL;
    int strict_rc = compat_spec_read("s", text, (struct compat_spec_options){ .strict = true },
                                     &strict, &strict_err);
    if (compat_spec_read("s", text, (struct compat_spec_options){ 0 }, &spec, &err) < 0) {
        KV_ASSERT(strict_rc < 0);
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(err.text[0] != 0);
        return 0;
    }
    KV_ASSERT((strict_rc == 0) == (spec->warning_count == 0));
    AUTO(feature_sets) pool = feature_sets_new();
    FEATURE_MASK mask = { 0 };
    compat_spec_mention(spec, &mask);
    feature_mask_settle(&mask);
    for (uint32_t i = 0; i < spec->set_count; i++) {
        match_one(&spec->sets[i], pool, &mask, false);
        match_one(&spec->sets[i], pool, &mask, true);
    }
    return 0;
}
