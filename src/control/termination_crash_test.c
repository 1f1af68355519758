/* A node ends in the same way whichever call goes wrong on the way: it fails, it fails after it took
 * effect, or the process dies before or after it. Every call that writes or asks the cloud is tried.
 */
#include "codec/duration.h"
#include "control/termination_testing.h"

enum mishap {
    UNAVAILABLE,      /* the call fails */
    LOST_REPLY,       /* it takes effect, and is said to have failed */
    CONFLICT,         /* it comes too late; to the cloud: it cannot be reached */
    DEATH,            /* the process ends before it */
    DEATH_AFTERWARDS, /* the process ends after it */
    MISHAP_COUNT
};

struct trial {
    struct scene *x;
    enum mishap mishap;
    uint32_t at;    /* the call that goes wrong, from 1; 0: none */
    uint32_t calls; /* so far */
    bool running;   /* the control plane is: what the test itself does always works */
    bool dead;
};

static bool mishap_is_late(const struct trial *t)
{
    return t->mishap == LOST_REPLY || t->mishap == DEATH_AFTERWARDS;
}

static enum err_kind go_wrong(struct trial *t)
{
    t->dead = t->mishap == DEATH || t->mishap == DEATH_AFTERWARDS;
    return t->dead ? ERR_CANCELLED : t->mishap == CONFLICT ? ERR_CONFLICT : ERR_UNAVAILABLE;
}

static enum err_kind before_call(struct trial *t)
{
    if (!t->running)
        return ERR_NONE;
    if (t->dead)
        return ERR_CANCELLED;
    return ++t->calls == t->at && !mishap_is_late(t) ? go_wrong(t) : ERR_NONE;
}

static enum err_kind after_call(struct trial *t)
{
    return t->running && t->calls == t->at && !t->dead && mishap_is_late(t) ? go_wrong(t)
                                                                            : ERR_NONE;
}

static bool is_write(const struct embedded_call *call)
{
    return call->verb == EMBEDDED_CREATE || call->verb == EMBEDDED_PATCH ||
           call->verb == EMBEDDED_REMOVE || call->verb == EMBEDDED_EVICT;
}

static enum err_kind store_before(void *ctx, const struct embedded_call *call)
{
    return is_write(call) ? before_call(ctx) : ERR_NONE;
}

static enum err_kind store_after(void *ctx, const struct embedded_call *call)
{
    return is_write(call) ? after_call(ctx) : ERR_NONE;
}

static enum err_kind cloud_trouble(void *ctx, bool after)
{
    struct trial *t = ctx;
    enum err_kind kind = after ? after_call(t) : before_call(t);
    return kind == ERR_CONFLICT ? ERR_UNAVAILABLE : kind;
}

static void second(struct trial *t)
{
    struct scene *x = t->x;
    t->running = true;
    stage_pass(x->s, 1);
    if (t->dead) {
        stage_restart(x->s);
        t->dead = false;
        settle(x->s);
    }
    t->running = false;
    kubelet(x);
    /* The detacher: when the pod that had the volume is gone. */
    if (!has(x, &pod_kind, "web") && has(x, &volume_attachment_kind, "va"))
        remove_it(x->s->w->store, &volume_attachment_kind, "va");
    /* No instance goes while a pod is there that should leave first. */
    if (x->cloud.gone_ns != INT64_MAX) {
        EXPECT_FALSE(has(x, &pod_kind, "web"));
        EXPECT_FALSE(has(x, &pod_kind, "blocked"));
        EXPECT_FALSE(has(x, &pod_kind, "critical"));
    }
}

/* How many calls it took. */
static uint32_t run_trial(enum mishap mishap, uint32_t at)
{
    AUTO(scene) x = scene_new("'terminationGracePeriod':'80s',", true);
    struct trial t = { .x = x, .mishap = mishap, .at = at };
    const struct store *store = x->s->w->store;

    x->kubelet_is_slow = true;
    object_unref(make(store, &pdb_kind,
                      js("{'metadata':{'name':'b'},'spec':{'minAvailable':1,"
                         "'selector':{'matchLabels':{'app':'kept'}}}}")));
    object_unref(make(store, &volume_attachment_kind,
                      js("{'metadata':{'name':'va'},'spec':{'attacher':'ebs','nodeName':'" NODE
                         "','source':{'persistentVolumeName':'pv'}}}")));
    add_pod(x, "web", "", ",'terminationGracePeriodSeconds':5");
    add_pod(x, "blocked", "", "");
    object_unref(merge(store, &pod_kind, "blocked", js("{'metadata':{'labels':{'app':'kept'}}}")));
    add_pod(x, "critical", "", SYSTEM_CRITICAL);
    add_pod(x, "agent", "", TOLERATES_ALL);
    stage_pass(x->s, 1);

    embedded_set_faults(x->s->w->e, &(struct embedded_faults){
                                        .before = store_before, .after = store_after, .ctx = &t });
    x->cloud.trouble = cloud_trouble;
    x->cloud.trouble_ctx = &t;
    remove_it(store, &node_kind, NODE);
    for (int i = 0; i < 150; i++)
        second(&t);
    embedded_set_faults(x->s->w->e, NULL);

    EXPECT_FALSE(has(x, &node_kind, NODE));
    EXPECT_FALSE(has(x, &nodeclaim_kind, "claim-1"));
    EXPECT_FALSE(x->cloud.is_there);
    EXPECT_FALSE(is_going(x, "agent"));
    return t.calls;
}

static void sweep(enum mishap mishap)
{
    uint32_t most = run_trial(mishap, 0);
    EXPECT_TRUE(most > 20);
    for (uint32_t at = 1; at <= most; at++)
        run_trial(mishap, at);
}

TEST(any_call_may_fail)
{
    sweep(UNAVAILABLE);
}

TEST(any_call_may_take_effect_and_be_said_to_have_failed)
{
    sweep(LOST_REPLY);
}

TEST(any_call_may_meet_a_change_by_somebody_else)
{
    sweep(CONFLICT);
}

TEST(the_process_may_die_before_any_call)
{
    sweep(DEATH);
}

TEST(the_process_may_die_after_any_call)
{
    sweep(DEATH_AFTERWARDS);
}
