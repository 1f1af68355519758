/* One replica, or a few, in virtual time. What happens to many in trouble is in leader_random_test. */
#include "control/leader.h"

#include "api/kinds.h"
#include "api/policy.h"
#include "cloud/kwok.h"
#include "store/testing.h"

#include <unistd.h>

#define LEASE "karpenter-leader-election"
#define HOME "kube-system"

struct replica {
    struct world *w;
    struct leader *leader;
    int gained, lost;
};

static void on_gained(void *ctx)
{
    ((struct replica *)ctx)->gained++;
}

static void on_lost(void *ctx)
{
    ((struct replica *)ctx)->lost++;
}

static struct leader_options options_of(struct replica *r, const char *identity)
{
    return (struct leader_options){ .store = r->w->store,
                                    .clock = virtual_clock_port(r->w->time),
                                    .namespace_ = HOME,
                                    .name = LEASE,
                                    .identity = identity,
                                    .seed = 1,
                                    .gained = on_gained,
                                    .lost = on_lost,
                                    .ctx = r };
}

static struct replica *replica_with(struct world *w, const char *identity, struct metrics *metrics,
                                    struct log *log)
{
    struct replica *r = kv_calloc(1, sizeof *r);
    struct err err = { 0 };
    r->w = w;
    struct leader_options options = options_of(r, identity);
    options.maybe_metrics = metrics;
    options.maybe_log = log;
    EXPECT_OK(leader_new(options, &r->leader, &err), err);
    return r;
}

static struct replica *replica_new(struct world *w, const char *identity)
{
    return replica_with(w, identity, NULL, NULL);
}

static void replica_free(struct replica *r)
{
    leader_free(r->leader);
    free(r);
}
KV_AUTO_TYPE(replica, replica_free)

static struct world *new_world(void)
{
    return world_new((struct embedded_options){ .seed = 3 });
}

static int64_t now(struct world *w)
{
    return clock_mono_ns(virtual_clock_port(w->time));
}

/* Let that much pass; the replicas do what comes due. */
static void pass(struct world *w, struct replica *a, struct replica *maybe_b, int64_t ns)
{
    int64_t end = now(w) + ns;
    for (;;) {
        int64_t due = leader_step(a->leader);
        int64_t other = maybe_b ? leader_step(maybe_b->leader) : INT64_MAX;
        due = other < due ? other : due;
        if (due > end)
            break;
        if (due > now(w))
            virtual_clock_advance(w->time, due - now(w));
    }
    virtual_clock_advance(w->time, end - now(w));
}

static const struct object *lease_in(struct world *w)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_get(w->store, (struct object_ref){ &lease_kind, STR(HOME), STR(LEASE) },
                        &object, &err),
              err);
    return object;
}

static void patch_lease(struct world *w, struct str patch)
{
    struct err err = { 0 };
    EXPECT_OK(store_patch(w->store, (struct object_ref){ &lease_kind, STR(HOME), STR(LEASE) },
                          (struct patch_options){ 0 }, patch, NULL, &err),
              err);
}

static enum err_kind always_unavailable(void *ctx KV_UNUSED, const struct embedded_call *call)
{
    return call->kind == &lease_kind ? ERR_UNAVAILABLE : ERR_NONE;
}

static const struct embedded_faults outage = { .before = always_unavailable };
static const struct embedded_faults lost_answers = { .after = always_unavailable };

/* --- the Lease --- */

TEST(the_first_replica_creates_the_lease_and_leads)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    EXPECT_FALSE(leader_holds(a->leader));
    EXPECT_EQ(leader_step(a->leader), LEADER_RETRY_NS);
    EXPECT_TRUE(leader_holds(a->leader));
    EXPECT_EQ(a->gained, 1);

    AUTO_OBJECT object = lease_in(w);
    const struct lease_spec *spec = &lease_of(object)->spec;
    EXPECT_STR(spec->holder_identity, "a");
    EXPECT_EQ(spec->duration_s.value, 15);
    EXPECT_EQ(spec->acquire_us, START_US);
    EXPECT_EQ(spec->renew_us, START_US);
    EXPECT_EQ(spec->transitions.value, 0);
}

TEST(a_renewal_changes_the_renew_time_only_and_to_the_microsecond)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    virtual_clock_advance(w->time, LEADER_RETRY_NS + 1234000);
    leader_step(a->leader);

    AUTO_OBJECT object = lease_in(w);
    const struct lease_spec *spec = &lease_of(object)->spec;
    EXPECT_EQ(spec->acquire_us, START_US);
    EXPECT_EQ(spec->renew_us, START_US + 2 * SECOND_US + 1234);
    EXPECT_EQ(spec->transitions.value, 0);
    EXPECT_EQ(a->gained, 1);
}

