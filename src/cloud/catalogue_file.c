/* A catalogue file: a table says what its fields may be, and from it come decoding, every complaint
 * about a value, and "did you mean". What a table cannot say (overhead beyond capacity,
 * requirements that contradict the offerings) is checked afterwards, in the order of the file.
 *
 * Offerings are many and of few kinds: those of one zone, capacity type and reservation share their
 * requirements.
 */
#include "cloud/catalogue.h"

#include "api/place.h"
#include "api/resources.h"
#include "cloud/catalogue_labels.h"
#include "codec/yaml.h"

#define CATALOGUE_API_VERSION "karve.io/v1alpha1"
#define PODS_DEFAULT 110 /* what a kubelet takes unless it is told otherwise */

/* --- the format --- */

enum { BOUGHT_UNSET, BOUGHT_ON_DEMAND, BOUGHT_SPOT, BOUGHT_RESERVED };

struct file_offering {
    struct str zone, reservation_id;
    uint8_t capacity_type; /* BOUGHT_* */
    uint8_t available;     /* enum tri */
    struct maybe_int reservation_capacity;
};

struct file_type {
    struct str name;
    struct resources capacity, overhead;
    LIST(struct expression) requirements;
    LIST(struct file_offering) offerings;
};

struct file_root {
    LIST(struct file_type) types;
};

static int price_of(const json_val *v, usd_hour *out)
{
    if (json_is_string(v))
        return usd_hour_parse(json_str(v), out, NULL);
    return json_is_number(v) ? usd_hour_from_double(json_double(v), out, NULL) : -1;
}

static bool price_holds(const json_val *self, const json_val *old KV_UNUSED)
{
    usd_hour price;
    return price_of(self, &price) == 0;
}

static bool is_reserved(const json_val *offering)
{
    return str_eqz(json_str(json_member(offering, "capacityType")), CAPACITY_RESERVED);
}

static bool reserved_is_whole(const json_val *self, const json_val *old KV_UNUSED)
{
    return !is_reserved(self) || (json_str(json_member(self, "reservationId")).len &&
                                  json_member(self, "reservationCapacity"));
}

static bool others_have_no_reservation(const json_val *self, const json_val *old KV_UNUSED)
{
    return is_reserved(self) ||
           (!json_member(self, "reservationId") && !json_member(self, "reservationCapacity"));
}

static const char *amount_words(struct str text)
{
    struct quantity amount;
    bool negative =
        quantity_parse(text, &amount, NULL) == 0 && quantity_cmp(amount, quantity_of(0)) < 0;
    return negative ? "is negative, expected an amount of at least 0" : NULL;
}

static const struct rule amount_rule = { .check = amount_words };

#define T struct file_offering
static const struct field offering_fields[] = {
    FIELD(STR, zone, "zone", "The zone it is in.", .flags = FIELD_REQUIRED,
          RULE(.len_min = 1, .check = label_value_problem)),
    FIELD(ENUM, capacity_type, "capacityType", "How it is bought.", .flags = FIELD_REQUIRED,
          RULE(ENUMS(CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED))),
    CHECKED(JSON, "price", .flags = FIELD_REQUIRED,
            RULE(CEL_RULES({ "self >= 0",
                             "expected dollars per hour, a number from 0 to 922337, such as 0.21",
                             price_holds }))),
    FIELD(TRI, available, "available", "Can it be had now? Yes unless said otherwise."),
    FIELD(STR, reservation_id, "reservationId",
          "Of a reserved offering: whose instances these are.",
          RULE(.len_min = 1, .check = label_value_problem)),
    FIELD(MAYBE_INT, reservation_capacity, "reservationCapacity",
          "Of a reserved offering: how many instances are left.", RULE(BETWEEN(0, UINT32_MAX))),
};
#undef T
static const struct schema offering_schema =
    SCHEMA("Offering", struct file_offering, offering_fields,
           CEL_RULES({ "has reservation",
                       "a reserved offering needs reservationId and reservationCapacity",
                       reserved_is_whole },
                     { "no reservation",
                       "reservationId and reservationCapacity are for capacityType reserved only",
                       others_have_no_reservation }));

