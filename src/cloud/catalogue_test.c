#include "cloud/catalogue_labels.h"
#include "cloud/catalogue_testing.h"
#include "cloud/kwok.h"

#include <pthread.h>

/* --- offerings --- */

TEST(catalogue_offers_every_type_in_every_zone_available_or_not)
{
    WORLD w;
    world_init(&w, "us-east-1", NULL);
    EXPECT_EQ(w.types->type_count, catalogue_machine_count());
    EXPECT_EQ(w.types->zone_count, 6);
    EXPECT_EQ(offering_count(&w, "m5.large"), 12);
    EXPECT_EQ(available(&w, "m5.large", "on-demand"), 5); /* nothing newer than m4 in us-east-1e */
    EXPECT_EQ(available(&w, "m5.large", "spot"), 5);
    EXPECT_EQ(available(&w, "m4.large", "spot"), 6);
    EXPECT_EQ(available(&w, "p6-b200.48xlarge", "on-demand"), 1);
    EXPECT_EQ(offering_count(&w, "hpc7g.4xlarge"), 6);
    EXPECT_EQ(available(&w, "hpc7g.4xlarge", "spot"), 0);
    EXPECT_EQ(w.types->shape_count, 12);
}

TEST(catalogue_prices_are_those_of_the_region)
{
    WORLD w;
    world_init(&w, "eu-central-1", NULL);
    uint32_t t = find(&w, "m5.large");
    char text[USD_HOUR_TEXT_MAX];
    for (uint32_t o = w.types->offering_start[t]; o < w.types->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &w.types->shapes[w.types->offering_shape[o]];
        usd_hour price = instance_types_price(w.types, o);
        usd_hour_format(price, text);
        if (str_eqz(shape->capacity_type, "on-demand"))
            EXPECT_Z(text, "0.115008");
        else
            EXPECT_TRUE(price < USD_HOUR_ONE / 10);
    }
    EXPECT_EQ(offering_count(&w, "m5.large"), 6);
    expect_label(&w, "m5.large", LABEL_ZONE, "eu-central-1a eu-central-1b eu-central-1c");
}

TEST(catalogue_offers_types_only_where_the_class_has_subnets)
{
    WORLD w;
    world_init(&w, "us-east-1",
               "  amiSelectorTerms: [{alias: al2023@latest}]\n"
               "status:\n"
               "  subnets:\n"
               "  - {id: s-1, zone: us-east-1b, zoneID: my-az}\n"
               "  - {id: s-2, zone: us-east-1e}\n"
               "  - {id: s-3, zone: mars-1a}\n");
    expect_label(&w, "m5.large", LABEL_ZONE, "us-east-1b");
    expect_label(&w, "m5.large", LABEL_ZONE_ID, "my-az");
    expect_label(&w, "m4.large", LABEL_ZONE, "us-east-1b us-east-1e");
    expect_label(&w, "m4.large", LABEL_ZONE_ID, "my-az use1-az3");
    EXPECT_EQ(available(&w, "m5.large", "spot"), 1);
    EXPECT_EQ(offering_count(&w, "m5.large"), 12); /* the others can be named in an explanation */
    uint32_t with_id = 0;
    for (uint32_t i = 0; i < w.types->shape_count; i++)
        with_id += requirements_find(&w.types->shapes[i].requirements, STR(LABEL_ZONE_ID)) != NULL;
    EXPECT_EQ(with_id, 4); /* two zones, bought either way */
}

