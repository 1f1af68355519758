/* The table of NodeOverlay, and what is wrong with an overlay whatever the instance types are. The
 * latter is told offline only: an API server takes such an overlay, and its status says the rest.
 */
#include "api/nodeoverlay.h"

#include "api/requirements.h"
#include "api/resources.h"
#include "codec/regex.h"

#include <inttypes.h>

#define PATTERN_PRICE "^\\d+(\\.\\d+)?$"
#define PATTERN_PRICE_ADJUSTMENT                                                                   \
    "^(([+-]{1}(\\d*\\.?\\d+))|(\\+{1}\\d*\\.?\\d+%)|(^(-\\d{1,2}(\\.\\d+)?%)$)|(-100%))$"

/* What the scheduler computes with comes from the cloud and from nothing else. */
static const char *const fixed_resources[] = { "cpu", "memory", "ephemeral-storage", "pods" };

static bool capacity_is_custom(const json_val *self, const json_val *old KV_UNUSED)
{
    for (size_t i = 0; i < KV_COUNT_OF(fixed_resources); i++) {
        if (json_member(self, fixed_resources[i]))
            return false;
    }
    return true;
}

static bool one_price(const json_val *self, const json_val *old KV_UNUSED)
{
    return !json_member(self, "price") || !json_member(self, "priceAdjustment");
}

/* Can a price be as large as this decimal? What is beyond the last decimal is rounded half up. */
static bool price_is_held(struct str decimal)
{
    struct str rest = decimal, whole = str_take_digits(&rest),
               fraction = str_sub(rest, 1, rest.len);
    size_t digits = whole.len + OVERLAY_PRICE_DECIMALS;
    int64_t n = 0;

    for (size_t i = 0; i < digits; i++) {
        char c = i < whole.len                  ? whole.p[i]
                 : i - whole.len < fraction.len ? fraction.p[i - whole.len]
                                                : '0';
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, c - '0', &n))
            return false;
    }
    bool up = fraction.len > OVERLAY_PRICE_DECIMALS && fraction.p[OVERLAY_PRICE_DECIMALS] >= '5';
    return n < INT64_MAX || !up;
}

static const char *price_words(struct str text)
{
    if (!regex_match_static(PATTERN_PRICE, text))
        return "is not a price, expected a decimal such as 0.25";
    if (!price_is_held(text))
        return "is too large, expected at most 922337 dollars an hour";
    return NULL;
}

/* Of a percentage and of what is taken off, no amount is too large: prices stop at both ends. */
static const char *adjustment_words(struct str text)
{
    if (!regex_match_static(PATTERN_PRICE_ADJUSTMENT, text))
        return "is not a change of price, expected a sign and a decimal or a percentage such as "
               "+0.05 or -10%, no less than -100%";
    if (text.p[0] == '+' && !str_ends(text, STR("%")) && !price_is_held(str_sub(text, 1, text.len)))
        return "is more than any price, expected at most 922337 dollars an hour";
    return NULL;
}

static const struct rule quantity_rule = { .pattern = PATTERN_QUANTITY };
static const struct rule resource_name_rule = { .check = label_key_problem }; /* as labels are */

#define T struct nodeoverlay_spec
static const struct field spec_fields[] = {
    FIELD(RESOURCES, capacity, "capacity",
          "Resources to add to the instance types, smart devices for example. cpu, memory, "
          "ephemeral-storage and pods cannot be changed.",
          RULE(.item = &quantity_rule, .key = &resource_name_rule,
               CEL_RULES({ "!('cpu' in self) && !('memory' in self) && "
                           "!('ephemeral-storage' in self) && !('pods' in self)",
                           "cpu, memory, ephemeral-storage and pods cannot be changed",
                           capacity_is_custom }))),
    FIELD(STR, price, "price", "The price per hour, in place of the provider's.",
          RULE(.pattern = PATTERN_PRICE, .check = price_words)),
    FIELD(STR, price_adjustment, "priceAdjustment",
          "A change of the provider's price: +0.05 or -0.05 adds, +10% or -10% multiplies. A price "
          "never falls below 0.",
          RULE(.pattern = PATTERN_PRICE_ADJUSTMENT, .check = adjustment_words)),
    FIELD(LIST, requirements, "requirements",
          "Which instance types and offerings the overlay applies to; all of them must hold.",
          .flags = FIELD_REQUIRED, .sub = &overlay_requirement_schema,
          RULE(.items_max = REQUIREMENTS_MAX)),
    FIELD(MAYBE_INT, weight, "weight",
          "Where overlays disagree the one with the higher weight counts. Not set counts as 0.",
          RULE(.format = "int32", BETWEEN(1, 10000))),
};
#undef T
static const struct schema spec_schema =
    SCHEMA("NodeOverlaySpec", struct nodeoverlay_spec, spec_fields,
           .doc = "What is corrected, and for which instance types.",
           CEL_RULES({ "!has(self.price) || !has(self.priceAdjustment)",
                       "price and priceAdjustment exclude each other", one_price }));