#define T struct file_type
static const struct field type_fields[] = {
    FIELD(STR, name, "name", "The type's name, its node.kubernetes.io/instance-type label.",
          .flags = FIELD_REQUIRED, RULE(.len_min = 1, .check = label_value_problem)),
    FIELD(RESOURCES, capacity, "capacity", "What the machine has, by resource.",
          .flags = FIELD_REQUIRED,
          RULE(.items_min = 1, .item = &amount_rule, .key = &label_key_rule)),
    FIELD(RESOURCES, overhead, "overhead", "What of it pods do not get.",
          RULE(.item = &amount_rule, .key = &label_key_rule)),
    FIELD(LIST, requirements, "requirements", "Labels that its nodes have.",
          .sub = &node_expression_schema, RULE(.items_max = REQUIREMENTS_MAX, KEYED_BY("key"))),
    FIELD(LIST, offerings, "offerings", "Where and how it can be bought.", .flags = FIELD_REQUIRED,
          .sub = &offering_schema,
          RULE(.items_min = 1, KEYED_BY("zone", "capacityType", "reservationId"))),
};
#undef T
static const struct schema type_schema = SCHEMA("InstanceType", struct file_type, type_fields);

#define T struct file_root
static const struct field root_fields[] = {
    /* Not needed. A file that has them can lie among manifests, where it is passed over. */
    CHECKED(STR, "apiVersion", RULE(ENUMS(CATALOGUE_API_VERSION))),
    CHECKED(STR, "kind", RULE(ENUMS("Catalogue"))),
    FIELD(LIST, types, "instanceTypes", "Everything that can be launched.", .flags = FIELD_REQUIRED,
          .sub = &type_schema,
          RULE(.items_min = 1, .items_max = INSTANCE_TYPES_MAX, KEYED_BY("name"))),
};
#undef T
static const struct schema root_schema = SCHEMA("Catalogue", struct file_root, root_fields);

/* --- what the table cannot say --- */

/* Snapshots hold thousandths: what is beyond them is refused, not cut. */
#define AMOUNT_UNITS_MAX (INT64_MAX / 1000 - 1)

static void check_amounts(const struct resources *amounts, const struct place *type,
                          const char *field, struct report *report)
{
    struct place list = place_member(type, field);
    if (!list.found)
        return;
    json_each_member(list.at, key, value) {
        struct place at = place_key(&list, key, value);
        const struct resource *r = resources_find(amounts, json_key(key));
        if (r && r->amount.units > AMOUNT_UNITS_MAX)
            place_error(report, &at, "is too large, at most %lld is held",
                        (long long)AMOUNT_UNITS_MAX);
    }
}

static void check_overhead(const struct file_type *t, const struct place *type,
                           struct report *report)
{
    struct place overhead = place_member(type, "overhead");
    if (!overhead.found)
        return;
    json_each_member(overhead.at, key, value) {
        struct place at = place_key(&overhead, key, value);
        const struct resource *kept = resources_find(&t->overhead, json_key(key));
        const struct resource *has = resources_find(&t->capacity, json_key(key));
        char all[QUANTITY_TEXT_MAX];
        if (!kept || !has || quantity_cmp(kept->amount, has->amount) <= 0)
            continue;
        quantity_format(has->amount, all);
        place_error(report, &at, "is more than the capacity, which is %s", all);
    }
}

static const char *capacity_type_text(uint8_t capacity_type)
{
    static const char *const texts[] = { "", CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED };
    return texts[capacity_type];
}

/* A requirement may repeat what name and offerings say, and not deny it. */
static void check_agrees(const struct requirements *set, const char *key, struct str value,
                         const struct place *at, struct report *report)
{
    const struct requirement *r = requirements_find(set, str_of(key));
    if (r && !requirement_has(r, value))
        place_error(report, at, "the type's requirement on %s does not allow %s", key,
                    STR_SHOWN(value));
}

