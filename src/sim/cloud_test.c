#include "sim/cloud_testing.h"

#include "cloud/catalogue.h"

#define NO_OPTIONS ((struct sim_cloud_options){ 0 })

/* --- delays --- */

TEST(a_span_is_uniform_over_tenths_of_a_second_and_both_ends_are_in_it)
{
    struct span span = { SECOND_NS, 2 * SECOND_NS };
    uint32_t seen[11] = { 0 };
    for (uint64_t n = 0; n < 11000; n++) {
        int64_t ns = span_pick(span, fate_of(n, STR("x"), "boot"));
        EXPECT_EQ(ns % (SECOND_NS / 10), 0);
        seen[(ns - SECOND_NS) / (SECOND_NS / 10)]++;
    }
    for (int i = 0; i < 11; i++)
        EXPECT_TRUE(seen[i] > 850 && seen[i] < 1150);
    EXPECT_EQ(span_pick((struct span){ 7, 7 }, 1), 7);
    for (uint64_t n = 0; n < 100; n++) {
        int64_t ns = span_pick((struct span){ 5, 7 }, n);
        EXPECT_TRUE(ns >= 5 && ns <= 7);
    }
    EXPECT_TRUE(fate_of(1, STR("x"), "boot") != fate_of(1, STR("x"), "ready"));
}

/* --- launching --- */

TEST(the_cheapest_offering_that_the_claim_allows_is_launched)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct instance i = launch_new(s, "a");
    EXPECT_STR(i.instance_type, "c-1x-amd64-linux");
    EXPECT_STR(i.capacity_type, "spot");
    EXPECT_STR(i.claim_name, "a");
    EXPECT_STR(i.nodepool, "web");
    EXPECT_TRUE(str_starts(i.provider_id, STR(SIM_PROVIDER_PREFIX)));
    EXPECT_TRUE(str_starts(i.node_name, STR("sim-a-")));
    EXPECT_STR(str_map_get(&i.labels, STR("topology.kubernetes.io/zone")), i.zone.p);
}

TEST(a_launch_that_is_repeated_gives_the_same_instance_whatever_happened_in_between)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT claim = claim_of(s, "a");
    struct instance first = launch(s, claim);
    sim_cloud_drought(s->cloud, &(struct offering_match){ 0 }, true);
    sim_cloud_break(s->cloud, STR(""), SIM_BREAK_LAUNCH, true);
    pass(s, 1000);
    struct instance again = launch(s, claim);
    EXPECT_STR(again.provider_id, first.provider_id.p);
    EXPECT_EQ(again.created_us, first.created_us);
    EXPECT_EQ(list_count(s), 1);
    EXPECT_EQ(sim_cloud_stats(s->cloud).launches, 1);
}

TEST(a_claim_whose_instance_has_ended_never_gets_another)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT claim = claim_of(s, "a");
    struct instance i = launch(s, claim);
    EXPECT_TRUE(sim_cloud_kill_instance(s->cloud, i.provider_id));
    EXPECT_FALSE(sim_cloud_kill_instance(s->cloud, i.provider_id));
    for (int round = 0; round < 3; round++) {
        expect_refused(s, claim, LAUNCH_INSUFFICIENT_CAPACITY, "has ended");
        pass(s, 3600);
    }
    EXPECT_EQ(list_count(s), 0);
}

TEST(a_claim_whose_instance_is_ending_is_not_given_it)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT claim = claim_of(s, "a");
    struct err err = { 0 };
    launch(s, claim);
    EXPECT_OK(s->p->delete_(s->p->ctx, nodeclaim_of(claim), &err), err);
    expect_refused(s, claim, LAUNCH_INSUFFICIENT_CAPACITY, "has ended");
}

