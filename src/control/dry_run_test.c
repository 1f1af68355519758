/* The whole control plane on a store and a provider that are only looked at. */
#include "cloud/dry_run_provider.h"
#include "control/testing.h"
#include "store/log_testing.h"

struct dry {
    struct stage *s;
    struct heard *heard;
    struct dry_run *run;
    struct kwok *kwok; /* its writes are not done either */
    struct dry_run_provider *provider;
    struct buf before; /* the store as it was */
};

static struct dry *dry_new(void)
{
    struct dry *d = kv_calloc(1, sizeof *d);
    d->s = stage_new_idle(
        (struct stage_options){ .controllers = controllers, .count = controller_count });
    const struct clock *clock = virtual_clock_port(d->s->w->time);
    d->heard = heard_new(clock);
    d->run = dry_run_new((struct dry_run_options){
        .inner = d->s->w->store, .pool = d->s->w->pool, .clock = clock, .log = d->heard->log });
    d->kwok = kwok_new(
        (struct kwok_options){ .store = dry_run_store(d->run), .clock = clock, .seed = 1 });
    d->provider = dry_run_provider_new((struct dry_run_provider_options){
        .inner = kwok_provider(d->kwok), .dry_run = d->run, .clock = clock, .log = d->heard->log });
    return d;
}

static void dry_free(struct dry *d)
{
    stage_free(d->s);
    dry_run_provider_free(d->provider);
    kwok_free(d->kwok);
    dry_run_free(d->run);
    heard_free(d->heard);
    buf_done(&d->before);
    free(d);
}
KV_AUTO_TYPE(dry, dry_free)

/* From here on nothing may change. */
static void begin(struct dry *d)
{
    embedded_dump(d->s->w->e, &d->before);
    d->s->options.maybe_store = dry_run_store(d->run);
    d->s->options.settings = control_settings_default;
    d->s->options.settings.dry_run = true;
    d->s->provider = dry_run_provider_port(d->provider);
    stage_restart(d->s);
}

static void expect_untouched(struct dry *d)
{
    AUTO_BUF now = { 0 };
    embedded_dump(d->s->w->e, &now);
    EXPECT_TRUE(str_eq(buf_str(&now), buf_str(&d->before)));
}

TEST(a_dry_run_says_once_what_it_would_create_and_touches_nothing_for_hours)
{
    AUTO(dry) d = dry_new();
    object_unref(make_pool(d->s, "default", ""));
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "web-%d", i);
        make_pending(d->s, name, "200"); /* one to a node: three equal claims */
    }
    begin(d);
    stage_pass(d->s, 60);
    EXPECT_EQ(heard_count(d->heard, "kind=NodeClaim"), 3);
    AUTO_BUF first = { 0 };
    heard_text(d->heard, &first);
    for (int hour = 0; hour < 6; hour++) {
        control_resync(d->s->c);
        stage_pass(d->s, 3600);
        expect_untouched(d);
    }
    EXPECT_EQ(heard_count(d->heard, "would create"), 3);
    EXPECT_EQ(heard_count(d->heard, "nodepool=default"), 3);
    EXPECT_EQ(heard_count(d->heard, "reason=Nominated"), 3);
    EXPECT_EQ(heard_count(d->heard, "ERROR"), 0);
    AUTO_BUF all = { 0 };
    heard_text(d->heard, &all);
    EXPECT_EQ(all.len, first.len); /* hours later nothing new was said */
}

