#include "cloud/dry_run_provider.h"

#include "api/kinds.h"
#include "store/log_testing.h"
#include "store/testing.h"

/* A cloud with at most one instance. */
struct small_cloud {
    struct instance instance; /* provider_id empty: none */
    uint32_t writes;
};

static int small_get(void *ctx, struct str provider_id, struct arena *arena KV_UNUSED,
                     struct instance *out, struct err *err)
{
    const struct small_cloud *c = ctx;
    if (!str_eq(provider_id, c->instance.provider_id))
        return err_set(err, ERR_NOT_FOUND, "no such instance");
    *out = c->instance;
    return 0;
}

static int small_list(void *ctx, struct arena *arena KV_UNUSED, struct instances *out,
                      struct err *err KV_UNUSED)
{
    const struct small_cloud *c = ctx;
    *out = (struct instances){ &c->instance, c->instance.provider_id.len ? 1 : 0 };
    return 0;
}

static int small_create(void *ctx, const struct nodeclaim *claim KV_UNUSED,
                        struct arena *arena KV_UNUSED, struct instance *out KV_UNUSED,
                        struct launch_failure *why KV_UNUSED, struct err *err)
{
    ((struct small_cloud *)ctx)->writes++;
    return err_set(err, ERR_INTERNAL, "launched");
}

static int small_delete(void *ctx, const struct nodeclaim *claim KV_UNUSED, struct err *err)
{
    ((struct small_cloud *)ctx)->writes++;
    return err_set(err, ERR_INTERNAL, "terminated");
}

struct dry {
    struct world *w;
    struct heard *heard;
    struct small_cloud cloud;
    struct cloud_provider inner;
    struct dry_run *run;
    struct dry_run_provider *provider;
    const struct cloud_provider *port;
    struct arena arena;
};

static struct dry *dry_new(void)
{
    struct dry *d = kv_calloc(1, sizeof *d);
    d->w = world_new((struct embedded_options){ .seed = 1 });
    const struct clock *clock = virtual_clock_port(d->w->time);
    d->heard = heard_new(clock);
    d->run = dry_run_new((struct dry_run_options){
        .inner = d->w->store, .pool = d->w->pool, .clock = clock, .log = d->heard->log });
    d->inner = (struct cloud_provider){ .get = small_get,
                                        .list = small_list,
                                        .create = small_create,
                                        .delete_ = small_delete,
                                        .name = "small",
                                        .ctx = &d->cloud };
    d->provider = dry_run_provider_new((struct dry_run_provider_options){
        .inner = &d->inner, .dry_run = d->run, .clock = clock, .log = d->heard->log });
    d->port = dry_run_provider_port(d->provider);
    return d;
}

static void dry_free(struct dry *d)
{
    EXPECT_EQ(d->cloud.writes, 0); /* whatever a test does */
    arena_done(&d->arena);
    dry_run_provider_free(d->provider);
    dry_run_free(d->run);
    heard_free(d->heard);
    world_free(d->w);
    free(d);
}
KV_AUTO_TYPE(dry, dry_free)

static const struct object *make_claim(struct dry *d, const char *name, const char *provider_id)
{
    object_unref(make(d->w->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'web'}},"
                         "'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh',"
                         "'kind':'KWOKNodeClass','name':'default'},'requirements':["
                         "{'key':'topology.kubernetes.io/zone','operator':'In','values':['z1']},"
                         "{'key':'node.kubernetes.io/instance-type','operator':'In',"
                         "'values':['a','b']}],'resources':{}}}",
                         name)));
    if (*provider_id)
        object_unref(merge_status(d->w->store, &nodeclaim_kind, name,
                                  js("{'status':{'providerID':'%s'}}", provider_id)));
    return get(d->w->store, &nodeclaim_kind, name);
}

static int launch(struct dry *d, const struct object *claim, struct instance *out, struct err *err)
{
    struct launch_failure why;
    return d->port->create(d->port->ctx, nodeclaim_of(claim), &d->arena, out, &why, err);
}

static int terminate(struct dry *d, const struct object *claim, struct err *err)
{
    return d->port->delete_(d->port->ctx, nodeclaim_of(claim), err);
}

TEST(a_launch_is_told_once_per_claim_and_answered_with_an_instance_that_is_nowhere)
{
    AUTO(dry) d = dry_new();
    struct instance first, again;
    struct err err = { 0 };
    AUTO_OBJECT a = make_claim(d, "a", "");
    AUTO_OBJECT b = make_claim(d, "b", "");
    EXPECT_OK(launch(d, a, &first, &err), err);
    EXPECT_OK(launch(d, a, &again, &err), err);
    EXPECT_TRUE(str_starts(first.provider_id, STR(DRY_RUN_PROVIDER_PREFIX)));
    EXPECT_TRUE(str_eq(first.provider_id, again.provider_id));
    EXPECT_STR(first.claim_name, "a");
    EXPECT_STR(first.nodepool, "web");
    EXPECT_STR(first.zone, "z1");
    EXPECT_STR(first.instance_type, ""); /* there was a choice */
    EXPECT_EQ(heard_count(d->heard, "would launch"), 1);
    EXPECT_OK(launch(d, b, &again, &err), err);
    EXPECT_EQ(heard_count(d->heard, "would launch"), 2);
    EXPECT_EQ(heard_count(d->heard, "claim=b nodepool=web"), 1);
    EXPECT_Z(d->port->name, "small");
}

TEST(a_claim_whose_instance_is_there_has_that_one)
{
    AUTO(dry) d = dry_new();
    struct instance found;
    struct err err = { 0 };
    AUTO_OBJECT a = make_claim(d, "a", "small://1");
    d->cloud.instance = (struct instance){ .provider_id = STR("small://1"), .zone = STR("z9") };
    EXPECT_OK(launch(d, a, &found, &err), err);
    EXPECT_STR(found.zone, "z9");
    EXPECT_EQ(heard_count(d->heard, "would"), 0);
}

TEST(a_termination_is_told_once_and_goes_on_for_as_long_as_the_instance_is_there)
{
    AUTO(dry) d = dry_new();
    struct err err = { 0 };
    AUTO_OBJECT by_id = make_claim(d, "a", "small://1");
    AUTO_OBJECT by_name = make_claim(d, "b", "");
    EXPECT_ERR(terminate(d, by_id, &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(terminate(d, by_name, &err), err, ERR_NOT_FOUND);
    d->cloud.instance =
        (struct instance){ .provider_id = STR("small://1"), .claim_name = STR("b") };
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(terminate(d, by_id, &err), err);
        EXPECT_OK(terminate(d, by_name, &err), err);
    }
    EXPECT_EQ(heard_count(d->heard, "would terminate"), 1);
    d->cloud.instance = (struct instance){ .provider_id = STR("small://2"),
                                           .claim_name = STR("b"),
                                           .terminating = true };
    EXPECT_OK(terminate(d, by_name, &err), err);
    EXPECT_EQ(heard_count(d->heard, "would terminate"), 1); /* it ends without us */
}