TEST(a_renewal_is_visible_even_when_the_wall_clock_stands_still)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    AUTO_OBJECT first = lease_in(w);
    virtual_clock_advance(w->time, LEADER_RETRY_NS);
    virtual_clock_jump(w->time, START_US);
    leader_step(a->leader);
    AUTO_OBJECT second = lease_in(w);
    EXPECT_TRUE(second->meta.resource_version > first->meta.resource_version);
}

TEST(a_lease_with_fields_of_others_keeps_them)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    patch_lease(w, js("{'metadata':{'labels':{'team':'x'}}}"));
    pass(w, a, NULL, 5 * SECOND_NS);
    AUTO_OBJECT object = lease_in(w);
    EXPECT_STR(str_map_get(&object->meta.labels, STR("team")), "x");
    EXPECT_TRUE(leader_holds(a->leader));
}

TEST(the_metric_and_the_log_say_who_leads)
{
    int pipe_fds[2];
    EXPECT_EQ(pipe(pipe_fds), 0);
    AUTO(world) w = new_world();
    AUTO(metrics) metrics = metrics_new(virtual_clock_port(w->time));
    struct log *log = log_new((struct log_options){
        .clock = virtual_clock_port(w->time), .fd = pipe_fds[1], .format = LOG_TEXT });
    AUTO_BUF before = { 0 }, during = { 0 }, after = { 0 };
    struct replica *a = replica_with(w, "a", metrics, log);
    metrics_write(metrics, &before);
    leader_step(a->leader);
    metrics_write(metrics, &during);
    embedded_set_faults(w->e, &outage);
    pass(w, a, NULL, 20 * SECOND_NS);
    metrics_write(metrics, &after);
    replica_free(a);
    log_free(log);

    EXPECT_HAS(buf_str(&before), "leader_election_master_status{name=\"" LEASE "\"} 0");
    EXPECT_HAS(buf_str(&during), "leader_election_master_status{name=\"" LEASE "\"} 1");
    EXPECT_HAS(buf_str(&after), "leader_election_master_status{name=\"" LEASE "\"} 0");
    char text[4096];
    ssize_t len = read(pipe_fds[0], text, sizeof text);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    EXPECT_TRUE(len > 0);
    struct str lines = { text, (size_t)len };
    EXPECT_HAS(lines, "leading");
    EXPECT_HAS(lines, "the lease was not renewed, trying again");
    EXPECT_HAS(lines, "no longer leading");
}

/* --- taking over --- */

TEST(nobody_else_leads_while_the_leader_renews)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    AUTO(replica) b = replica_new(w, "b");
    leader_step(a->leader);
    pass(w, a, b, 600 * SECOND_NS);
    EXPECT_TRUE(leader_holds(a->leader));
    EXPECT_FALSE(leader_holds(b->leader));
    EXPECT_EQ(b->gained, 0);
}

TEST(another_takes_over_when_the_lease_was_silent_for_its_duration)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    AUTO(replica) b = replica_new(w, "b");
    leader_step(a->leader);
    leader_step(b->leader); /* sees it at once: a dies now */
    pass(w, b, NULL, LEADER_LEASE_NS - 1);
    EXPECT_EQ(b->gained, 0);
    pass(w, b, NULL, 1);
    EXPECT_EQ(b->gained, 1);

    AUTO_OBJECT object = lease_in(w);
    const struct lease_spec *spec = &lease_of(object)->spec;
    EXPECT_STR(spec->holder_identity, "b");
    EXPECT_EQ(spec->transitions.value, 1);
    EXPECT_EQ(spec->acquire_us, START_US + 15 * SECOND_US);
}

TEST(a_candidate_waits_for_as_long_as_the_holder_promised)
{
    AUTO(world) w = new_world();
    AUTO(replica) b = replica_new(w, "b");
    struct err err = { 0 };
    EXPECT_OK(store_create(w->store, &lease_kind, STR(HOME),
                           js("{'metadata':{'name':'" LEASE "'},'spec':{'holderIdentity':'old',"
                              "'leaseDurationSeconds':60,'renewTime':'2020-01-02T03:04:05.000000Z'}"
                              "}"),
                           NULL, &err),
              err);
    pass(w, b, NULL, 59 * SECOND_NS);
    EXPECT_EQ(b->gained, 0);
    pass(w, b, NULL, SECOND_NS);
    EXPECT_EQ(b->gained, 1);
}