TEST(catalogue_offers_the_class_s_reservations)
{
    WORLD w;
    world_init(&w, "us-east-1",
               "  amiSelectorTerms: [{alias: al2023@latest}]\n"
               "status:\n"
               "  capacityReservations:\n"
               "  - {id: cr-2, availabilityZone: us-east-1a, instanceType: m5.large,\n"
               "     instanceMatchCriteria: open, ownerID: '1', reservationType: default,\n"
               "     interruptible: false, state: active}\n"
               "  - {id: cr-1, availabilityZone: us-east-1b, instanceType: m5.large,\n"
               "     instanceMatchCriteria: open, ownerID: '1', reservationType: capacity-block,\n"
               "     interruptible: false, state: expiring}\n"
               "  - {id: cr-3, availabilityZone: us-east-1a, instanceType: z9.large,\n"
               "     instanceMatchCriteria: open, ownerID: '1', reservationType: default,\n"
               "     interruptible: false, state: active}\n"
               "  - {id: cr-4, availabilityZone: us-east-1c, instanceType: c5.large,\n"
               "     instanceMatchCriteria: open, ownerID: '1', reservationType: default,\n"
               "     interruptible: true, state: active}\n");
    expect_label(&w, "m5.large", LABEL_CAPACITY_TYPE, "on-demand reserved spot");
    expect_label(&w, "m5.large", LABEL_AWS("capacity-reservation-id"), "cr-1 cr-2");
    expect_label(&w, "m5.large", LABEL_AWS("capacity-reservation-type"), "capacity-block default");
    expect_label(&w, "m5.large", LABEL_AWS("capacity-reservation-interruptible"), "false");
    expect_label(&w, "c5.large", LABEL_AWS("capacity-reservation-interruptible"), "true");
    expect_label(&w, "m5.xlarge", LABEL_CAPACITY_TYPE, "on-demand spot");
    EXPECT_EQ(offering_count(&w, "m5.large"), 14);
    EXPECT_EQ(available(&w, "m5.large", "reserved"), 1); /* the other one is expiring */

    uint32_t t = find(&w, "m5.large");
    uint32_t cheapest = INSTANCE_TYPE_NONE;
    for (uint32_t o = w.types->offering_start[t]; o < w.types->offering_start[t + 1]; o++) {
        if (str_eqz(w.types->shapes[w.types->offering_shape[o]].reservation_id, "cr-2"))
            cheapest = o;
    }
    EXPECT_TRUE(cheapest != INSTANCE_TYPE_NONE);
    EXPECT_EQ(w.types->reservation_capacity[cheapest], 1);
    EXPECT_EQ(instance_types_price(w.types, cheapest), USD_HOUR_ONE * 96 / 1000 / 10000000);
}

/* --- the node class --- */

TEST(catalogue_without_a_class_assumes_al2023)
{
    WORLD w;
    world_init(&w, "", NULL);
    expect_amount(&w, "m5.large", "pods", "29");
    expect_amount(&w, "m5.large", "memory", "7577Mi");
    expect_amount(&w, "m5.large", "cpu", "2");
    expect_amount(&w, "m5.large", "ephemeral-storage", "20Gi");
    expect_amount(&w, "m5.large", "vpc.amazonaws.com/pod-eni", "9");
    expect_amount(&w, "m5.large", "nvidia.com/gpu", "");
    expect_amount(&w, "p4d.24xlarge", "nvidia.com/gpu", "8");
    expect_amount(&w, "p4d.24xlarge", "vpc.amazonaws.com/efa", "4");
    expect_amount(&w, "g4ad.16xlarge", "amd.com/gpu", "4");
    expect_amount(&w, "trn1.32xlarge", "aws.amazon.com/neuron", "16");
    expect_amount(&w, "trn1.32xlarge", "aws.amazon.com/neuroncore", "32");
    EXPECT_EQ(available(&w, "a1.large", "spot"), 0); /* its image does not boot there */
}

/* A pool whose node class is of that group and name. */
static struct nodepool pool_of(const char *group, const char *name)
{
    struct nodepool pool = { 0 };
    pool.object.meta.name = STR("other");
    pool.spec.template.spec.node_class_ref =
        (struct node_class_ref){ str_of(group), STR("SomeNodeClass"), str_of(name) };
    return pool;
}

TEST(catalogue_takes_the_class_of_any_other_cloud_for_al2023_too)
{
    WORLD w;
    world_init(&w, "", NULL);
    struct nodepool pool = pool_of("example.com", "default");
    struct err err = { 0 };
    instance_types_unref(w.types);
    EXPECT_OK(w.provider->get_instance_types(w.provider->ctx, &pool, &w.types, &err), err);
    expect_amount(&w, "m5.large", "memory", "7577Mi");
}