/* As when somebody tries it out before a controller that looks at pools has ever run. */
static struct dry *dry_with_unseen_pool(const char *class_)
{
    struct dry *d = dry_new();
    object_unref(make(d->s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'unseen'},'spec':{'template':{'spec':{'nodeClassRef':"
                         "{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass','name':'%s'},"
                         "'requirements':[]}}}}",
                         class_)));
    make_pending(d->s, "web", "1");
    begin(d);
    stage_pass(d->s, 60);
    expect_untouched(d);
    return d;
}

TEST(a_pool_that_nobody_has_looked_at_is_judged_by_the_dry_run_itself)
{
    AUTO(dry) ready = dry_with_unseen_pool("default");
    EXPECT_EQ(heard_count(ready->heard, "nodepool=unseen"), 1);
    EXPECT_EQ(heard_count(ready->heard, "reason=FailedScheduling"), 0);

    AUTO(dry) not_ready = dry_with_unseen_pool("absent");
    EXPECT_EQ(heard_count(not_ready->heard, "nodepool=unseen"), 0);
    EXPECT_EQ(heard_count(not_ready->heard, "reason=FailedScheduling"), 1);
}

/* In a living cluster something always changes, and every pass decides anew. */
TEST(a_decision_that_is_made_again_because_something_else_changed_is_told_once)
{
    AUTO(dry) d = dry_new();
    object_unref(make_pool(d->s, "default", ""));
    make_pending(d->s, "web-0", "200");
    make_pending(d->s, "web-1", "200");
    make_node(d->s->w->store, "other");
    begin(d);
    for (int i = 0; i < 50; i++) {
        object_unref(merge(d->s->w->store, &node_kind, "other",
                           js("{'metadata':{'annotations':{'beat':'%d'}}}", i)));
        stage_pass(d->s, 60);
    }
    EXPECT_TRUE(control_stats(d->s->c).passes > 20);
    EXPECT_EQ(heard_count(d->heard, "would create"), 2);
    EXPECT_EQ(heard_count(d->heard, "reason=Nominated"), 2);
    EXPECT_EQ(count_of(d->s, &nodeclaim_kind), 0);

    make_pending(d->s, "web-2", "200"); /* a new decision */
    stage_pass(d->s, 60);
    EXPECT_EQ(heard_count(d->heard, "would create"), 3);
}

TEST(a_pod_without_a_place_is_told_once)
{
    AUTO(dry) d = dry_new();
    object_unref(make_pool(d->s, "default", ""));
    make_pending(d->s, "giant", "100000");
    begin(d);
    for (int i = 0; i < 6; i++) {
        control_resync(d->s->c);
        stage_pass(d->s, 3600);
    }
    expect_untouched(d);
    EXPECT_EQ(heard_count(d->heard, "would create"), 0);
    EXPECT_EQ(heard_count(d->heard, "reason=FailedScheduling"), 1);
    EXPECT_EQ(heard_count(d->heard, "kind=Pod name=default/giant patch="), 1);
}

static void make_claim(struct dry *d, const char *name, const char *provider_id)
{
    object_unref(make(d->s->w->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'default'},"
                         "'finalizers':['karpenter.sh/termination']},'spec':{"
                         "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                         "'name':'default'},'requirements':[],'resources':{}}}",
                         name)));
    if (*provider_id)
        object_unref(merge_status(d->s->w->store, &nodeclaim_kind, name,
                                  js("{'status':{'providerID':'%s'}}", provider_id)));
}

/* Somebody else's claim, which is not launched yet: here it never will be. */
TEST(a_claim_that_waits_for_its_instance_is_no_failure_of_its_pool)
{
    AUTO(dry) d = dry_new();
    object_unref(make_pool(d->s, "default", ""));
    make_claim(d, "waits", "");
    begin(d);
    for (int i = 0; i < 6; i++) {
        control_resync(d->s->c);
        stage_pass(d->s, 3600);
    }
    expect_untouched(d);
    EXPECT_EQ(heard_count(d->heard, "would launch"), 1);
    EXPECT_EQ(heard_count(d->heard, "would delete"), 0);
    EXPECT_EQ(heard_count(d->heard, "LaunchFailed"), 0);
    EXPECT_EQ(heard_count(d->heard, "\\\"NodeRegistrationHealthy\\\",\\\"status\\\":\\\"False"), 0);
}

/* Each step is told until one has to have happened before the next can be known: a node is drained. */
TEST(a_node_that_ends_is_told_as_far_as_it_can_be_known)
{
    AUTO(dry) d = dry_new();
    object_unref(make_pool(d->s, "default", ""));
    make_claim(d, "ends", "kwok://n1");
    object_unref(make(d->s->w->store, &node_kind,
                      js("{'metadata':{'name':'n1','labels':{'karpenter.sh/nodepool':'default',"
                         "'karpenter.sh/registered':'true'},"
                         "'finalizers':['karpenter.sh/termination']},"
                         "'spec':{'providerID':'kwok://n1'}}")));
    make_pod(d->s->w->store, "p", "");
    bind_pod(d->s->w->store, "p", "n1");
    remove_it(d->s->w->store, &nodeclaim_kind, "ends");
    remove_it(d->s->w->store, &node_kind, "n1");
    begin(d);
    for (int i = 0; i < 3; i++) {
        control_resync(d->s->c);
        stage_pass(d->s, 3600);
    }
    expect_untouched(d);
    EXPECT_EQ(heard_count(d->heard, "karpenter.sh/disrupted"), 1);
    EXPECT_EQ(heard_count(d->heard, "would evict"), 1);
    EXPECT_EQ(heard_count(d->heard, "pod=default/p"), 1);
    EXPECT_EQ(heard_count(d->heard, "would delete"), 0); /* both are on their way out */
    EXPECT_EQ(heard_count(d->heard, "would terminate"), 0);
}