TEST(node_classes_that_are_missing_or_not_ready_refuse_launches)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT lost = claim_of_class(s, "a", "nowhere", LINUX_AMD64);
    expect_refused(s, lost, LAUNCH_INSUFFICIENT_CAPACITY, "node class \"nowhere\"");
    object_unref(merge_status(s->w->store, &kwoknodeclass_kind, "other",
                              js("{'status':{'conditions':[{'type':'Ready','status':'False',"
                                 "'reason':'X','message':'no subnets',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    AUTO_OBJECT early = claim_of_class(s, "b", "other", LINUX_AMD64);
    expect_refused(s, early, LAUNCH_CLASS_NOT_READY, "no subnets");
    EXPECT_EQ(sim_cloud_stats(s->cloud).launch_failures, 1);
    EXPECT_EQ(sim_cloud_stats(s->cloud).refusals, 1);
}

TEST(broken_launching_is_told_with_a_reason_and_only_for_its_class)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT claim = claim_of(s, "a");
    AUTO_OBJECT other = claim_of_class(s, "b", "other", LINUX_AMD64);
    sim_cloud_break(s->cloud, STR("default"), SIM_BREAK_LAUNCH, true);
    expect_refused(s, claim, LAUNCH_CREATE_ERROR, "not authorized");
    launch(s, other);
    sim_cloud_break(s->cloud, STR(""), SIM_BREAK_LAUNCH, false);
    launch(s, claim);
}

/* --- capacity --- */

static bool is_available(struct sky *s, const char *type, const char *zone,
                         const char *capacity_type)
{
    struct nodepool pool = { 0 };
    AUTO_INSTANCE_TYPES types = NULL;
    struct err err = { 0 };
    EXPECT_OK(s->p->get_instance_types(s->p->ctx, &pool, &types, &err), err);
    EXPECT_TRUE(types->base == NULL);
    uint32_t t = instance_types_find(types, str_of(type));
    for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
        if (str_eqz(shape->zone, zone) && str_eqz(shape->capacity_type, capacity_type))
            return bitset_test(&types->available, o);
    }
    KV_UNREACHABLE();
}

static struct generation generation(struct sky *s)
{
    struct nodepool pool = { 0 };
    struct generation out;
    struct err err = { 0 };
    EXPECT_OK(s->p->get_generation(s->p->ctx, &pool, &out, &err), err);
    return out;
}

TEST(a_drought_is_found_out_by_trying_and_the_next_offering_is_taken_in_the_same_call)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    sim_cloud_drought(s->cloud, &(struct offering_match){ .capacity_type = STR("spot") }, true);
    struct generation before = generation(s);
    EXPECT_TRUE(is_available(s, "c-1x-amd64-linux", "test-zone-a", "spot"));

    struct instance i = launch_new(s, "a");
    EXPECT_STR(i.capacity_type, "on-demand");
    EXPECT_STR(i.instance_type, "c-1x-amd64-linux");
    EXPECT_FALSE(is_available(s, "c-1x-amd64-linux", "test-zone-a", "spot"));
    EXPECT_TRUE(is_available(s, "c-256x-amd64-linux", "test-zone-a", "spot"));
    struct generation after = generation(s);
    EXPECT_EQ(generation_difference(&before, &after), GENERATION_UNAVAILABLE);

    sim_cloud_drought(s->cloud, &(struct offering_match){ .capacity_type = STR("spot") }, false);
    struct instance still = launch_new(s, "b");
    EXPECT_STR(still.capacity_type, "on-demand"); /* nobody tries again for three minutes */
    pass(s, 181);
    EXPECT_TRUE(is_available(s, "c-1x-amd64-linux", "test-zone-a", "spot"));
    struct instance again = launch_new(s, "c");
    EXPECT_STR(again.capacity_type, "spot");
}

TEST(when_all_that_is_allowed_is_dry_the_launch_is_refused_for_want_of_capacity)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT claim = claim_of_class(s, "a", "default", LINUX_AMD64 "," ZONE_A "," SPOT);
    sim_cloud_drought(s->cloud, &(struct offering_match){ .zone = STR("test-zone-a") }, true);
    expect_refused(s, claim, LAUNCH_INSUFFICIENT_CAPACITY, "no capacity in any of 36 offerings");
    AUTO_OBJECT elsewhere = claim_of(s, "b");
    struct instance i = launch(s, elsewhere);
    EXPECT_FALSE(str_eqz(i.zone, "test-zone-a"));
    EXPECT_EQ(sim_cloud_stats(s->cloud).refusals, 1);
}