TEST(a_lease_without_a_holder_is_taken_at_once)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    struct err err = { 0 };
    EXPECT_OK(store_create(w->store, &lease_kind, STR(HOME),
                           js("{'metadata':{'name':'" LEASE "'},'spec':{}}"), NULL, &err),
              err);
    leader_step(a->leader);
    EXPECT_EQ(a->gained, 1);
    AUTO_OBJECT object = lease_in(w);
    EXPECT_EQ(lease_of(object)->spec.transitions.value, 1);
}

TEST(a_lease_that_is_deleted_under_its_holder_is_not_free_for_those_who_saw_it)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    AUTO(replica) b = replica_new(w, "b");
    struct err err = { 0 };
    leader_step(a->leader);
    leader_step(b->leader);
    EXPECT_OK(store_remove(w->store, (struct object_ref){ &lease_kind, STR(HOME), STR(LEASE) },
                           NULL, &err),
              err);
    pass(w, b, NULL, 14 * SECOND_NS);
    EXPECT_EQ(b->gained, 0);
    pass(w, b, NULL, SECOND_NS);
    EXPECT_EQ(b->gained, 1);
}

TEST(a_holder_whose_lease_was_deleted_makes_it_anew)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    struct err err = { 0 };
    leader_step(a->leader);
    EXPECT_OK(store_remove(w->store, (struct object_ref){ &lease_kind, STR(HOME), STR(LEASE) },
                           NULL, &err),
              err);
    pass(w, a, NULL, 60 * SECOND_NS);
    EXPECT_TRUE(leader_holds(a->leader));
    AUTO_OBJECT object = lease_in(w);
    EXPECT_STR(lease_of(object)->spec.holder_identity, "a");
}

/* --- losing --- */

TEST(the_fence_closes_at_the_renew_deadline_and_losing_is_for_good)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    embedded_set_faults(w->e, &outage);
    pass(w, a, NULL, LEADER_RENEW_NS - 1);
    EXPECT_TRUE(leader_holds(a->leader));
    EXPECT_EQ(a->lost, 0);
    virtual_clock_advance(w->time, 1);
    EXPECT_FALSE(leader_holds(a->leader)); /* before anybody has stepped */
    EXPECT_EQ(leader_step(a->leader), INT64_MAX);
    EXPECT_EQ(a->lost, 1);

    embedded_set_faults(w->e, NULL);
    pass(w, a, NULL, 100 * SECOND_NS);
    EXPECT_FALSE(leader_holds(a->leader));
    EXPECT_EQ(a->gained, 1);
    EXPECT_EQ(a->lost, 1);
}

TEST(a_short_outage_does_not_cost_the_lead)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    embedded_set_faults(w->e, &outage);
    pass(w, a, NULL, 7 * SECOND_NS);
    embedded_set_faults(w->e, NULL);
    pass(w, a, NULL, 60 * SECOND_NS);
    EXPECT_TRUE(leader_holds(a->leader));
    EXPECT_EQ(a->lost, 0);
}

TEST(renewals_whose_answers_are_lost_do_not_count_but_do_no_harm)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    embedded_set_faults(w->e, &lost_answers);
    pass(w, a, NULL, 5 * SECOND_NS);
    embedded_set_faults(w->e, NULL);
    pass(w, a, NULL, 5 * SECOND_NS); /* a conflict with its own write */
    EXPECT_TRUE(leader_holds(a->leader));
    embedded_set_faults(w->e, &lost_answers);
    pass(w, a, NULL, 11 * SECOND_NS);
    EXPECT_FALSE(leader_holds(a->leader));
    EXPECT_EQ(a->lost, 1);
}

TEST(who_takes_the_lease_without_hearing_of_it_leads_after_the_next_look)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    embedded_set_faults(w->e, &lost_answers);
    leader_step(a->leader);
    EXPECT_EQ(a->gained, 0);
    embedded_set_faults(w->e, NULL);
    pass(w, a, NULL, 5 * SECOND_NS);
    EXPECT_EQ(a->gained, 1);
    AUTO_OBJECT object = lease_in(w);
    EXPECT_EQ(lease_of(object)->spec.transitions.value, 0);
    EXPECT_EQ(lease_of(object)->spec.acquire_us, START_US);
}

TEST(a_holder_that_finds_another_in_its_place_has_lost_at_once)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    patch_lease(w, js("{'spec':{'holderIdentity':'b'}}"));
    pass(w, a, NULL, LEADER_RETRY_NS);
    EXPECT_EQ(a->lost, 1);
    EXPECT_FALSE(leader_holds(a->leader));
}