TEST(catalogue_gives_pools_of_kwok_its_synthetic_types_once_for_all_of_them)
{
    WORLD w;
    world_init(&w, "", "  amiSelectorTerms: [{alias: al2023@latest}]\n");
    const struct cloud_provider *p = w.provider;
    struct nodepool a = pool_of(KWOK_GROUP, "default"), b = pool_of(KWOK_GROUP, "other");
    struct generation of_a, of_b, of_ec2 = generation(&w);
    AUTO_INSTANCE_TYPES types_a = NULL;
    AUTO_INSTANCE_TYPES types_b = NULL;
    struct err err = { 0 };

    EXPECT_OK(p->get_instance_types(p->ctx, &a, &types_a, &err), err);
    EXPECT_OK(p->get_instance_types(p->ctx, &b, &types_b, &err), err);
    EXPECT_TRUE(types_a == types_b);
    EXPECT_EQ(types_a->type_count, KWOK_TYPE_COUNT);
    EXPECT_TRUE(instance_types_find(types_a, STR("c-1x-amd64-linux")) != INSTANCE_TYPE_NONE);
    EXPECT_TRUE(instance_types_find(types_a, STR("m5.large")) == INSTANCE_TYPE_NONE);
    EXPECT_TRUE(instance_types_find(w.types, STR("c-1x-amd64-linux")) == INSTANCE_TYPE_NONE);

    EXPECT_OK(p->get_generation(p->ctx, &a, &of_a, &err), err);
    EXPECT_OK(p->get_generation(p->ctx, &b, &of_b, &err), err);
    EXPECT_TRUE(generation_equal(&of_a, &of_b));
    EXPECT_EQ(generation_difference(&of_a, &of_ec2), GENERATION_INPUTS);
    generation_bump(catalogue_counters(w.catalogue), GENERATION_SPOT);
    EXPECT_OK(p->get_generation(p->ctx, &a, &of_a, &err), err);
    EXPECT_EQ(generation_difference(&of_a, &of_b), GENERATION_SPOT);
}

TEST(catalogue_keeps_back_the_memory_it_is_told_to)
{
    struct allocatable_options all = { .memory_overhead_ppm = 0, .reserved_enis = 1 };
    struct catalogue *c = NULL;
    struct err err = { 0 };
    WORLD w;
    world_init(&w, "", NULL);
    EXPECT_OK(catalogue_new((struct catalogue_options){ .maybe_allocatable = &all }, &c, &err),
              err);
    catalogue_free(w.catalogue);
    w.catalogue = c;
    w.provider = catalogue_provider(c);
    world_fetch(&w);
    expect_amount(&w, "m5.large", "memory", "8Gi");
    expect_amount(&w, "m5.large", "pods", "20");
}

TEST(catalogue_follows_the_class_s_kubelet_disks_and_family)
{
    WORLD w;
    world_init(&w, "",
               "  amiFamily: Bottlerocket\n"
               "  amiSelectorTerms: [{alias: bottlerocket@latest}]\n"
               "  kubelet: {maxPods: 110}\n"
               "  instanceStorePolicy: RAID0\n"
               "  blockDeviceMappings:\n"
               "  - {deviceName: /dev/xvdb, ebs: {volumeSize: 100Gi}}\n");
    expect_amount(&w, "m5.large", "pods", "110");
    expect_amount(&w, "m5.large", "ephemeral-storage", "100Gi");
    expect_amount(&w, "m5d.large", "ephemeral-storage", "75000000000");
    EXPECT_TRUE(available(&w, "a1.large", "spot") > 0);
}

TEST(catalogue_runs_windows_on_amd64_only)
{
    WORLD w;
    world_init(&w, "", "  amiSelectorTerms: [{alias: windows2022@latest}]\n");
    expect_label(&w, "m5.large", LABEL_OS, "windows");
    expect_label(&w, "m5.large", LABEL_WINDOWS_BUILD, "10.0.20348");
    expect_label(&w, "m6g.large", LABEL_OS, "-");
    EXPECT_TRUE(available(&w, "m5.large", "on-demand") > 0);
    EXPECT_EQ(available(&w, "m6g.large", "on-demand"), 0);
}