TEST(an_outage_ends_what_runs_in_the_zone_and_nothing_is_launched_there_until_it_is_over)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT a = claim_of_class(s, "a", "default", LINUX_AMD64 "," ZONE_A);
    AUTO_OBJECT again = claim_of_class(s, "again", "default", LINUX_AMD64 "," ZONE_A);
    struct instance in_a = launch(s, a);
    AUTO_OBJECT b = claim_of_class(
        s, "b", "default",
        LINUX_AMD64 ",{'key':'topology.kubernetes.io/zone','operator':'NotIn','values':"
                    "['test-zone-a']}");
    struct instance elsewhere = launch(s, b);
    pass(s, 60);
    sim_cloud_outage(s->cloud, STR("test-zone-a"), true);
    EXPECT_FALSE(is_known(s, &in_a));
    EXPECT_TRUE(is_known(s, &elsewhere));
    expect_refused(s, again, LAUNCH_INSUFFICIENT_CAPACITY, "no capacity");
    sim_cloud_outage(s->cloud, STR("test-zone-a"), false);
    pass(s, 200);
    EXPECT_STR(launch(s, again).zone, "test-zone-a");
}

/* --- prices --- */

static usd_hour cheapest_price(struct sky *s)
{
    struct nodepool pool = { 0 };
    AUTO_INSTANCE_TYPES types = NULL;
    struct err err = { 0 };
    EXPECT_OK(s->p->get_instance_types(s->p->ctx, &pool, &types, &err), err);
    return types->price_cheapest[types->price_order[0]];
}

TEST(prices_change_by_a_factor_with_the_generation_and_come_back)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct offering_match spot = { .capacity_type = STR("spot") };
    usd_hour list = cheapest_price(s);
    struct generation before = generation(s);

    sim_cloud_price(s->cloud, &spot, 1.2);
    struct generation dearer = generation(s);
    EXPECT_EQ(generation_difference(&before, &dearer), GENERATION_SPOT);
    EXPECT_EQ(cheapest_price(s), (list * 12 + 5) / 10); /* exactly */
    sim_cloud_price(s->cloud, &spot, 3);
    EXPECT_STR(launch_new(s, "a").capacity_type, "on-demand");
    sim_cloud_price(s->cloud, &(struct offering_match){ .zone = STR("test-zone-b") }, 0.5);
    EXPECT_STR(launch_new(s, "b").zone, "test-zone-b");
    sim_cloud_price(s->cloud, &(struct offering_match){ .zone = STR("test-zone-b") }, 1);
    sim_cloud_price(s->cloud, &spot, 1);
    EXPECT_EQ(cheapest_price(s), list);
    struct generation after = generation(s);
    EXPECT_FALSE(generation_equal(&dearer, &after));
}

TEST(types_that_nothing_happened_to_are_the_same_snapshot_again)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct nodepool pool = { 0 };
    struct err err = { 0 };
    sim_cloud_price(s->cloud, &(struct offering_match){ .zone = STR("test-zone-b") }, 2);
    AUTO_INSTANCE_TYPES one = NULL;
    AUTO_INSTANCE_TYPES two = NULL;
    EXPECT_OK(s->p->get_instance_types(s->p->ctx, &pool, &one, &err), err);
    EXPECT_OK(s->p->get_instance_types(s->p->ctx, &pool, &two, &err), err);
    EXPECT_TRUE(one == two);
}

TEST(money_is_the_integral_of_prices_from_launch_until_the_end_begins)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT a = claim_of(s, "a");
    AUTO_OBJECT b = claim_of(s, "b");
    struct err err = { 0 };
    double price = usd_hour_double(cheapest_price(s));
    launch(s, a);
    pass(s, 3600);
    launch(s, b);
    EXPECT_TRUE(sim_cloud_stats(s->cloud).dollars_hour == 2 * price);
    pass(s, 1800);
    EXPECT_OK(s->p->delete_(s->p->ctx, nodeclaim_of(a), &err), err);
    pass(s, 1800);
    /* a ran for 1.5 hours, b for 1 */
    double want = 2.5 * price, got = sim_cloud_stats(s->cloud).dollars;
    EXPECT_TRUE(got > want - 2e-9 && got < want + 2e-9);
    EXPECT_TRUE(sim_cloud_stats(s->cloud).dollars == got);
}