static void check_capacity_types(const struct requirements *set, const struct place *at,
                                 struct report *report)
{
    const struct requirement *r = requirements_find(set, STR(LABEL_CAPACITY_TYPE));
    for (uint32_t i = 0; r && i < r->values.count; i++) {
        struct str word = r->values.items[i];
        if (!str_eqz(word, CAPACITY_ON_DEMAND) && !str_eqz(word, CAPACITY_SPOT) &&
            !str_eqz(word, CAPACITY_RESERVED))
            place_error(report, at,
                        "%s: expected one of \"on-demand\", \"spot\", \"reserved\", found %s",
                        LABEL_CAPACITY_TYPE, STR_SHOWN(word));
    }
}

static void check_type(const struct file_type *t, const struct requirements *set,
                       const struct place *type, struct report *report)
{
    struct place name = place_member(type, "name");
    struct place requirements = place_member(type, "requirements");
    struct place offerings = place_member(type, "offerings");
    check_amounts(&t->capacity, type, "capacity", report);
    check_amounts(&t->overhead, type, "overhead", report);
    check_overhead(t, type, report);
    check_capacity_types(set, &requirements, report);
    check_agrees(set, LABEL_INSTANCE_TYPE, t->name, &name, report);

    uint32_t i = 0;
    json_each_item(offerings.at, item) {
        const struct file_offering *o = &t->offerings.items[i];
        struct place offering = place_item(&offerings, i++, item);
        struct place zone = place_member(&offering, "zone");
        struct place bought = place_member(&offering, "capacityType");
        check_agrees(set, LABEL_ZONE, o->zone, &zone, report);
        check_agrees(set, LABEL_CAPACITY_TYPE, str_of(capacity_type_text(o->capacity_type)),
                     &bought, report);
    }
}

/* --- from the file's structs to drafts --- */

struct reader {
    struct arena *arena;  /* of the drafts */
    struct arena scratch; /* of the file's structs */
    struct report report;
    struct str_table shapes; /* "zone\ncapacity type\nreservation": const struct requirements * */
};

static struct resources copied_resources(struct arena *arena, const struct resources *from,
                                         bool with_pods)
{
    bool add_pods = with_pods && !resources_find(from, STR("pods"));
    struct resource *items = arena_array(arena, struct resource, from->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        if (add_pods && str_cmp(from->items[i].name, STR("pods")) > 0) {
            items[count++] = (struct resource){ STR("pods"), quantity_of(PODS_DEFAULT) };
            add_pods = false;
        }
        items[count].name = arena_str(arena, from->items[i].name);
        items[count++].amount = from->items[i].amount;
    }
    if (add_pods)
        items[count++] = (struct resource){ STR("pods"), quantity_of(PODS_DEFAULT) };
    return (struct resources){ items, count };
}

static struct requirement label(struct arena *arena, const char *key, struct str value)
{
    return requirement_in(arena, str_of(key), (struct str_list){ &value, value.len ? 1 : 0 });
}

static struct requirements shape_of(struct reader *r, const struct file_offering *o)
{
    AUTO_BUF key = { 0 };
    struct str bought = str_of(capacity_type_text(o->capacity_type));
    buf_addf(&key, "%.*s\n%.*s\n%.*s", STR_ARG(o->zone), STR_ARG(bought),
             STR_ARG(o->reservation_id));
    struct requirements *known = str_table_get(&r->shapes, buf_str(&key));
    if (known)
        return *known;
    struct requirement *items = arena_array(r->arena, struct requirement, 3);
    items[0] = label(r->arena, LABEL_AWS("capacity-reservation-id"), o->reservation_id);
    items[1] = label(r->arena, LABEL_CAPACITY_TYPE, bought);
    items[2] = label(r->arena, LABEL_ZONE, o->zone);
    known = arena_new(r->arena, struct requirements);
    *known = (struct requirements){ items, 3 };
    str_table_put(&r->shapes, buf_str(&key), known);
    return *known;
}

