#include "api/kinds.h"
#include "sim/faults.h"
#include "support/test.h"

#include <stdio.h>

/* --- a cloud that counts --- */

struct counted {
    uint32_t launches, deletes, asks;
};

static int count_launch(void *ctx, const struct nodeclaim *claim KV_UNUSED,
                        struct arena *arena KV_UNUSED, struct instance *out,
                        struct launch_failure *why KV_UNUSED, struct err *err KV_UNUSED)
{
    *out = (struct instance){ .provider_id = STR("x://1") };
    ((struct counted *)ctx)->launches++;
    return 0;
}

static int count_delete(void *ctx, const struct nodeclaim *claim KV_UNUSED,
                        struct err *err KV_UNUSED)
{
    ((struct counted *)ctx)->deletes++;
    return 0;
}

static int count_list(void *ctx, struct arena *arena KV_UNUSED, struct instances *out,
                      struct err *err KV_UNUSED)
{
    *out = (struct instances){ 0 };
    ((struct counted *)ctx)->asks++;
    return 0;
}

struct fixture {
    struct virtual_clock *time;
    struct object_pool *pool;
    struct embedded *embedded;
    struct counted counted;
    struct cloud_provider provider;
    struct faults *f;
    const struct store *plain, *store;
    const struct cloud_provider *cloud;
};

static struct fixture *fixture_new(struct fault_rates rates)
{
    struct fixture *x = kv_calloc(1, sizeof *x);
    x->time = virtual_clock_new(0);
    x->pool = object_pool_new();
    x->embedded = embedded_new((struct embedded_options){
        .clock = virtual_clock_port(x->time), .pool = x->pool, .seed = 3 });
    x->provider = (struct cloud_provider){ .create = count_launch,
                                           .delete_ = count_delete,
                                           .list = count_list,
                                           .name = "counted",
                                           .ctx = &x->counted };
    x->f = faults_new((struct faults_options){
        .embedded = x->embedded, .provider = &x->provider, .seed = 9, .rates = rates });
    x->plain = embedded_store(x->embedded);
    x->store = faults_store(x->f);
    x->cloud = faults_provider(x->f);
    return x;
}

static void fixture_free(struct fixture *x)
{
    faults_free(x->f);
    embedded_free(x->embedded);
    object_pool_free(x->pool);
    virtual_clock_free(x->time);
    free(x);
}
KV_AUTO_TYPE(fixture, fixture_free)

static int make_node(struct fixture *x, const char *name, struct err *err)
{
    char text[200];
    snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", name);
    return store_create(x->store, &node_kind, STR(""), str_of(text), NULL, err);
}

static int label_node(struct fixture *x, const char *name, const char *value, struct err *err)
{
    char text[200];
    snprintf(text, sizeof text, "{\"metadata\":{\"labels\":{\"a\":\"%s\"}}}", value);
    struct object_ref ref = { &node_kind, STR(""), str_of(name) };
    return store_patch(x->store, ref, (struct patch_options){ 0 }, str_of(text), NULL, err);
}

static bool is_there(struct fixture *x, const char *name)
{
    struct object_ref ref = { &node_kind, STR(""), str_of(name) };
    return store_get(x->plain, ref, NULL, NULL) == 0;
}

static int launch(struct fixture *x, struct launch_failure *why, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct nodeclaim claim = { .object.meta.name = STR("web-7") };
    struct instance instance;
    return x->cloud->create(x->cloud->ctx, &claim, &arena, &instance, why, err);
}

static int terminate(struct fixture *x, struct err *err)
{
    struct nodeclaim claim = { .object.meta.name = STR("web-7") };
    return x->cloud->delete_(x->cloud->ctx, &claim, err);
}

static int list_instances(struct fixture *x, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct instances all;
    return x->cloud->list(x->cloud->ctx, &arena, &all, err);
}

/* --- without faults --- */