TEST(a_process_that_was_frozen_past_the_deadline_has_lost_even_if_nobody_took_over)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    virtual_clock_advance(w->time, 30 * SECOND_NS);
    EXPECT_FALSE(leader_holds(a->leader));
    leader_step(a->leader);
    EXPECT_EQ(a->lost, 1);
}

TEST(a_wall_clock_that_jumps_ahead_closes_the_fence_until_the_next_renewal)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    virtual_clock_advance(w->time, SECOND_NS);
    virtual_clock_jump(w->time, START_US + 3600 * SECOND_US); /* or the machine was suspended */
    EXPECT_FALSE(leader_holds(a->leader));
    pass(w, a, NULL, SECOND_NS);
    EXPECT_TRUE(leader_holds(a->leader));
    virtual_clock_jump(w->time, START_US - 3600 * SECOND_US);
    EXPECT_TRUE(leader_holds(a->leader));
    pass(w, a, NULL, 60 * SECOND_NS);
    EXPECT_TRUE(leader_holds(a->leader));
    EXPECT_EQ(a->lost, 0);
}

/* --- giving it up --- */

TEST(a_release_lets_another_lead_at_its_next_look)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    AUTO(replica) b = replica_new(w, "b");
    leader_step(a->leader);
    pass(w, a, b, 30 * SECOND_NS);
    leader_release(a->leader);
    EXPECT_FALSE(leader_holds(a->leader));
    EXPECT_EQ(a->lost, 0);
    AUTO_OBJECT released = lease_in(w);
    EXPECT_STR(lease_of(released)->spec.holder_identity, "");
    EXPECT_EQ(lease_of(released)->spec.duration_s.value, 1);

    pass(w, b, NULL, 5 * SECOND_NS);
    EXPECT_EQ(b->gained, 1);
    AUTO_OBJECT taken = lease_in(w);
    EXPECT_EQ(lease_of(taken)->spec.transitions.value, 1);
    EXPECT_EQ(lease_of(taken)->spec.duration_s.value, 15);
    EXPECT_EQ(leader_step(a->leader), INT64_MAX);
}

TEST(a_release_after_a_lost_answer_still_gives_the_lease_up)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    leader_step(a->leader);
    embedded_set_faults(w->e, &lost_answers);
    pass(w, a, NULL, 3 * SECOND_NS);
    embedded_set_faults(w->e, NULL);
    leader_release(a->leader);
    AUTO_OBJECT released = lease_in(w);
    EXPECT_STR(lease_of(released)->spec.holder_identity, "");
}

TEST(who_does_not_lead_releases_nothing)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    AUTO(replica) b = replica_new(w, "b");
    leader_step(a->leader);
    leader_step(b->leader);
    leader_release(b->leader);
    AUTO_OBJECT object = lease_in(w);
    EXPECT_STR(lease_of(object)->spec.holder_identity, "a");
}

/* --- the fence --- */

TEST(the_fence_lets_reads_through_and_writes_only_of_a_leader)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    const struct store *fenced = leader_store(a->leader, w->store);
    struct object_ref ref = at(&node_kind, "n");
    struct object_list list = { 0 };
    AUTO_BUF text = { 0 };
    struct err err = { 0 };
    make_node(w->store, "n");

    for (int leads = 0; leads < 2; leads++) {
        EXPECT_OK(store_get(fenced, ref, NULL, &err), err);
        EXPECT_OK(store_list(fenced, &node_kind, NULL, &list, &err), err);
        EXPECT_EQ(list.count, 1);
        object_list_done(&list);
        EXPECT_OK(store_get_json(fenced, ref, &text, &err), err);
        EXPECT_EQ(store_version(fenced), store_version(w->store));
        struct watch *watching = watch(fenced, &node_kind, (struct watch_options){ 0 });
        EXPECT_Z(event_text(watching, NULL), "ADDED n");
        watch_close(watching);

        uint64_t before = embedded_version(w->e);
        int rcs[] = {
            store_patch(fenced, ref, (struct patch_options){ 0 },
                        js("{'metadata':{'labels':{'a':'b'}}}"), NULL, &err),
            store_create(fenced, &pod_kind, STR("default"),
                         js("{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c',"
                            "'image':'i'}]}}"),
                         NULL, &err),
            store_bind(fenced, STR("default"), STR("p"), STR("n"), &err),
            store_evict(fenced, STR("default"), STR("p"), NULL, &err),
            store_remove(fenced, ref, NULL, &err),
        };
        for (size_t i = 0; i < KV_COUNT_OF(rcs); i++)
            EXPECT_EQ(rcs[i], leads ? 0 : -1);
        if (!leads)
            EXPECT_EQ(err.kind, ERR_CANCELLED);
        EXPECT_EQ(embedded_version(w->e) > before, leads);
        leader_step(a->leader);
    }
}