static void draft_offerings(struct reader *r, const struct file_type *t, const struct place *type,
                            struct instance_type_draft *out)
{
    struct place offerings = place_member(type, "offerings");
    struct offering_draft *all = arena_array(r->arena, struct offering_draft, t->offerings.count);
    uint32_t i = 0;
    json_each_item(offerings.at, item) {
        const struct file_offering *o = &t->offerings.items[i];
        all[i].requirements = shape_of(r, o);
        bool used_up = o->capacity_type == BOUGHT_RESERVED && o->reservation_capacity.value == 0;
        all[i].available = o->available != TRI_FALSE && !used_up;
        all[i].reservation_capacity = o->reservation_capacity.value;
        int rc = price_of(json_member(item, "price"), &all[i].price);
        KV_ASSERT(rc == 0); /* the table's rule */
        i++;
    }
    out->offerings = all;
    out->offering_count = i;
}

static void draft_type(struct reader *r, const struct file_type *t, const struct place *type,
                       struct instance_type_draft *out)
{
    struct err why;
    if (requirements_from_expressions(r->arena, t->requirements.items, t->requirements.count,
                                      &out->requirements, &why) < 0) {
        struct place at = place_member(type, "requirements");
        place_error(&r->report, &at, "%s", why.text);
        return;
    }
    check_type(t, &out->requirements, type, &r->report);
    out->name = arena_str(r->arena, t->name);
    out->capacity = copied_resources(r->arena, &t->capacity, true);
    out->overhead = copied_resources(r->arena, &t->overhead, false);
    draft_offerings(r, t, type, out);
}

static int draft_types(struct reader *r, const json_val *root,
                       const struct instance_type_draft **out, uint32_t *count, struct err *err)
{
    struct file_root file = { 0 };
    if (schema_decode(&root_schema, root, &r->scratch, &file, err) < 0)
        return -1;
    struct place top = place_root(root), list = place_member(&top, "instanceTypes");
    struct instance_type_draft *drafts =
        arena_array(r->arena, struct instance_type_draft, file.types.count);
    uint32_t i = 0;
    json_each_item(list.at, item) {
        struct place type = place_item(&list, i, item);
        draft_type(r, &file.types.items[i], &type, &drafts[i]);
        i++;
    }
    *out = drafts;
    *count = i;
    return 0;
}

/* --- the file --- */

static int first_problem(const struct report *report, const struct doc *doc, const char *path,
                         struct err *err)
{
    const struct problem *p = &report->problems.items[0];
    struct text_pos at = doc_position(doc, p->at ? p->at : doc->root);
    AUTO_BUF more = { 0 };
    if (report->error_count > 1)
        buf_addf(&more, " (and %u more)", report->error_count - 1);
    return err_set(err, ERR_INVALID, "%s:%u:%u: %.*s%s%.*s%.*s", path, at.line, at.col,
                   STR_ARG(p->path), p->path.len ? ": " : "", STR_ARG(p->what),
                   STR_ARG(buf_str(&more)));
}

static int read_doc(struct reader *r, const char *path, const struct doc *doc,
                    const struct instance_type_draft **out, uint32_t *count, struct err *err)
{
    schema_validate(&root_schema, doc->root, NULL, &r->report);
    if (!r->report.error_count && draft_types(r, doc->root, out, count, err) < 0)
        return err_wrap(err, "%s", path);
    return r->report.error_count ? first_problem(&r->report, doc, path, err) : 0;
}

int catalogue_file_read(struct arena *arena, const char *path, struct str text,
                        const struct instance_type_draft **out, uint32_t *count, struct err *err)
{
    struct docs docs;
    struct text_pos at = { 1, 1 };
    if (yaml_read(text, &docs, &at, err) < 0)
        return err_wrap(err, "%s:%u:%u", path, at.line, at.col);

    struct reader r = { .arena = arena };
    r.report.arena = &r.scratch;
    int rc = -1;
    if (docs.count == 1) {
        rc = read_doc(&r, path, &docs.items[0], out, count, err);
    } else if (docs.count == 0) {
        err_set(err, ERR_INVALID, "%s:1:1: is empty, expected instanceTypes", path);
    } else {
        at = doc_position(&docs.items[1], docs.items[1].root);
        err_set(err, ERR_INVALID, "%s:%u:%u: a second document, expected one with all types", path,
                at.line, at.col);
    }
    report_done(&r.report);
    str_table_done(&r.shapes);
    arena_done(&r.scratch);
    docs_done(&docs);
    return rc;
}
