#include "cloud/catalogue.h"
#include "cloud/catalogue_labels.h"

#include "api/resources.h"
#include "support/test.h"

struct read {
    struct arena arena;
    const struct instance_type_draft *drafts;
    uint32_t count;
    struct err err;
};

static void read_done(struct read *r)
{
    arena_done(&r->arena);
}
#define READ __attribute__((cleanup(read_done))) struct read

static int read_text(struct read *r, const char *text)
{
    *r = (struct read){ 0 };
    return catalogue_file_read(&r->arena, "types.yaml", str_of(text), &r->drafts, &r->count,
                               &r->err);
}

static void expect_problem(const char *text, const char *want)
{
    READ r;
    EXPECT_EQ(read_text(&r, text), -1);
    EXPECT_EQ(r.err.kind, ERR_INVALID);
    EXPECT_Z(r.err.text, want);
}

#define HEAD "instanceTypes:\n- name: a\n  capacity: {cpu: 2, memory: 8Gi}\n"
#define OFFERINGS "  offerings:\n  - {zone: z1, capacityType: spot, price: 0.5}\n"

/* --- good files --- */

static const char contract[] =
    "instanceTypes:\n"
    "- name: fake-it-3\n"
    "  capacity: {cpu: \"4\", memory: 8Gi, pods: \"40\"}\n"
    "  overhead: {cpu: 100m, memory: 10Mi}\n"
    "  requirements:\n"
    "  - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n"
    "  - {key: kubernetes.io/os, operator: In, values: [linux]}\n"
    "  offerings:\n"
    "  - {zone: test-zone-1, capacityType: spot, price: 0.21, available: true}\n"
    "  - {zone: test-zone-2, capacityType: on-demand, price: 0.42}\n"
    "  - {zone: test-zone-2, capacityType: reserved, price: 0, available: false,\n"
    "     reservationId: cr-1, reservationCapacity: 3}\n";

TEST(catalogue_file_is_read_as_the_contract_says)
{
    READ r;
    EXPECT_EQ(read_text(&r, contract), 0);
    EXPECT_EQ(r.count, 1);
    const struct instance_type_draft *d = &r.drafts[0];
    EXPECT_STR(d->name, "fake-it-3");
    EXPECT_EQ(d->capacity.count, 3);
    EXPECT_EQ(quantity_units(resources_get(&d->capacity, STR("memory"))), INT64_C(8) << 30);
    EXPECT_EQ(quantity_units(resources_get(&d->capacity, STR("pods"))), 40);
    EXPECT_EQ(quantity_milli(resources_get(&d->overhead, STR("cpu"))), 100);
    EXPECT_EQ(d->requirements.count, 2);
    EXPECT_EQ(d->offering_count, 3);

    const struct offering_draft *spot = &d->offerings[0], *reserved = &d->offerings[2];
    EXPECT_EQ(spot->price, USD_HOUR_ONE / 100 * 21);
    EXPECT_TRUE(spot->available);
    EXPECT_TRUE(d->offerings[1].available); /* unless said otherwise */
    EXPECT_FALSE(reserved->available);
    EXPECT_EQ(reserved->reservation_capacity, 3);
    EXPECT_EQ(reserved->price, 0);
    const struct requirement *id =
        requirements_find(&reserved->requirements, STR(LABEL_AWS("capacity-reservation-id")));
    EXPECT_STR(id->values.items[0], "cr-1");
    id = requirements_find(&spot->requirements, STR(LABEL_AWS("capacity-reservation-id")));
    EXPECT_EQ(requirement_operator(id), OP_DOES_NOT_EXIST);
}

TEST(catalogue_file_may_be_json)
{
    READ r;
    EXPECT_EQ(read_text(&r, "{\"instanceTypes\": [{\"name\": \"a\", \"capacity\": {\"cpu\": 1},"
                            "\"offerings\": [{\"zone\": \"z\", \"capacityType\": \"on-demand\","
                            "\"price\": \"0.0190032385536\"}]}]}"),
              0);
    EXPECT_EQ(r.drafts[0].offerings[0].price, INT64_C(190032385536)); /* all 13 decimals */
}

