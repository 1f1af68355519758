#include "control/controllers.h"
#include "control/testing.h"

static const struct controller *const under_test[] = { &nodeoverlay_status };

static struct stage *start_with(bool gate)
{
    struct stage_options options = { .controllers = under_test,
                                     .count = KV_COUNT_OF(under_test),
                                     .settings = control_settings_default };
    options.settings.node_overlays = gate;
    struct stage *s = stage_new(options);
    object_unref(make_pool(s, "a", ""));
    return s;
}

static void make_overlay(struct stage *s, const char *name, const char *spec)
{
    object_unref(make(s->w->store, &nodeoverlay_kind,
                      js("{'metadata':{'name':'%s'},'spec':{%s}}", name, spec)));
}

#define ON_SPOT                                                                                    \
    "'requirements':[{'key':'karpenter.sh/capacity-type','operator':'In','values':['spot']}]"

static void expect_overlay(struct stage *s, const char *name, enum condition_status status,
                           const char *reason, const char *words)
{
    AUTO_OBJECT object = get(s->w->store, &nodeoverlay_kind, name);
    const struct nodeoverlay *overlay = nodeoverlay_of(object);
    const struct condition *condition =
        condition_find(overlay->status.conditions.items, overlay->status.conditions.count,
                       CONDITION_VALIDATION_SUCCEEDED);
    EXPECT_TRUE(condition);
    EXPECT_STR(condition->reason, reason);
    EXPECT_EQ(condition->status, status);
    EXPECT_HAS(condition->message, words);
    const struct condition *ready = condition_find(
        overlay->status.conditions.items, overlay->status.conditions.count, CONDITION_READY);
    EXPECT_EQ(ready->status, status);
}

/* Of the smallest type as spot in the first zone: what a plan would reckon with. */
static double spot_price(struct stage *s)
{
    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, "a");
    AUTO_INSTANCE_TYPES types = NULL;
    struct err err = { 0 };
    EXPECT_OK(
        s->c->provider->get_instance_types(s->c->provider->ctx, nodepool_of(pool), &types, &err),
        err);
    uint32_t t = instance_types_find(types, STR("c-1x-amd64-linux"));
    for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
        if (str_eqz(shape->capacity_type, "spot") && str_eqz(shape->zone, "test-zone-a"))
            return usd_hour_double(instance_types_price(types, o));
    }
    return -1;
}

TEST(an_accepted_overlay_says_so_and_changes_prices)
{
    AUTO(stage) s = start_with(true);
    settle(s);
    double plain = spot_price(s);
    make_overlay(s, "cheap", ON_SPOT ",'price':'0.001'");
    settle(s);
    expect_overlay(s, "cheap", CONDITION_TRUE, "ValidationSucceeded", "");
    EXPECT_TRUE(plain > 0.001);
    EXPECT_TRUE(spot_price(s) == 0.001);

    remove_it(s->w->store, &nodeoverlay_kind, "cheap");
    settle(s);
    EXPECT_TRUE(spot_price(s) == plain);
}

TEST(of_two_that_clash_the_later_in_order_is_rejected_and_a_change_of_weight_settles_it)
{
    AUTO(stage) s = start_with(true);
    make_overlay(s, "first", ON_SPOT ",'price':'0.001'");
    make_overlay(s, "second", ON_SPOT ",'price':'0.002'");
    settle(s);
    expect_overlay(s, "second", CONDITION_TRUE, "ValidationSucceeded", "");
    expect_overlay(s, "first", CONDITION_FALSE, "Conflict", "second");
    EXPECT_TRUE(spot_price(s) == 0.002);

    object_unref(merge(s->w->store, &nodeoverlay_kind, "first", js("{'spec':{'weight':10}}")));
    settle(s);
    expect_overlay(s, "first", CONDITION_TRUE, "ValidationSucceeded", "");
    expect_overlay(s, "second", CONDITION_TRUE, "ValidationSucceeded", "");
    EXPECT_TRUE(spot_price(s) == 0.001);
}

TEST(prices_are_not_relied_on_before_overlays_have_been_looked_at)
{
    AUTO(stage) s = start_with(true);
    make_overlay(s, "cheap", ON_SPOT ",'price':'0.001'");
    settle(s);
    stage_restart(s);
    EXPECT_FALSE(overlays_published(s->c));
    settle(s);
    EXPECT_TRUE(overlays_published(s->c));
    EXPECT_TRUE(spot_price(s) == 0.001);
}

TEST(without_the_gate_nothing_is_judged_and_nobody_waits)
{
    AUTO(stage) s = start_with(false);
    make_overlay(s, "cheap", ON_SPOT ",'price':'0.001'");
    EXPECT_TRUE(overlays_published(s->c));
    stage_pass(s, 60);
    AUTO_OBJECT overlay = get(s->w->store, &nodeoverlay_kind, "cheap");
    EXPECT_EQ(nodeoverlay_of(overlay)->status.conditions.count, 0);
    EXPECT_TRUE(spot_price(s) > 0.001);
}

