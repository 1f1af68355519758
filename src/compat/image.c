/* The facts of images, and judging a node by them.
 *
 * The platform is asked first: an image that is not built for the node's architecture needs no features to be
 * refused. Of the platforms that fit the kubelet pulls one, and the spec of that one counts, or else the image's.
 * If the node's platform is not known, any of those that may fit can be the one: it is a no only if each of
 * them says no, and at best unknown.
 */
#include "compat/image.h"

#define PLATFORMS_SHOWN_MAX 6

/* --- facts --- */

const struct image_facts *image_facts_ref(const struct image_facts *facts)
{
    rc_ref(&facts->rc);
    return facts;
}

void image_facts_unref(const struct image_facts *shared)
{
    struct image_facts *facts = (struct image_facts *)shared;
    if (!facts || !rc_unref(&facts->rc))
        return;
    compat_spec_unref(facts->spec.maybe_spec);
    for (uint32_t i = 0; i < facts->platform_count; i++)
        compat_spec_unref(facts->platforms[i].spec.maybe_spec);
    free(facts);
}

/* Words that nearly all images have are not copied. */
static const struct str *common_word(struct str text)
{
    static const struct str words[] = {
        STR(""),
        STR("linux"),
        STR("amd64"),
        STR("arm64"),
        STR("v8"),
        STR("windows"),
        STR(MEDIA_OCI_INDEX),
        STR(MEDIA_OCI_MANIFEST),
        STR(MEDIA_DOCKER_LIST),
        STR(MEDIA_DOCKER_MANIFEST),
    };
    for (size_t i = 0; i < KV_COUNT_OF(words); i++) {
        if (str_eq(text, words[i]))
            return &words[i];
    }
    return NULL;
}

/* Texts that are counted, and then, when there is a place for so many bytes, copied there. */
struct packer {
    char *maybe_at;
    size_t used;
};

static struct str pack_text(struct packer *p, struct str text)
{
    const struct str *word = common_word(text);
    if (word)
        return *word;
    char *at = p->maybe_at ? p->maybe_at + p->used : NULL;
    if (at)
        memcpy(at, text.p, text.len); /* and the block is zero behind it */
    p->used += text.len + 1;
    return (struct str){ at, text.len };
}

static struct image_spec pack_spec(struct packer *p, const struct image_spec *spec)
{
    return (struct image_spec){ .maybe_spec = spec->maybe_spec,
                                .artifact = pack_text(p, spec->artifact),
                                .trouble = pack_text(p, spec->trouble) };
}

static void pack(struct packer *p, const struct image_facts *from, struct image_facts *to,
                 struct image_platform *platforms)
{
    to->digest = pack_text(p, from->digest);
    to->media_type = pack_text(p, from->media_type);
    to->spec = pack_spec(p, &from->spec);
    for (uint32_t i = 0; i < from->platform_count; i++) {
        const struct image_platform *one = &from->platforms[i];
        bool only = str_eq(one->digest, from->digest); /* the image is its only platform */
        platforms[i] = (struct image_platform){
            .platform = { .os = pack_text(p, one->platform.os),
                          .architecture = pack_text(p, one->platform.architecture),
                          .variant = pack_text(p, one->platform.variant) },
            .digest = only ? to->digest : pack_text(p, one->digest),
            .spec = pack_spec(p, &one->spec),
        };
    }
}

static void ref_specs(const struct image_facts *facts)
{
    if (facts->spec.maybe_spec)
        compat_spec_ref(facts->spec.maybe_spec);
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        if (facts->platforms[i].spec.maybe_spec)
            compat_spec_ref(facts->platforms[i].spec.maybe_spec);
    }
}