/* --- real types --- */

static int from_catalogue(struct sky *s, const char *name, const char *requirements,
                          struct instance *out)
{
    AUTO_OBJECT claim =
        make(s->w->store, &nodeclaim_kind,
             js("{'metadata':{'name':'%s'},'spec':{'nodeClassRef':{'group':'karpenter.k8s.aws',"
                "'kind':'EC2NodeClass','name':'ec2'},'requirements':[%s],'resources':{'requests':"
                "{'cpu':'3','memory':'8Gi'}}}}",
                name, requirements));
    struct launch_failure why;
    struct err err = { 0 };
    return try_launch(s, claim, out, &why, &err);
}

TEST(types_of_a_catalogue_are_launched_with_its_node_classes_droughts_and_prices)
{
    struct catalogue *catalogue = NULL;
    struct err err = { 0 };
    EXPECT_OK(catalogue_new((struct catalogue_options){ 0 }, &catalogue, &err), err);
    struct sky *s = sky_new((struct sim_cloud_options){ .types = catalogue_provider(catalogue) });
    struct instance first, second, third;
    EXPECT_EQ(s->p->node_class_count, 2);
    object_unref(make(s->w->store, &ec2nodeclass_kind,
                      js("{'metadata':{'name':'ec2'},'spec':{'role':'r',"
                         "'amiSelectorTerms':[{'alias':'al2023@latest'}],"
                         "'subnetSelectorTerms':[{'id':'subnet-1'}],"
                         "'securityGroupSelectorTerms':[{'id':'sg-1'}]}}")));
    EXPECT_EQ(from_catalogue(s, "a", LINUX_AMD64, &first), 0);
    EXPECT_TRUE(str_starts(first.zone, STR("us-east-1")));

    struct offering_match same = { .instance_type = first.instance_type };
    sim_cloud_drought(s->cloud, &same, true);
    EXPECT_EQ(from_catalogue(s, "b", LINUX_AMD64, &second), 0);
    EXPECT_FALSE(str_eq(first.instance_type, second.instance_type));
    struct offering_match dear = { .instance_type = second.instance_type };
    sim_cloud_price(s->cloud, &dear, 2);
    EXPECT_EQ(from_catalogue(s, "c", LINUX_AMD64, &third), 0);
    EXPECT_FALSE(str_eq(second.instance_type, third.instance_type));
    sky_free(s);
    catalogue_free(catalogue);
}

/* --- joining --- */

TEST(an_instance_boots_joins_not_ready_and_gets_ready)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct instance i = launch_new(s, "a");
    EXPECT_EQ(sim_cloud_step(s->cloud), TEST_BOOT_S * SECOND_NS);
    pass(s, TEST_BOOT_S - 1);
    EXPECT_Z(ready_word(s, &i), "absent");
    pass(s, 1);
    EXPECT_Z(ready_word(s, &i), "False");
    AUTO_OBJECT object = get(s->w->store, &node_kind, i.node_name.p);
    const struct node *node = node_of(object);
    EXPECT_TRUE(node_taint(node, STR(TAINT_UNREGISTERED), EFFECT_NO_EXECUTE) != NULL);
    EXPECT_TRUE(node_taint(node, STR("node.kubernetes.io/not-ready"), EFFECT_NO_SCHEDULE) != NULL);
    EXPECT_STR(node->spec.provider_id, i.provider_id.p);
    EXPECT_TRUE(node->status.allocatable.count > 0);
    EXPECT_STR(node_address(node, STR("Hostname")), i.node_name.p);
    pass(s, TEST_READY_S);
    EXPECT_Z(ready_word(s, &i), "True");
    AUTO_OBJECT ready = get(s->w->store, &node_kind, i.node_name.p);
    EXPECT_EQ(node_of(ready)->status.conditions.count, 4);
    EXPECT_TRUE(sim_cloud_step(s->cloud) == INT64_MAX);
}