TEST(a_new_pool_is_judged_with_the_others)
{
    AUTO(stage) s = start_with(true);
    make_overlay(s, "first",
                 "'requirements':[{'key':'karpenter.sh/nodepool','operator':'In','values':['b']}],"
                 "'price':'0.001'");
    make_overlay(s, "second",
                 "'requirements':[{'key':'karpenter.sh/nodepool','operator':'In',"
                 "'values':['a','b']}],'price':'0.002'");
    settle(s);
    expect_overlay(s, "first", CONDITION_TRUE, "ValidationSucceeded", "");
    object_unref(make_pool(s, "b", ""));
    settle(s);
    expect_overlay(s, "first", CONDITION_FALSE, "Conflict", "second");
}

/* A store in which every patch of an overlay's status meets a change by somebody else. */
struct contested {
    struct store store;
    struct store_ops ops;
    const struct store *inner;
    bool on;
    int conflicts;
};

static int contested_patch(void *ctx, struct object_ref ref, struct patch_options opts,
                           struct str patch, const struct object **out, struct err *err)
{
    struct contested *c = ctx;
    if (c->on && ref.kind == &nodeoverlay_kind && opts.status) {
        c->conflicts++;
        return err_set(err, ERR_CONFLICT, "somebody else was first");
    }
    return c->inner->ops->patch(c->inner->ctx, ref, opts, patch, out, err);
}

static struct contested *contested_of(void *ctx)
{
    return ctx;
}

static int contested_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                          struct object_list *out, struct err *err)
{
    const struct store *inner = contested_of(ctx)->inner;
    return inner->ops->list(inner->ctx, kind, opts, out, err);
}

static int contested_watch(void *ctx, const struct kind *kind, const struct watch_options *opts,
                           struct watch **out, struct err *err)
{
    const struct store *inner = contested_of(ctx)->inner;
    return inner->ops->watch(inner->ctx, kind, opts, out, err);
}

TEST(a_verdict_that_cannot_be_written_is_not_put_to_use)
{
    struct contested contested = { .on = true };
    struct stage_options options = { .controllers = under_test,
                                     .count = KV_COUNT_OF(under_test),
                                     .settings = control_settings_default,
                                     .maybe_store = &contested.store };
    options.settings.node_overlays = true;
    struct stage *s = stage_new_idle(options);
    contested.inner = s->w->store;
    contested.ops = (struct store_ops){ .list = contested_list,
                                        .watch = contested_watch,
                                        .patch = contested_patch };
    contested.store = (struct store){ &contested.ops, &contested };
    object_unref(make_pool(s, "a", ""));
    make_overlay(s, "cheap", ON_SPOT ",'price':'0.001'");
    stage_restart(s);

    stage_pass(s, 5);
    EXPECT_TRUE(contested.conflicts > 1);
    EXPECT_FALSE(overlays_published(s->c));
    EXPECT_TRUE(spot_price(s) > 0.001);
    contested.on = false;
    stage_pass(s, 60);
    EXPECT_TRUE(overlays_published(s->c));
    EXPECT_TRUE(spot_price(s) == 0.001);
    stage_free(s);
}

static enum err_kind deny_overlay_writes(void *ctx, const struct embedded_call *call)
{
    uint32_t *denied = ctx;
    if (call->verb != EMBEDDED_PATCH || call->kind != &nodeoverlay_kind)
        return ERR_NONE;
    (*denied)++;
    return ERR_DENIED;
}

TEST(a_verdict_that_nobody_may_write_holds_up_nothing_and_is_tried_again)
{
    AUTO(stage) s = start_with(true);
    uint32_t denied = 0;
    make_overlay(s, "cheap", ON_SPOT ",'price':'0.001'");
    embedded_set_faults(s->w->e,
                        &(struct embedded_faults){ .before = deny_overlay_writes, .ctx = &denied });
    settle(s);
    EXPECT_TRUE(overlays_published(s->c));
    EXPECT_TRUE(spot_price(s) == 0.001);
    stage_pass(s, 3600);
    EXPECT_TRUE(denied > 30);
    EXPECT_TRUE(denied < 150); /* once a minute, or a little more often */
    embedded_set_faults(s->w->e, NULL);
    stage_pass(s, 120);
    expect_overlay(s, "cheap", CONDITION_TRUE, "ValidationSucceeded", "");
}

TEST(a_settled_set_is_evaluated_every_six_hours_written_never_and_layered_once)
{
    AUTO(stage) s = start_with(true);
    make_overlay(s, "cheap", ON_SPOT ",'price':'0.001'");
    settle(s);
    (void)spot_price(s);
    AUTO_OBJECT before = get(s->w->store, &nodeoverlay_kind, "cheap");
    struct instance_cache_stats cache = instance_cache_stats(s->c->cache);
    uint64_t reconciles = control_stats(s->c).reconciles;
    stage_pass(s, 24 * 3600);
    (void)spot_price(s);
    AUTO_OBJECT after = get(s->w->store, &nodeoverlay_kind, "cheap");
    EXPECT_EQ(after->meta.resource_version, before->meta.resource_version);
    EXPECT_EQ(control_stats(s->c).reconciles - reconciles, 4);
    EXPECT_EQ(instance_cache_stats(s->c->cache).layers_built, cache.layers_built);
}