TEST(catalogue_file_may_say_what_it_is)
{
    READ r;
    EXPECT_EQ(read_text(&r, "apiVersion: karve.io/v1alpha1\nkind: Catalogue\n" HEAD OFFERINGS), 0);
    expect_problem("kind: Pod\n" HEAD OFFERINGS,
                   "types.yaml:1:7: kind: expected \"Catalogue\", found \"Pod\"");
}

TEST(catalogue_file_types_take_as_many_pods_as_a_kubelet_unless_they_say)
{
    READ r;
    EXPECT_EQ(read_text(&r, HEAD OFFERINGS), 0);
    const struct resources *has = &r.drafts[0].capacity;
    EXPECT_EQ(has->count, 3);
    for (uint32_t i = 1; i < has->count; i++)
        EXPECT_TRUE(str_cmp(has->items[i - 1].name, has->items[i].name) < 0);
    EXPECT_EQ(quantity_units(resources_get(has, STR("pods"))), 110);
}

TEST(catalogue_file_makes_a_snapshot_with_labels_from_names_and_offerings)
{
    READ r;
    AUTO_INSTANCE_TYPES types = NULL;
    EXPECT_EQ(read_text(&r, contract), 0);
    EXPECT_OK(instance_types_build(r.drafts, r.count, (struct instance_types_options){ 0 }, &types,
                                   &r.err),
              r.err);
    const struct requirement *zone = instance_type_requirement(types, 0, STR(LABEL_ZONE));
    EXPECT_EQ(zone->values.count, 2);
    const struct requirement *name = instance_type_requirement(types, 0, STR(LABEL_INSTANCE_TYPE));
    EXPECT_STR(name->values.items[0], "fake-it-3");
    const struct requirement *bought =
        instance_type_requirement(types, 0, STR(LABEL_CAPACITY_TYPE));
    EXPECT_EQ(bought->values.count, 3);
}

TEST(catalogue_file_replaces_the_built_in_types_for_every_class)
{
    struct catalogue *c = NULL;
    struct err err = { 0 };
    EXPECT_OK(catalogue_new((struct catalogue_options){ .maybe_path = "examples/catalogue.yaml" },
                            &c, &err),
              err);
    const struct cloud_provider *p = catalogue_provider(c);
    struct nodepool aws = { 0 }, kwok = { 0 };
    aws.spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR(AWS_GROUP), STR("EC2NodeClass"), STR("a") };
    kwok.spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR(KWOK_GROUP), STR("KWOKNodeClass"), STR("b") };
    AUTO_INSTANCE_TYPES a = NULL;
    AUTO_INSTANCE_TYPES b = NULL;
    struct generation first, second;
    EXPECT_OK(p->get_instance_types(p->ctx, &aws, &a, &err), err);
    EXPECT_OK(p->get_instance_types(p->ctx, &kwok, &b, &err), err);
    EXPECT_TRUE(a == b);
    EXPECT_OK(p->get_generation(p->ctx, &aws, &first, &err), err);
    EXPECT_OK(p->get_generation(p->ctx, &kwok, &second, &err), err);
    EXPECT_TRUE(generation_equal(&first, &second));
    EXPECT_TRUE(instance_types_find(a, STR("m5.large")) == INSTANCE_TYPE_NONE);

    EXPECT_TRUE(instance_types_label(a, STR("example.com/rack")) != NULL);
    catalogue_free(c);
}

TEST(catalogue_file_that_is_missing_is_named)
{
    struct catalogue *c = NULL;
    struct err err = { 0 };
    EXPECT_ERR(catalogue_new((struct catalogue_options){ .maybe_path = "no/such/file" }, &c, &err),
               err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "no/such/file");
}

/* --- bad files --- */

TEST(catalogue_file_problems_name_line_column_and_field)
{
    expect_problem(HEAD "  offering: []\n",
                   "types.yaml:4:3: instanceTypes[0].offering: unknown field, did you mean "
                   "\"offerings\"? (and 1 more)");
    expect_problem(HEAD "  offerings:\n  - {zone: z1, capacityType: spot}\n",
                   "types.yaml:5:5: instanceTypes[0].offerings[0].price: required, missing; "
                   "expected a value");
    expect_problem(HEAD "  offerings:\n  - {capacityType: spot, price: 1}\n",
                   "types.yaml:5:5: instanceTypes[0].offerings[0].zone: required, missing; "
                   "expected a string");
    expect_problem("instanceTypes:\n- name: a\n  capacity: {cpu: 1x}\n" OFFERINGS,
                   "types.yaml:3:19: instanceTypes[0].capacity[\"cpu\"]: unknown suffix \"x\": a "
                   "quantity ends in one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, in an exponent "
                   "such as e3, or in its last digit");
}