const struct image_facts *image_facts_copy(const struct image_facts *from)
{
    struct image_platform scratch[IMAGE_PLATFORMS_MAX];
    struct packer texts = { 0 };
    KV_ASSERT(from->platform_count <= IMAGE_PLATFORMS_MAX);
    pack(&texts, from, &(struct image_facts){ 0 }, scratch);

    size_t list_bytes = from->platform_count * sizeof(struct image_platform);
    size_t bytes = sizeof(struct image_facts) + list_bytes + texts.used;
    struct image_facts *facts = kv_calloc(1, bytes);
    struct image_platform *platforms = (struct image_platform *)(facts + 1);
    texts = (struct packer){ .maybe_at = (char *)platforms + list_bytes };
    rc_init(&facts->rc);
    facts->platforms = platforms;
    facts->platform_count = from->platform_count;
    facts->way = from->way;
    facts->bytes = (uint32_t)bytes;
    pack(&texts, from, facts, platforms);
    ref_specs(facts);
    return facts;
}

const struct image_facts *image_facts_make(struct str digest, const struct platform *platforms,
                                           uint32_t platform_count,
                                           const struct compat_spec *maybe_spec)
{
    KV_ASSERT(platform_count <= IMAGE_PLATFORMS_MAX);
    AUTO_ARENA arena = { 0 };
    struct image_platform *list = arena_array(&arena, struct image_platform, platform_count);
    for (uint32_t i = 0; i < platform_count; i++)
        list[i].platform = platforms[i];
    struct image_facts facts = {
        .digest = digest,
        .media_type = platform_count > 1 ? STR(MEDIA_OCI_INDEX) : STR(MEDIA_OCI_MANIFEST),
        .spec.maybe_spec = maybe_spec,
        .platforms = list,
        .platform_count = platform_count,
    };
    return image_facts_copy(&facts);
}

static bool sets_equal(const struct compat_spec *a, const struct compat_spec *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->set_count != b->set_count)
        return false;
    for (uint32_t i = 0; i < a->set_count; i++) {
        const struct compat_set *x = &a->sets[i], *y = &b->sets[i];
        if (!str_eq(x->tag, y->tag) || !str_eq(x->description, y->description) ||
            x->weight != y->weight || !str_eq(x->rules_json, y->rules_json))
            return false;
    }
    return true;
}

static bool specs_equal(const struct image_spec *a, const struct image_spec *b)
{
    return str_eq(a->artifact, b->artifact) && str_eq(a->trouble, b->trouble) &&
           sets_equal(a->maybe_spec, b->maybe_spec);
}

static bool platforms_equal(const struct image_platform *a, const struct image_platform *b)
{
    return str_eq(a->platform.os, b->platform.os) &&
           str_eq(a->platform.architecture, b->platform.architecture) &&
           str_eq(a->platform.variant, b->platform.variant) && str_eq(a->digest, b->digest) &&
           specs_equal(&a->spec, &b->spec);
}

bool image_facts_equal(const struct image_facts *a, const struct image_facts *b)
{
    if (!str_eq(a->digest, b->digest) || !str_eq(a->media_type, b->media_type) ||
        a->platform_count != b->platform_count || !specs_equal(&a->spec, &b->spec))
        return false;
    for (uint32_t i = 0; i < a->platform_count; i++) {
        if (!platforms_equal(&a->platforms[i], &b->platforms[i]))
            return false;
    }
    return true;
}

void image_facts_mention(const struct image_facts *facts, struct feature_mask *mask)
{
    if (facts->spec.maybe_spec)
        compat_spec_mention(facts->spec.maybe_spec, mask);
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        if (facts->platforms[i].spec.maybe_spec)
            compat_spec_mention(facts->platforms[i].spec.maybe_spec, mask);
    }
}

/* --- platforms --- */

/* What is not told of the platform excludes nothing; what is not known of the node leaves it open. */
static enum match word_fits(struct str platform, struct str node)
{
    if (platform.len == 0 || str_eq(platform, node))
        return MATCH_YES;
    return node.len == 0 ? MATCH_UNKNOWN : MATCH_NO;
}

static enum match platform_fits(const struct platform *platform, const struct image_node *node)
{
    enum match os = word_fits(platform->os, node->os);
    enum match architecture = word_fits(platform->architecture, node->architecture);
    return os < architecture ? os : architecture;
}