#define T struct nodeoverlay_status
static const struct field status_fields[] = {
    CONDITIONS_FIELD(status_condition_schema),
};
#undef T
static const struct schema status_schema =
    SCHEMA("NodeOverlayStatus", struct nodeoverlay_status, status_fields,
           .doc = "Whether the overlay is in use.");

#define T struct nodeoverlay
static const struct field nodeoverlay_fields[] = {
    OBJECT_FIELDS(struct nodeoverlay),
    FIELD(STRUCT, spec, "spec", "What is corrected, and for which instance types.",
          .flags = FIELD_REQUIRED, .sub = &spec_schema),
    FIELD(STRUCT, status, "status", "Whether the overlay is in use.", .sub = &status_schema),
};
#undef T
static const struct schema nodeoverlay_schema =
    SCHEMA("NodeOverlay", struct nodeoverlay, nodeoverlay_fields,
           .doc = "A NodeOverlay corrects what the provider says of instance types: their prices, "
                  "and resources it does not know of.");

static const struct crd_column columns[] = {
    { "Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status",
      "Whether the overlay is in use.", 0 },
    { "Age", "date", ".metadata.creationTimestamp", "How old the overlay is.", 0 },
    { "Weight", "integer", ".spec.weight", "Heavier overlays win.", 1 },
};

static const struct crd nodeoverlay_crd = {
    .short_names = (const char *const[]){ "overlays", NULL },
    .categories = (const char *const[]){ "karpenter", NULL },
    .columns = columns,
    .column_count = KV_COUNT_OF(columns),
};

/* --- beyond the schema --- */

static void capacity_check(const struct resources *capacity, const struct place *list,
                           struct report *report)
{
    json_each_member(list->found ? list->at : NULL, name, value) {
        struct place here = place_key(list, name, value);
        struct quantity amount = resources_get(capacity, json_key(name));
        if (quantity_cmp(amount, quantity_of(0)) < 0)
            place_error(report, &here, "is negative, expected 0 or more");
        else if (amount.units > OVERLAY_CAPACITY_MAX)
            place_error(report, &here, "is too large, expected at most %" PRId64,
                        OVERLAY_CAPACITY_MAX);
    }
}

/* Also for labels that instance types need not have: requirements that leave no value would mean
 * "the label is not there", which is not what anybody wrote. */
static void contradictions_check(const struct nodeoverlay_spec *s, const struct place *list,
                                 struct report *report)
{
    AUTO_ARENA arena = { 0 };

    if (s->requirements.count > REQUIREMENTS_MAX)
        return; /* refused, and maybe too many to compare */
    struct contradictions found =
        requirements_contradictions(&arena, s->requirements.items, s->requirements.count);
    for (uint32_t i = 0; i < found.count; i++) {
        const struct contradiction *c = &found.items[i];
        const struct expression *e = &s->requirements.items[c->at];
        struct place here = place_item(list, c->at, json_at(list->at, c->at));
        if (e->op == OP_IN && e->values.count == 0)
            continue; /* the schema says so */
        if (c->at == c->with)
            place_error(report, &here, "no value of %.*s can meet it", STR_ARG(c->key));
        else
            place_error(report, &here,
                        "contradicts requirements[%" PRIu32 "]: no value of %.*s is left", c->with,
                        STR_ARG(c->key));
    }
}

static void nodeoverlay_check(const struct object *object, const json_val *root,
                              struct report *report)
{
    const struct nodeoverlay_spec *s = &nodeoverlay_of(object)->spec;
    struct place top = place_root(root), spec = place_member(&top, "spec"),
                 requirements = place_member(&spec, "requirements"),
                 capacity = place_member(&spec, "capacity");

    requirements_check(s->requirements.items, s->requirements.count, NULL, &requirements, report);
    contradictions_check(s, &requirements, report);
    capacity_check(&s->capacity, &capacity, report);
    if (!s->price.p && !s->price_adjustment.p && s->capacity.count == 0)
        place_warning(report, &spec,
                      "changes nothing, expected price, priceAdjustment or capacity");
}

const struct kind nodeoverlay_kind = {
    .group = KARPENTER_GROUP,
    .version = "v1alpha1",
    .name = "NodeOverlay",
    .plural = "nodeoverlays",
    .singular = "nodeoverlay",
    .has_status = true,
    .schema = &nodeoverlay_schema,
    .doc = "Corrections of the prices and the capacity of instance types.",
    .crd = &nodeoverlay_crd,
    .check = nodeoverlay_check,
};

int nodeoverlay_order(const struct nodeoverlay *a, const struct nodeoverlay *b)
{
    int64_t wa = a->spec.weight.set ? a->spec.weight.value : 0;
    int64_t wb = b->spec.weight.set ? b->spec.weight.value : 0;
    if (wa != wb)
        return wa > wb ? -1 : 1;
    return str_cmp(b->object.meta.name, a->object.meta.name);
}