TEST(catalogue_file_refuses_prices_that_are_none)
{
    static const char *const bad[] = { "-0.1",   "1e300",   "922338", "free",
                                       "\"-1\"", "\"1,5\"", "[1]",    "true" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, HEAD "  offerings:\n  - {zone: z1, capacityType: spot, price: %s}\n",
                 bad[i]);
        expect_problem(text.p,
                       "types.yaml:5:43: instanceTypes[0].offerings[0].price: expected dollars "
                       "per hour, a number from 0 to 922337, such as 0.21");
    }
    READ r;
    EXPECT_EQ(read_text(&r, HEAD "  offerings:\n  - {zone: z1, capacityType: spot, price: .inf}\n"),
              -1);
    EXPECT_HAS(str_of(r.err.text), "types.yaml:5:43");
}

TEST(catalogue_file_refuses_words_that_are_none)
{
    expect_problem(HEAD "  offerings:\n  - {zone: z1, capacityType: sport, price: 1}\n",
                   "types.yaml:5:30: instanceTypes[0].offerings[0].capacityType: expected one of "
                   "\"on-demand\", \"spot\", \"reserved\", found \"sport\"");
    expect_problem(
        HEAD "  offerings:\n"
             "  - {zone: z1, capacityType: spot, price: 1, available: maybe}\n",
        "types.yaml:5:57: instanceTypes[0].offerings[0].available: expected true or false, "
        "found string \"maybe\"");
    expect_problem(
        HEAD OFFERINGS "  requirements:\n  - {key: a b, operator: Exists}\n",
        "types.yaml:7:11: instanceTypes[0].requirements[0].key: \"a b\" must have a "
        "name of letters, digits, '-', '_' and '.', with a letter or digit at both ends");
    expect_problem(HEAD OFFERINGS "  requirements:\n  - {key: a, operator: In}\n",
                   "types.yaml:7:5: instanceTypes[0].requirements[0]: values do not fit the "
                   "operator, expected at least one with In and NotIn, none with Exists and "
                   "DoesNotExist, one integer with Gt and Lt");
    expect_problem(HEAD OFFERINGS
                   "  requirements:\n"
                   "  - {key: karpenter.sh/capacity-type, operator: In, values: [spot, rented]}\n",
                   "types.yaml:7:3: instanceTypes[0].requirements: karpenter.sh/capacity-type: "
                   "expected one of \"on-demand\", \"spot\", \"reserved\", found \"rented\"");
}

TEST(catalogue_file_refuses_the_same_thing_twice)
{
    expect_problem(HEAD OFFERINGS "- name: a\n  capacity: {cpu: 1}\n" OFFERINGS,
                   "types.yaml:6:3: instanceTypes[1]: duplicate: item 0 has the same name");
    expect_problem(HEAD OFFERINGS "  - {zone: z1, capacityType: spot, price: 0.6}\n",
                   "types.yaml:6:5: instanceTypes[0].offerings[1]: duplicate: item 0 has the same "
                   "zone, capacityType, reservationId");
    expect_problem(HEAD OFFERINGS "  requirements:\n"
                                  "  - {key: a, operator: Exists}\n"
                                  "  - {key: a, operator: In, values: [b]}\n",
                   "types.yaml:8:5: instanceTypes[0].requirements[1]: duplicate: item 0 has the "
                   "same key");
}

TEST(catalogue_file_refuses_half_a_reservation)
{
    expect_problem(HEAD "  offerings:\n  - {zone: z1, capacityType: reserved, price: 0}\n",
                   "types.yaml:5:5: instanceTypes[0].offerings[0]: a reserved offering needs "
                   "reservationId and reservationCapacity");
    expect_problem(HEAD "  offerings:\n"
                        "  - {zone: z1, capacityType: spot, price: 0, reservationId: cr-1}\n",
                   "types.yaml:5:5: instanceTypes[0].offerings[0]: reservationId and "
                   "reservationCapacity are for capacityType reserved only");
    expect_problem(HEAD "  offerings:\n"
                        "  - {zone: z1, capacityType: reserved, price: 0, reservationId: cr-1,\n"
                        "     reservationCapacity: -1}\n",
                   "types.yaml:6:27: instanceTypes[0].offerings[0].reservationCapacity: expected "
                   "0 to 4294967295, found -1");
}