/* The variant that every machine of an architecture has. */
static bool variant_is_plain(const struct platform *p)
{
    return p->variant.len == 0 ||
           (str_eq(p->architecture, STR("arm64")) && str_eq(p->variant, STR("v8"))) ||
           (str_eq(p->architecture, STR("amd64")) && str_eq(p->variant, STR("v1")));
}

/* The platform that a runtime takes: the plain one, or else the first of the index. NULL: none fits for sure. */
static const struct image_platform *platform_of(const struct image_facts *facts,
                                                const struct image_node *node)
{
    const struct image_platform *found = NULL;
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        const struct image_platform *p = &facts->platforms[i];
        if (platform_fits(&p->platform, node) != MATCH_YES)
            continue;
        if (variant_is_plain(&p->platform))
            return p;
        if (!found)
            found = p;
    }
    return found;
}

static const struct image_spec *spec_on(const struct image_facts *facts,
                                        const struct image_platform *platform)
{
    bool own = platform->spec.maybe_spec || platform->spec.trouble.len > 0;
    return own ? &platform->spec : &facts->spec;
}

/* --- judging --- */

/* Of a node that has published nothing only sets without any rules can be answered. */
static struct compat_outcome match_unpublished(const struct compat_spec *spec,
                                               const struct compat_options *options)
{
    struct compat_outcome out = { .match = MATCH_YES, .set_ix = UINT32_MAX };
    for (uint32_t i = 0; i < spec->set_count; i++) {
        const struct compat_set *set = &spec->sets[i];
        if (!compat_set_is_asked(set, options))
            continue;
        enum match one = rules_count(set->rules) == 0 ? MATCH_YES : MATCH_NO;
        bool decides = options->sets == SETS_ALL ? one < out.match : one > out.match;
        if (out.set_ix == UINT32_MAX || decides) {
            out.match = one;
            out.set_ix = i;
        }
        if (one == MATCH_YES && set->weight > out.weight_best)
            out.weight_best = set->weight;
    }
    return out;
}

static struct image_verdict judge_spec(const struct image_spec *spec, const struct image_node *node,
                                       const struct compat_options *options)
{
    struct image_verdict v = { .match = MATCH_YES, .outcome = { .set_ix = UINT32_MAX } };
    if (spec->trouble.len > 0) {
        v.match = v.outcome.match = MATCH_ERROR;
        v.spec = spec;
    } else if (spec->maybe_spec) {
        v.outcome = node->features ? compat_spec_match(spec->maybe_spec, node->features, options)
                                   : match_unpublished(spec->maybe_spec, options);
        v.match = v.outcome.match;
        v.spec = spec;
    }
    return v;
}

/* No platform fits for sure. */
static struct image_verdict judge_open(const struct image_facts *facts,
                                       const struct image_node *node,
                                       const struct compat_options *options)
{
    struct image_verdict best = { .match = MATCH_NO,
                                  .platform = true,
                                  .outcome = { .set_ix = UINT32_MAX } };
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        const struct image_platform *p = &facts->platforms[i];
        if (platform_fits(&p->platform, node) == MATCH_NO)
            continue;
        struct image_verdict one = judge_spec(spec_on(facts, p), node, options);
        if (one.match > MATCH_UNKNOWN) {
            one.match = MATCH_UNKNOWN;
            one.platform = true;
        }
        if (best.match < one.match || (best.platform && best.match == MATCH_NO))
            best = one;
    }
    return best;
}

struct image_verdict image_judge(const struct image_facts *facts, const struct image_node *node,
                                 const struct compat_options *options)
{
    if (facts->platform_count == 0)
        return judge_spec(&facts->spec, node, options);
    const struct image_platform *platform = platform_of(facts, node);
    return platform ? judge_spec(spec_on(facts, platform), node, options)
                    : judge_open(facts, node, options);
}

/* --- explaining --- */