TEST(without_faults_everything_goes_through)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ 0 });
    struct launch_failure why;
    struct err err = { 0 };
    EXPECT_OK(make_node(x, "a", &err), err);
    EXPECT_OK(label_node(x, "a", "1", &err), err);
    EXPECT_OK(launch(x, &why, &err), err);
    EXPECT_OK(list_instances(x, &err), err);
    EXPECT_TRUE(is_there(x, "a"));
    EXPECT_EQ(faults_calls(x->f), 4);
    EXPECT_Z(faults_provider(x->f)->name, "counted");
}

TEST(only_writes_that_change_something_count_as_writes)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ 0 });
    struct err err = { 0 };
    EXPECT_OK(make_node(x, "a", &err), err);
    EXPECT_OK(label_node(x, "a", "1", &err), err);
    EXPECT_EQ(faults_writes(x->f), 2);
    EXPECT_OK(label_node(x, "a", "1", &err), err);
    EXPECT_ERR(make_node(x, "a", &err), err, ERR_EXISTS);
    EXPECT_EQ(faults_writes(x->f), 2);
    EXPECT_Z(faults_last_write(x->f), "patch Node a");
    EXPECT_EQ(faults_calls(x->f), 4);
}

TEST(events_are_no_writes)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ 0 });
    struct err err = { 0 };
    EXPECT_OK(store_create(x->store, &event_kind, STR("default"),
                           STR("{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{}}"), NULL,
                           &err),
              err);
    EXPECT_EQ(faults_writes(x->f), 0);
}

/* --- calls that fail --- */

TEST(a_call_that_fails_has_no_effect_and_says_so_in_several_ways)
{
    AUTO(fixture) x =
        fixture_new((struct fault_rates){ .store_error = 1, .launch_error = 1, .cloud_error = 1 });
    struct launch_failure why;
    struct err err = { 0 };
    bool seen[ERR_INTERNAL + 1] = { false }, answers[LAUNCH_OTHER + 1] = { false };
    for (int i = 0; i < 100; i++) {
        EXPECT_TRUE(make_node(x, "a", &err) < 0);
        EXPECT_TRUE(err.kind == ERR_UNAVAILABLE || err.kind == ERR_THROTTLED);
        EXPECT_TRUE(label_node(x, "a", "1", &err) < 0);
        seen[err.kind] = true;
        EXPECT_TRUE(launch(x, &why, &err) < 0);
        answers[why.kind] = true;
        EXPECT_ERR(list_instances(x, &err), err, ERR_UNAVAILABLE);
        EXPECT_ERR(terminate(x, &err), err, ERR_UNAVAILABLE);
    }
    EXPECT_FALSE(is_there(x, "a"));
    EXPECT_EQ(x->counted.launches + x->counted.asks + x->counted.deletes, 0);
    EXPECT_TRUE(seen[ERR_UNAVAILABLE] && seen[ERR_THROTTLED] && seen[ERR_CONFLICT]);
    EXPECT_TRUE(answers[LAUNCH_CREATE_ERROR] && answers[LAUNCH_OTHER]);
    EXPECT_FALSE(answers[LAUNCH_INSUFFICIENT_CAPACITY] || answers[LAUNCH_CLASS_NOT_READY]);
}

TEST(a_reply_that_is_lost_leaves_the_effect)
{
    AUTO(fixture) x =
        fixture_new((struct fault_rates){ .store_lost_reply = 1, .launch_lost_reply = 1 });
    struct launch_failure why;
    struct err err = { 0 };
    EXPECT_ERR(make_node(x, "a", &err), err, ERR_UNAVAILABLE);
    EXPECT_TRUE(is_there(x, "a"));
    EXPECT_ERR(make_node(x, "a", &err), err, ERR_EXISTS); /* the truth, the second time */
    EXPECT_ERR(launch(x, &why, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(why.kind, LAUNCH_OTHER);
    EXPECT_EQ(x->counted.launches, 1);
    EXPECT_EQ(faults_writes(x->f), 1);
}

TEST(rates_say_how_often)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ .cloud_error = 0.25 });
    struct err err = { 0 };
    int failed = 0;
    for (int i = 0; i < 4000; i++)
        failed += list_instances(x, &err) < 0;
    EXPECT_TRUE(failed > 850 && failed < 1150);
    faults_set_rates(x->f, (struct fault_rates){ 0 });
    EXPECT_OK(list_instances(x, &err), err);
}