static int never_launch(void *ctx, const struct nodeclaim *claim KV_UNUSED,
                        struct arena *arena KV_UNUSED, struct instance *out KV_UNUSED,
                        struct launch_failure *why, struct err *err)
{
    ++*(int *)ctx;
    why->kind = LAUNCH_INSUFFICIENT_CAPACITY;
    return err_set(err, ERR_CAPACITY, "none");
}

static int count_delete(void *ctx, const struct nodeclaim *claim KV_UNUSED,
                        struct err *err KV_UNUSED)
{
    ++*(int *)ctx;
    return 0;
}

TEST(the_fence_lets_only_a_leader_launch_and_terminate)
{
    AUTO(world) w = new_world();
    AUTO(replica) a = replica_new(w, "a");
    AUTO_ARENA arena = { 0 };
    int calls = 0;
    const struct cloud_provider inner = {
        .create = never_launch, .delete_ = count_delete, .name = "test", .ctx = &calls
    };
    const struct cloud_provider *fenced = leader_provider(a->leader, &inner);
    const struct nodeclaim claim = { 0 };
    struct instance instance;
    struct launch_failure why;
    struct err err = { 0 };

    EXPECT_Z(fenced->name, "test");
    EXPECT_ERR(fenced->create(fenced->ctx, &claim, &arena, &instance, &why, &err), err,
               ERR_CANCELLED);
    EXPECT_EQ(why.kind, LAUNCH_OTHER);
    EXPECT_ERR(fenced->delete_(fenced->ctx, &claim, &err), err, ERR_CANCELLED);
    EXPECT_EQ(calls, 0);
    leader_step(a->leader);
    EXPECT_ERR(fenced->create(fenced->ctx, &claim, &arena, &instance, &why, &err), err,
               ERR_CAPACITY);
    EXPECT_EQ(why.kind, LAUNCH_INSUFFICIENT_CAPACITY);
    EXPECT_OK(fenced->delete_(fenced->ctx, &claim, &err), err);
    EXPECT_EQ(calls, 2);
}

/* --- options and threads --- */

TEST(times_that_make_no_sense_are_refused)
{
    static const struct {
        int64_t lease_s, renew_s, retry_s;
        const char *words;
    } cases[] = {
        { 10, 10, 2, "lease duration must be longer than the renew deadline" },
        { 15, 10, 9, "renew deadline must be longer than 1.2 retry periods" },
        { 15, 10, -1, "retry period" },
    };
    AUTO(world) w = new_world();
    struct replica r = { .w = w };
    struct leader *leader = NULL;
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct leader_options options = options_of(&r, "a");
        options.lease_ns = cases[i].lease_s * SECOND_NS;
        options.renew_ns = cases[i].renew_s * SECOND_NS;
        options.retry_ns = cases[i].retry_s * SECOND_NS;
        EXPECT_ERR(leader_new(options, &leader, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), cases[i].words);
    }
    struct err err = { 0 };
    EXPECT_ERR(leader_new(options_of(&r, ""), &leader, &err), err, ERR_INVALID);
    leader_free(NULL);
}

TEST(a_thread_gains_renews_and_is_stopped)
{
    AUTO(object_pool) pool = object_pool_new();
    AUTO(embedded) e =
        embedded_new((struct embedded_options){ .clock = clock_real(), .pool = pool, .seed = 1 });
    struct leader *leader = NULL;
    struct err err = { 0 };
    EXPECT_OK(leader_new((struct leader_options){ .store = embedded_store(e),
                                                  .clock = clock_real(),
                                                  .namespace_ = HOME,
                                                  .name = LEASE,
                                                  .identity = "a",
                                                  .lease_ns = 40 * SECOND_NS,
                                                  .renew_ns = 30 * SECOND_NS,
                                                  .retry_ns = SECOND_NS / 1000 },
                         &leader, &err),
              err);
    EXPECT_OK(leader_start(leader, &err), err);
    int64_t end = clock_mono_ns(clock_real()) + 30 * SECOND_NS;
    while (embedded_version(e) < 20 && clock_mono_ns(clock_real()) < end)
        usleep(1000);
    EXPECT_TRUE(embedded_version(e) >= 20);
    EXPECT_TRUE(leader_holds(leader));
    leader_release(leader);
    EXPECT_FALSE(leader_holds(leader));
    leader_free(leader);
}