TEST(catalogue_file_offers_no_reservation_that_is_used_up)
{
    READ r;
    EXPECT_EQ(read_text(&r, HEAD "  offerings:\n"
                                 "  - {zone: z1, capacityType: reserved, price: 0, "
                                 "reservationId: cr-1, reservationCapacity: 0}\n"
                                 "  - {zone: z1, capacityType: reserved, price: 0, "
                                 "reservationId: cr-2, reservationCapacity: 1}\n"),
              0);
    EXPECT_FALSE(r.drafts[0].offerings[0].available);
    EXPECT_TRUE(r.drafts[0].offerings[1].available);
}

TEST(catalogue_file_refuses_amounts_that_cannot_be)
{
    expect_problem(
        "instanceTypes:\n- name: a\n  capacity: {cpu: 2, ephemeral-storage: 10Pi}\n"
        "" OFFERINGS,
        "types.yaml:3:41: instanceTypes[0].capacity[\"ephemeral-storage\"]: is too large, at "
        "most 9223372036854774 is held");
    expect_problem("instanceTypes:\n- name: a\n  capacity: {cpu: -1}\n" OFFERINGS,
                   "types.yaml:3:19: instanceTypes[0].capacity[\"cpu\"]: -1 is negative, expected "
                   "an amount of at least 0");
    expect_problem(HEAD "  overhead: {memory: 9Gi}\n" OFFERINGS,
                   "types.yaml:4:22: instanceTypes[0].overhead[\"memory\"]: is more than the "
                   "capacity, which is 8Gi");
    READ r;
    EXPECT_EQ(read_text(&r, HEAD "  overhead: {memory: 8Gi, example.com/x: 1}\n" OFFERINGS), 0);
}

TEST(catalogue_file_refuses_requirements_that_deny_name_or_offerings)
{
    expect_problem(HEAD OFFERINGS
                   "  requirements:\n"
                   "  - {key: topology.kubernetes.io/zone, operator: In, values: [z2]}\n",
                   "types.yaml:5:12: instanceTypes[0].offerings[0].zone: the type's requirement "
                   "on topology.kubernetes.io/zone does not allow \"z1\"");
    expect_problem(HEAD OFFERINGS
                   "  requirements:\n"
                   "  - {key: node.kubernetes.io/instance-type, operator: In, values: [b]}\n",
                   "types.yaml:2:9: instanceTypes[0].name: the type's requirement on "
                   "node.kubernetes.io/instance-type does not allow \"a\"");
    expect_problem(HEAD OFFERINGS
                   "  requirements:\n"
                   "  - {key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}\n",
                   "types.yaml:5:30: instanceTypes[0].offerings[0].capacityType: the type's "
                   "requirement on karpenter.sh/capacity-type does not allow \"spot\"");
}

TEST(catalogue_file_refuses_texts_that_are_no_catalogue)
{
    expect_problem("", "types.yaml:1:1: is empty, expected instanceTypes");
    expect_problem("# nothing\n", "types.yaml:1:1: is empty, expected instanceTypes");
    expect_problem("[]", "types.yaml:1:1: expected an object, found array");
    expect_problem("instanceTypes: []\n",
                   "types.yaml:1:16: instanceTypes: has 0 items, expected at least 1");
    expect_problem(
        "apiVersion: v1\nkind: Pod\n",
        "types.yaml:1:13: apiVersion: expected \"karve.io/v1alpha1\", found \"v1\" (and 2 more)");
    expect_problem(HEAD OFFERINGS "---\n" HEAD OFFERINGS,
                   "types.yaml:7:1: a second document, expected one with all types");
    expect_problem("instanceTypes: [\n",
                   "types.yaml:2:1: the text ends too early: did not find expected node content "
                   "(while parsing a flow node that starts on line 2)");
    expect_problem(HEAD "  offerings: []\n",
                   "types.yaml:4:14: instanceTypes[0].offerings: has 0 items, expected at least 1");
}