TEST(catalogue_says_why_a_class_does_not_go_with_a_type)
{
    static const struct {
        const char *spec, *type, *words;
    } rows[] = {
        { "  amiFamily: AL2023\n", "a1.large", "AL2023 does not boot" },
        { "  amiFamily: Bottlerocket\n", "a1.large", NULL },
        { "  amiFamily: Windows2022\n", "m6g.large", "Windows does not boot on arm64" },
        { "  amiFamily: Windows2022\n", "m6i.large", NULL },
        { "  cpuOptions: {nestedVirtualization: enabled}\n", "m7i.large", "nested" },
        { "  connectionTracking: {udpTimeout: 45}\n", "r4.large", "connectionTracking" },
        { "  networkInterfaces: [{networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]\n",
          "m7i.large", "networkInterfaces" },
    };
    WORLD w;
    world_init(&w, "", NULL);
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const struct catalogue_machine *m = catalogue_machine_find(str_of(rows[i].type));
        world_class(&w, rows[i].spec);
        const char *why = catalogue_mismatch(ec2nodeclass_of(w.class_.object), m);
        EXPECT_EQ(why == NULL, rows[i].words == NULL);
        if (why)
            EXPECT_HAS(str_of(why), rows[i].words);
    }
    EXPECT_TRUE(catalogue_mismatch(NULL, catalogue_machine_find(STR("a1.large"))) != NULL);
    EXPECT_TRUE(catalogue_mismatch(NULL, catalogue_machine_find(STR("m6g.large"))) == NULL);
}

TEST(catalogue_offers_nothing_of_types_that_the_class_does_not_go_with)
{
    WORLD w;
    world_init(&w, "",
               "  amiSelectorTerms: [{alias: al2023@latest}]\n"
               "  cpuOptions: {nestedVirtualization: enabled}\n");
    EXPECT_TRUE(available(&w, "m8i.large", "spot") > 0);
    EXPECT_EQ(available(&w, "m7i.large", "spot"), 0);

    world_class(&w, "  amiSelectorTerms: [{alias: al2023@latest}]\n"
                    "  connectionTracking: {udpTimeout: 45}\n");
    world_fetch(&w);
    EXPECT_TRUE(available(&w, "m7i.large", "spot") > 0);
    EXPECT_EQ(available(&w, "r4.large", "spot"), 0);
    EXPECT_EQ(available(&w, "m7i.metal-24xl", "spot"), 0);

    world_class(&w, "  amiSelectorTerms: [{alias: al2023@latest}]\n"
                    "  networkInterfaces:\n"
                    "  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}\n"
                    "  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}\n");
    world_fetch(&w);
    EXPECT_TRUE(available(&w, "p4d.24xlarge", "spot") > 0);
    EXPECT_EQ(available(&w, "m7i.48xlarge", "spot"), 0); /* one card */
    EXPECT_EQ(available(&w, "m4.large", "spot"), 0);     /* no ENA */
}

TEST(catalogue_says_what_is_wrong_with_the_class)
{
    WORLD w;
    world_init(&w, "", "  amiSelectorTerms: [{alias: al2023@latest}]\n");
    world_class(&w, "  amiSelectorTerms: [{alias: al2023@latest}]\n"
                    "  kubelet: {evictionHard: {memory.available: 200%}}\n");
    const struct instance_types *types;
    struct err err = { 0 };
    EXPECT_ERR(
        w.provider->get_instance_types(w.provider->ctx, nodepool_of(w.pool.object), &types, &err),
        err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "EC2NodeClass/default: spec.kubelet.evictionHard");
}

/* --- the generation --- */

TEST(catalogue_generation_changes_with_the_class_and_with_counters)
{
    WORLD w;
    world_init(&w, "", NULL);
    struct generation none = generation(&w), before, after;

    world_class(&w, "  amiSelectorTerms: [{alias: al2023@latest}]\n");
    before = generation(&w);
    EXPECT_EQ(generation_difference(&none, &before), GENERATION_INPUTS);
    after = generation(&w);
    EXPECT_TRUE(generation_equal(&before, &after));

    generation_bump(catalogue_counters(w.catalogue), GENERATION_SPOT);
    after = generation(&w);
    EXPECT_EQ(generation_difference(&before, &after), GENERATION_SPOT);
}

/* The resource version is what tells two states of a class apart: as in a store. */
static uint64_t inputs_of(struct world *w, const char *version, const char *spec)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "apiVersion: karpenter.k8s.aws/v1\n"
             "kind: EC2NodeClass\n"
             "metadata: {name: default, resourceVersion: '%s'}\n"
             "spec:\n%s",
             version, spec);
    if (w->class_.object)
        sample_done(&w->class_);
    sample_decode(&w->class_, text.p);
    return generation(w).member[GENERATION_INPUTS];
}