TEST(a_node_class_that_says_its_own_registration_delay_has_it)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    object_unref(make(s->w->store, &kwoknodeclass_kind,
                      js("{'metadata':{'name':'slow'},'spec':{'nodeRegistrationDelay':'2m'}}")));
    AUTO_OBJECT claim = claim_of_class(s, "a", "slow", LINUX_AMD64);
    launch(s, claim);
    EXPECT_EQ(sim_cloud_step(s->cloud), 120 * SECOND_NS);
}

TEST(instances_launched_with_a_broken_image_never_join_even_when_it_is_mended)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    sim_cloud_break(s->cloud, STR("default"), SIM_BREAK_IMAGE, true);
    struct instance i = launch_new(s, "a");
    AUTO_OBJECT other = claim_of_class(s, "b", "other", LINUX_AMD64);
    struct instance fine = launch(s, other);
    sim_cloud_break(s->cloud, STR("default"), SIM_BREAK_IMAGE, false);
    pass(s, 3600);
    EXPECT_Z(ready_word(s, &i), "absent");
    EXPECT_Z(ready_word(s, &fine), "False");
    EXPECT_TRUE(is_known(s, &i)); /* it runs, and costs money */
    EXPECT_EQ(sim_cloud_stats(s->cloud).lost, 1);
    struct instance after = launch_new(s, "c");
    pass(s, TEST_BOOT_S);
    EXPECT_Z(ready_word(s, &after), "False");
}

TEST(instances_that_wait_for_the_network_join_when_it_is_mended)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    sim_cloud_break(s->cloud, STR("default"), SIM_BREAK_NETWORK, true);
    struct instance waiting = launch_new(s, "a");
    sim_cloud_break(s->cloud, STR("default"), SIM_BREAK_IMAGE, true);
    struct instance bad_image = launch_new(s, "b");
    pass(s, 600);
    EXPECT_Z(ready_word(s, &waiting), "absent");
    struct instance booting = launch_new(s, "c");
    sim_cloud_break(s->cloud, STR("default"), SIM_BREAK_NETWORK, false);
    pass(s, 0);
    EXPECT_Z(ready_word(s, &waiting), "False");
    EXPECT_Z(ready_word(s, &bad_image), "absent");
    EXPECT_Z(ready_word(s, &booting), "absent");
    pass(s, TEST_READY_S);
    EXPECT_Z(ready_word(s, &waiting), "True");
}

static double share_of(struct sim_cloud_options options, uint32_t *joined, char fates[200])
{
    AUTO(sky) s = sky_new(options);
    char name[16];
    struct instance all[200];
    uint32_t ready = 0;
    for (int n = 0; n < 200; n++) {
        snprintf(name, sizeof name, "c%d", n);
        all[n] = launch_new(s, name);
    }
    pass(s, TEST_BOOT_S);
    pass(s, TEST_READY_S);
    *joined = (uint32_t)sim_cloud_stats(s->cloud).joined;
    for (int n = 0; n < 200; n++) {
        fates[n] = ready_word(s, &all[n])[0];
        ready += fates[n] == 'T';
    }
    return ready / 200.0;
}

TEST(instances_fail_to_boot_and_to_get_ready_at_the_given_rates_by_seed_and_claim)
{
    uint32_t joined;
    char one[200], two[200];
    double ready = share_of((struct sim_cloud_options){ .boot_failure_rate = 0.3 }, &joined, one);
    EXPECT_TRUE(ready > 0.6 && ready < 0.8);
    EXPECT_EQ(joined, (int64_t)(ready * 200 + 0.5));
    share_of((struct sim_cloud_options){ .boot_failure_rate = 0.3 }, &joined, two);
    EXPECT_TRUE(memcmp(one, two, sizeof one) == 0);
    share_of((struct sim_cloud_options){ .boot_failure_rate = 0.3, .seed = 1 }, &joined, two);
    EXPECT_FALSE(memcmp(one, two, sizeof one) == 0);
    ready = share_of((struct sim_cloud_options){ .ready_failure_rate = 0.3 }, &joined, one);
    EXPECT_TRUE(ready > 0.6 && ready < 0.8);
    EXPECT_EQ(joined, 200);
}