static void add_platform(const struct platform *p, struct buf *out)
{
    name_format(p->os.len ? p->os : STR("any"), out);
    buf_addc(out, '/');
    name_format(p->architecture.len ? p->architecture : STR("any"), out);
    if (!variant_is_plain(p)) {
        buf_addc(out, '/');
        name_format(p->variant, out);
    }
}

static void explain_platform(const struct image_facts *facts, const struct image_node *node,
                             enum match match, struct buf *out)
{
    uint32_t count = facts->platform_count;
    uint32_t shown = count <= PLATFORMS_SHOWN_MAX ? count : PLATFORMS_SHOWN_MAX;
    buf_addz(out, "is built for ");
    for (uint32_t i = 0; i < shown; i++) {
        bool last = i + 1 == shown && shown == count;
        buf_addz(out, i == 0 ? "" : last ? " and " : ", ");
        add_platform(&facts->platforms[i].platform, out);
    }
    if (shown < count)
        buf_addf(out, " and %u more", count - shown);
    buf_addz(out, " only, the node is ");
    if (node->os.len == 0 && node->architecture.len == 0) {
        buf_addz(out, "of a platform that is not known");
        return;
    }
    name_format(node->os.len ? node->os : STR("?"), out);
    buf_addc(out, '/');
    name_format(node->architecture.len ? node->architecture : STR("?"), out);
    if (match == MATCH_UNKNOWN)
        buf_addz(out, ", as far as is known");
}

static uint32_t sets_asked(const struct compat_spec *spec, const struct compat_options *options)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->set_count; i++)
        count += compat_set_is_asked(&spec->sets[i], options);
    return count;
}

/* How rules and sets were combined, where it makes a difference. */
static void add_combination(const struct compat_spec *spec, const struct compat_set *set,
                            const struct compat_options *options, struct buf *out)
{
    uint32_t sets = sets_asked(spec, options), rules = rules_count(set->rules);
    if (sets < 2 && rules < 2)
        return;
    buf_addz(out, " (");
    if (rules >= 2)
        buf_addf(out,
                 options->rules.combine == RULES_ANY ? "one of %u rules must match"
                                                     : "all %u rules must match",
                 rules);
    buf_addz(out, rules >= 2 && sets >= 2 ? "; " : "");
    if (sets >= 2)
        buf_addf(out,
                 options->sets == SETS_ALL ? "all %u sets must match" : "one of %u sets must match",
                 sets);
    buf_addc(out, ')');
}

static void explain_set(const struct compat_spec *spec, uint32_t set_ix,
                        const struct feature_set *features, const struct compat_options *options,
                        struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    const struct compat_set *set = &spec->sets[set_ix];
    if (set->tag.len > 0)
        buf_addf(out, "set %s: ", STR_SHOWN(set->tag));
    else
        buf_addf(out, "set %u: ", set_ix + 1);

    uint32_t decided = rules_match(set->rules, features, options->rules).rule_ix;
    struct rule_reasons reasons = rules_explain(&arena, set->rules, features, options->rules);
    const struct rule_reason *reason = reasons.items;
    for (uint32_t i = 0; i < reasons.count; i++) {
        if (reasons.items[i].rule_ix == decided) {
            reason = &reasons.items[i];
            break;
        }
    }
    if (reasons.count > 0)
        rule_reason_format(reason, out);
    add_combination(spec, set, options, out);
}

void image_explain(const struct image_facts *facts, const struct image_node *node,
                   const struct compat_options *options, struct buf *out)
{
    struct image_verdict v = image_judge(facts, node, options);
    if (v.match == MATCH_YES)
        return;
    if (v.platform) {
        explain_platform(facts, node, v.match, out);
    } else if (v.spec->trouble.len > 0) {
        buf_addz(out, "has a compatibility spec that cannot be used: ");
        message_format(v.spec->trouble, out);
    } else if (!node->features) {
        buf_addz(out,
                 "asks for features of the node, and no features have been published for it yet");
    } else {
        explain_set(v.spec->maybe_spec, v.outcome.set_ix, node->features, options, out);
    }
}
