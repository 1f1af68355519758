/* The cache seen from outside: as a provider, and in its metrics. */
#include "cloud/instance_cache_testing.h"

/* --- as a provider --- */

static int told_delete(void *ctx, const struct nodeclaim *claim KV_UNUSED, struct err *err)
{
    EXPECT_Z(((struct fake *)ctx)->port.name, "fake");
    return err_set(err, ERR_NOT_FOUND, "gone");
}

static int told_get(void *ctx KV_UNUSED, struct str provider_id, struct arena *arena KV_UNUSED,
                    struct instance *out, struct err *err KV_UNUSED)
{
    out->provider_id = provider_id;
    return 0;
}

static int told_list(void *ctx KV_UNUSED, struct arena *arena KV_UNUSED, struct instances *out,
                     struct err *err KV_UNUSED)
{
    *out = (struct instances){ NULL, 42 };
    return 0;
}

static int told_drifted(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED,
                        const char **reason, struct err *err KV_UNUSED)
{
    *reason = "AMIDrift";
    return 0;
}

static int told_create(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED,
                       struct arena *arena KV_UNUSED, struct instance *out KV_UNUSED,
                       struct launch_failure *why, struct err *err)
{
    why->kind = LAUNCH_CLASS_NOT_READY;
    return err_set(err, ERR_UNAVAILABLE, "not ready");
}

TEST(instance_cache_is_a_provider_and_passes_everything_else_through)
{
    struct fake f;
    fake_init(&f);
    f.port.create = told_create;
    f.port.delete_ = told_delete;
    f.port.get = told_get;
    f.port.list = told_list;
    f.port.is_drifted = told_drifted;
    AUTO(instance_cache) inside = instance_cache_new(
        (struct instance_cache_options){ .provider = &f.port, .clock = f.clock });
    /* Over another cache, as over any provider. */
    AUTO(instance_cache) cache = instance_cache_new((struct instance_cache_options){
        .provider = instance_cache_provider(inside), .clock = f.clock });
    const struct cloud_provider *p = instance_cache_provider(cache);
    struct nodepool pool = pool_of("p", "c");
    struct nodeclaim claim = { 0 };
    struct launch_failure why = { .kind = LAUNCH_OTHER };
    struct instance instance = { 0 };
    struct instances instances = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    const char *reason = "";
    const struct instance_types *types = NULL;

    EXPECT_Z(p->name, "fake");
    EXPECT_OK(p->get_instance_types(p->ctx, &pool, &types, &err), err);
    instance_types_unref(types);
    EXPECT_OK(p->get_instance_types(p->ctx, &pool, &types, &err), err);
    instance_types_unref(types);
    EXPECT_EQ(f.fetches, 1);
    EXPECT_ERR(p->create(p->ctx, &claim, &arena, &instance, &why, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(why.kind, LAUNCH_CLASS_NOT_READY);
    EXPECT_ERR(p->delete_(p->ctx, &claim, &err), err, ERR_NOT_FOUND);
    EXPECT_OK(p->get(p->ctx, STR("fake://1"), &arena, &instance, &err), err);
    EXPECT_STR(instance.provider_id, "fake://1");
    EXPECT_OK(p->list(p->ctx, &arena, &instances, &err), err);
    EXPECT_EQ(instances.count, 42);
    EXPECT_OK(p->is_drifted(p->ctx, &claim, &reason, &err), err);
    EXPECT_Z(reason, "AMIDrift");
    fake_done(&f);
}

TEST(instance_cache_generation_of_the_decorated_provider_has_the_overlays_in_it)
{
    WORLD(w, .node_overlays = true);
    struct nodepool pool = pool_of("p", "c");
    const struct cloud_provider *p = instance_cache_provider(w.cache);
    struct generation before, after;
    struct err err = { 0 };
    EXPECT_OK(p->get_generation(p->ctx, &pool, &before, &err), err);
    lab_overlay(&w.lab, "cheap",
                "{price: '0.05', requirements: [{key: "
                "karpenter.sh/capacity-type, operator: In, values: [spot]}]}");
    set_overlays(&w, 1);
    EXPECT_OK(p->get_generation(p->ctx, &pool, &after, &err), err);
    EXPECT_EQ(generation_difference(&before, &after), GENERATION_OVERLAYS);
}

/* --- metrics --- */

TEST(instance_cache_tells_what_it_does_in_metrics)
{
    struct fake f;
    fake_init(&f);
    AUTO(metrics) metrics = metrics_new(f.clock);
    AUTO_BUF out = { 0 };
    struct nodepool pool = pool_of("p", "c");
    struct err err = { 0 };
    const struct instance_types *types = NULL;
    AUTO(instance_cache) cache = instance_cache_new((struct instance_cache_options){
        .provider = &f.port, .clock = f.clock, .maybe_metrics = metrics });
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(instance_cache_get(cache, &pool, &types, &err), err);
        instance_types_unref(types);
    }
    unavailable_mark(f.marks, STR("t0"), STR("a"), STR("spot"), STR(""));
    EXPECT_OK(instance_cache_get(cache, &pool, &types, &err), err);
    instance_types_unref(types);
    f.failing = true;
    generation_bump(&f.counters, GENERATION_SPOT);
    EXPECT_ERR(instance_cache_get(cache, &pool, &types, &err), err, ERR_THROTTLED);

    for (int scrape = 0; scrape < 2; scrape++) { /* counters are not counted twice */
        static const char *const lines[] = {
            "hits_total 2\n",
            "misses_total{cause=\"cold\"} 1\n",
            "misses_total{cause=\"unavailable\"} 1\n",
            "misses_total{cause=\"spot\"} 1\n",
            "misses_total{cause=\"overlays\"} 0\n",
            "fetches_total 3\n",
            "fetch_errors_total 1\n",
            "refresh_duration_seconds_count 3\n",
            "waiters 0\n",
            "entries 1\n",
            "snapshots 1\n",
            "layers 0\n",
            "generation{member=\"unavailable\"} 1\n",
            "generation{member=\"overlays\"} 0\n",
        };
        buf_clear(&out);
        metrics_write(metrics, &out);
        for (size_t i = 0; i < KV_COUNT_OF(lines); i++) {
            char line[128];
            snprintf(line, sizeof line, "\nkarve_instance_cache_%s", lines[i]);
            EXPECT_HAS(buf_str(&out), line);
        }
        EXPECT_TRUE(strstr(out.p, "member=\"inputs\"") == NULL);
    }
    instance_cache_free(take(&cache)); /* and a scrape after it is gone is fine */
    buf_clear(&out);
    metrics_write(metrics, &out);
    EXPECT_HAS(buf_str(&out), "karve_instance_cache_hits_total 2\n");
    fake_done(&f);
}