TEST(what_happens_to_an_instance_does_not_depend_on_calls_before_it)
{
    struct sim_cloud_options options = { .boot = { SECOND_NS, 100 * SECOND_NS } };
    AUTO(sky) one = sky_new(options);
    AUTO(sky) two = sky_new(options);
    AUTO_OBJECT a = claim_of(one, "a");
    AUTO_OBJECT b = claim_of(one, "b");
    AUTO_OBJECT a2 = claim_of(two, "a");
    AUTO_OBJECT b2 = claim_of(two, "b");
    EXPECT_TRUE(str_eq(a->meta.uid, a2->meta.uid));
    launch(one, a);
    int64_t due_a = sim_cloud_step(one->cloud);
    launch(one, b);
    launch(two, b2);
    int64_t due_b = sim_cloud_step(two->cloud);
    launch(two, a2);
    EXPECT_EQ(sim_cloud_step(one->cloud), due_a < due_b ? due_a : due_b);
    EXPECT_EQ(sim_cloud_step(two->cloud), due_a < due_b ? due_a : due_b);
    EXPECT_TRUE(due_a != due_b);
}

/* --- ending --- */

TEST(a_termination_takes_its_time_and_then_the_instance_is_not_found)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT claim = claim_of(s, "a");
    struct err err = { 0 };
    EXPECT_ERR(s->p->delete_(s->p->ctx, nodeclaim_of(claim), &err), err, ERR_NOT_FOUND);
    struct instance i = launch(s, claim), seen;
    /* The claim was not told its providerID. */
    EXPECT_OK(s->p->delete_(s->p->ctx, nodeclaim_of(claim), &err), err);
    EXPECT_OK(s->p->get(s->p->ctx, i.provider_id, &s->arena, &seen, &err), err);
    EXPECT_TRUE(seen.terminating);
    EXPECT_EQ(list_count(s), 1);
    pass(s, TEST_END_S - 1);
    EXPECT_OK(s->p->delete_(s->p->ctx, nodeclaim_of(claim), &err), err);
    pass(s, 1); /* asking again has not started the time anew */
    EXPECT_FALSE(is_known(s, &i));
    EXPECT_ERR(s->p->delete_(s->p->ctx, nodeclaim_of(claim), &err), err, ERR_NOT_FOUND);
    EXPECT_EQ(sim_cloud_stats(s->cloud).terminated, 1);
    pass(s, 600); /* it was still booting: no Node */
    EXPECT_Z(ready_word(s, &i), "absent");
}

TEST(an_instance_can_be_deleted_by_its_provider_id_alone)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct instance i = launch_new(s, "a");
    struct nodeclaim by_id = { 0 };
    struct err err = { 0 };
    by_id.status.provider_id = i.provider_id;
    const char *reason = NULL;
    EXPECT_OK(s->p->is_drifted(s->p->ctx, &by_id, &reason, &err), err);
    EXPECT_Z(reason, "");
    EXPECT_OK(s->p->delete_(s->p->ctx, &by_id, &err), err);
    pass(s, TEST_END_S);
    EXPECT_FALSE(is_known(s, &i));
    EXPECT_ERR(s->p->is_drifted(s->p->ctx, &by_id, &reason, &err), err, ERR_NOT_FOUND);
}

TEST(the_node_of_an_instance_that_died_is_missed_after_a_while_and_then_deleted)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct instance i = launch_new(s, "a");
    pass(s, TEST_BOOT_S);
    pass(s, TEST_READY_S);
    EXPECT_TRUE(sim_cloud_runs(s->cloud, i.provider_id));
    EXPECT_TRUE(sim_cloud_kill_instance(s->cloud, i.provider_id));
    EXPECT_FALSE(sim_cloud_runs(s->cloud, i.provider_id));
    EXPECT_TRUE(sim_cloud_runs(s->cloud, STR("aws:///us-east-1a/i-1")));
    EXPECT_FALSE(is_known(s, &i));
    pass(s, 39);
    EXPECT_Z(ready_word(s, &i), "True");
    pass(s, 1);
    EXPECT_Z(ready_word(s, &i), "Unknown");
    pass(s, 5);
    EXPECT_Z(ready_word(s, &i), "absent");
    EXPECT_TRUE(sim_cloud_step(s->cloud) == INT64_MAX);
}