/* --- watches --- */

static int read_event(struct watch *watch, struct err *err)
{
    struct watch_event event;
    int rc = watch_next(watch, &event, err);
    if (rc == 1)
        object_unref(event.object);
    return rc;
}

TEST(a_watch_breaks_before_an_event_and_stays_broken)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ .watch_cut = 1 });
    struct err err = { 0 };
    struct watch *watch;
    uint64_t version = embedded_version(x->embedded);
    struct watch_options options = { .resource_version = version };
    EXPECT_OK(store_watch(x->store, &node_kind, &options, &watch, &err), err);
    EXPECT_EQ(read_event(watch, &err), 0); /* nothing to read, nothing to break */
    EXPECT_OK(make_node(x, "a", &err), err);
    EXPECT_EQ(read_event(watch, &err), -1);
    EXPECT_TRUE(err.kind == ERR_UNAVAILABLE || err.kind == ERR_GONE);
    faults_set_rates(x->f, (struct fault_rates){ 0 });
    EXPECT_EQ(read_event(watch, &err), -1);
    watch_close(watch);

    EXPECT_OK(store_watch(x->store, &node_kind, &options, &watch, &err), err);
    EXPECT_EQ(read_event(watch, &err), 1); /* what the break hid comes again */
    watch_close(watch);
}

/* --- death --- */

TEST(death_at_each_call_before_and_after_its_effect)
{
    for (uint64_t call = 1; call <= 4; call++) {
        for (int after = 0; after <= 1; after++) {
            AUTO(fixture) x = fixture_new((struct fault_rates){ 0 });
            struct launch_failure why;
            struct err err = { 0 };
            faults_die_at(x->f, call, after);
            make_node(x, "a", &err);
            launch(x, &why, &err);
            terminate(x, &err);
            make_node(x, "b", &err);
            uint64_t effects = call - 1 + (uint64_t)after;
            EXPECT_TRUE(faults_dead(x->f));
            EXPECT_EQ(err.kind, ERR_CANCELLED);
            EXPECT_EQ(is_there(x, "a"), effects >= 1);
            EXPECT_EQ(x->counted.launches, effects >= 2);
            EXPECT_EQ(x->counted.deletes, effects >= 3);
            EXPECT_EQ(is_there(x, "b"), effects >= 4);
        }
    }
}

TEST(the_dead_see_and_do_nothing_until_the_next_process_starts)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ 0 });
    struct err err = { 0 };
    struct watch *watch;
    struct object_ref ref = { &node_kind, STR(""), STR("a") };
    struct watch_options options = { 0 };
    EXPECT_OK(store_watch(x->store, &node_kind, &options, &watch, &err), err);
    faults_kill(x->f);
    EXPECT_TRUE(faults_dead(x->f));
    EXPECT_ERR(make_node(x, "a", &err), err, ERR_CANCELLED);
    EXPECT_ERR(store_get(x->store, ref, NULL, &err), err, ERR_CANCELLED);
    EXPECT_ERR(read_event(watch, &err), err, ERR_CANCELLED);
    EXPECT_ERR(list_instances(x, &err), err, ERR_CANCELLED);
    watch_close(watch);
    faults_revive(x->f);
    EXPECT_OK(make_node(x, "a", &err), err);
}

TEST(last_words_name_the_call)
{
    AUTO(fixture) x = fixture_new((struct fault_rates){ 0 });
    struct launch_failure why;
    struct err err = { 0 };
    faults_die_at(x->f, 1, false);
    launch(x, &why, &err);
    EXPECT_EQ(why.kind, LAUNCH_OTHER);
    EXPECT_Z(faults_last_words(x->f), "launch web-7");
    faults_revive(x->f);
    EXPECT_OK(make_node(x, "a", &err), err);
    faults_die_at(x->f, 0, true); /* long past: the next */
    label_node(x, "a", "1", &err);
    EXPECT_Z(faults_last_words(x->f), "patch Node a");
    faults_revive(x->f);
    EXPECT_OK(make_node(x, "b", &err), err); /* one death only */
}