TEST(catalogue_generation_is_remembered_per_version_of_a_class)
{
    WORLD w;
    world_init(&w, "", NULL);
    uint64_t a = inputs_of(&w, "1", "  role: a\n  kubelet: {maxPods: 20}\n");
    EXPECT_EQ(inputs_of(&w, "2", "  role: b\n  kubelet: {maxPods: 20}\n"), a);
    EXPECT_TRUE(inputs_of(&w, "3", "  role: b\n  kubelet: {maxPods: 30}\n") != a);
    EXPECT_EQ(inputs_of(&w, "1", "  role: a\n  kubelet: {maxPods: 20}\n"), a);
    /* Without a version each look is a fresh one. */
    uint64_t b = inputs_of(&w, "", "  kubelet: {maxPods: 40}\n");
    EXPECT_TRUE(inputs_of(&w, "", "  kubelet: {maxPods: 50}\n") != b);
    /* What only Bottlerocket reads of user data. */
    uint64_t c = inputs_of(&w, "4", "  amiFamily: Bottlerocket\n  userData: a = 1\n");
    EXPECT_TRUE(inputs_of(&w, "5", "  amiFamily: Bottlerocket\n  userData: a = 2\n") != c);
    c = inputs_of(&w, "6", "  amiFamily: AL2023\n  userData: a = 1\n");
    EXPECT_EQ(inputs_of(&w, "7", "  amiFamily: AL2023\n  userData: a = 2\n"), c);
}

struct reader {
    struct world *world;
    uint64_t wrong;
};

static void *read_generations(void *arg)
{
    struct reader *r = arg;
    struct generation first = generation(r->world);
    for (int i = 0; i < 20000; i++) {
        struct generation now = generation(r->world);
        r->wrong += !generation_equal(&first, &now);
    }
    return NULL;
}

TEST(catalogue_generation_is_read_by_many_threads)
{
    WORLD w;
    pthread_t threads[4];
    struct reader readers[4];
    world_init(&w, "", "  amiSelectorTerms: [{alias: al2023@latest}]\n");
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct reader){ .world = &w };
        EXPECT_EQ(pthread_create(&threads[i], NULL, read_generations, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_EQ(readers[i].wrong, 0);
    }
}

/* --- the rest of the port --- */

TEST(catalogue_launches_nothing)
{
    WORLD w;
    AUTO_ARENA arena = { 0 };
    struct instance instance;
    struct instances instances;
    struct launch_failure why = { 0 };
    const char *reason;
    struct err err = { 0 };
    world_init(&w, "", NULL);
    const struct cloud_provider *p = w.provider;
    EXPECT_ERR(p->create(p->ctx, NULL, &arena, &instance, &why, &err), err, ERR_INVALID);
    EXPECT_EQ(why.kind, LAUNCH_OTHER);
    EXPECT_Z(err.text, "the catalogue launches nothing");
    EXPECT_ERR(p->delete_(p->ctx, NULL, &err), err, ERR_INVALID);
    EXPECT_ERR(p->get(p->ctx, STR("x"), &arena, &instance, &err), err, ERR_INVALID);
    EXPECT_ERR(p->is_drifted(p->ctx, NULL, &reason, &err), err, ERR_INVALID);
    EXPECT_OK(p->list(p->ctx, &arena, &instances, &err), err);
    EXPECT_EQ(instances.count, 0);
    EXPECT_TRUE(
        cloud_provider_supports(p, &nodepool_of(w.pool.object)->spec.template.spec.node_class_ref));
}

TEST(catalogue_suggests_the_region_that_was_meant)
{
    struct catalogue *c = NULL;
    struct err err = { 0 };
    EXPECT_ERR(catalogue_new((struct catalogue_options){ .region = STR("eu-wst-1") }, &c, &err),
               err, ERR_INVALID);
    EXPECT_Z(err.text, "unknown region \"eu-wst-1\", did you mean eu-west-1?");
    EXPECT_ERR(catalogue_new((struct catalogue_options){ .region = STR("moon") }, &c, &err), err,
               ERR_INVALID);
    EXPECT_Z(err.text, "unknown region \"moon\", expected one such as us-east-1");
}