TEST(a_node_with_finalizers_stays_marked_when_its_instance_has_ended)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct instance i = launch_new(s, "a");
    pass(s, TEST_BOOT_S);
    object_unref(merge(s->w->store, &node_kind, i.node_name.p,
                       js("{'metadata':{'finalizers':['karpenter.sh/termination']}}")));
    sim_cloud_kill_instance(s->cloud, i.provider_id);
    pass(s, 40);
    pass(s, 5);
    EXPECT_Z(ready_word(s, &i), "Unknown");
    AUTO_OBJECT node = get(s->w->store, &node_kind, i.node_name.p);
    EXPECT_TRUE(node->meta.deleted_us != 0);
}

TEST(instances_are_seen_with_their_state_and_claim)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    AUTO_OBJECT a = claim_of(s, "a");
    struct err err = { 0 };
    uint32_t count;
    launch(s, a);
    pass(s, TEST_BOOT_S);
    launch_new(s, "b");
    sim_cloud_break(s->cloud, STR(""), SIM_BREAK_IMAGE, true);
    launch_new(s, "c");
    const struct sim_instance *all = sim_cloud_instances(s->cloud, &s->arena, &count);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(all[0].state, SIM_JOINED);
    EXPECT_EQ(all[1].state, SIM_BOOTING);
    EXPECT_TRUE(str_eq(all[0].claim_uid, a->meta.uid));
    EXPECT_OK(s->p->delete_(s->p->ctx, nodeclaim_of(a), &err), err);
    pass(s, TEST_END_S);
    pass(s, TEST_BOOT_S - TEST_END_S);
    all = sim_cloud_instances(s->cloud, &s->arena, &count);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(all[0].state, SIM_JOINED);
    EXPECT_EQ(all[1].state, SIM_LOST);
}

/* --- after a restart --- */

/* As the lifecycle controller does after a launch. */
static void tell(struct sky *s, const struct instance *i)
{
    AUTO_BUF labels = { 0 };
    for (uint32_t n = 0; n < i->labels.count; n++)
        buf_addf(&labels, "%s'%.*s':'%.*s'", n ? "," : "", STR_ARG(i->labels.items[n].key),
                 STR_ARG(i->labels.items[n].value));
    object_unref(merge(s->w->store, &nodeclaim_kind, i->claim_name.p,
                       js("{'metadata':{'labels':{%s}}}", labels.p)));
    object_unref(merge_status(s->w->store, &nodeclaim_kind, i->claim_name.p,
                              js("{'status':{'providerID':'%s','conditions':[{'type':'Launched',"
                                 "'status':'True','reason':'Launched','message':'',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}",
                                 i->provider_id.p)));
}

TEST(a_program_that_starts_again_finds_its_instances_in_the_claims)
{
    AUTO(sky) s = sky_new(NO_OPTIONS);
    struct err err = { 0 };
    struct instance joined = launch_new(s, "a");
    tell(s, &joined);
    pass(s, TEST_BOOT_S);
    struct instance booting = launch_new(s, "b");
    tell(s, &booting);
    double rate = sim_cloud_stats(s->cloud).dollars_hour;

    sim_cloud_free(s->cloud);
    s->cloud = sim_cloud_new((struct sim_cloud_options){
        .store = s->w->store,
        .clock = virtual_clock_port(s->w->time),
        .boot = seconds(TEST_BOOT_S),
        .ready = seconds(TEST_READY_S),
    });
    s->p = sim_cloud_provider(s->cloud);
    EXPECT_OK(sim_cloud_recover(s->cloud, &err), err);
    EXPECT_EQ(list_count(s), 2);
    EXPECT_TRUE(sim_cloud_stats(s->cloud).dollars_hour == rate);
    AUTO_OBJECT claim = get(s->w->store, &nodeclaim_kind, "b");
    EXPECT_STR(launch(s, claim).provider_id, booting.provider_id.p);
    pass(s, TEST_BOOT_S);
    pass(s, TEST_READY_S);
    EXPECT_Z(ready_word(s, &joined), "True");
    EXPECT_Z(ready_word(s, &booting), "True");
}
