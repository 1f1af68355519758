/* Reading one's own writes, however late the events are. */
#include "control/cluster.h"

#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "store/testing.h"

struct late { /* a cluster whose events come ten seconds late once it has synced */
    struct world *w;
    struct cluster *cluster;
    bool on;
};

static int64_t ten_seconds(void *ctx, const struct kind *kind KV_UNUSED, uint64_t version KV_UNUSED)
{
    return *(bool *)ctx ? 10 * SECOND_NS : 0;
}

static struct late *late_new(void)
{
    struct late *l = kv_calloc(1, sizeof *l);
    l->w = world_new((struct embedded_options){ .seed = 7 });
    embedded_set_faults(l->w->e,
                        &(struct embedded_faults){ .event_delay_ns = ten_seconds, .ctx = &l->on });
    l->cluster = cluster_new(l->w->store, virtual_clock_port(l->w->time), 1);
    cluster_pump(l->cluster);
    EXPECT_TRUE(cluster_synced(l->cluster));
    l->on = true;
    return l;
}

static void late_free(struct late *l)
{
    cluster_free(l->cluster);
    world_free(l->w);
    free(l);
}
KV_AUTO_TYPE(late, late_free)

static void pass(struct late *l, int64_t seconds)
{
    virtual_clock_advance(l->w->time, seconds * SECOND_NS);
    cluster_pump(l->cluster);
}

static const struct object *make_claim(struct late *l, const char *name, const char *pool)
{
    return make(l->w->store, &nodeclaim_kind,
                js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'%s'}},"
                   "'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                   "'name':'default'},'requirements':[]}}",
                   name, pool));
}

static const struct object *known(struct late *l, const char *name)
{
    return cluster_get(l->cluster, &nodeclaim_kind, STR(""), str_of(name));
}

/* The names of a list, joined by spaces. */
static const char *names(struct object_list *list)
{
    static char text[256];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", i ? " " : "",
                                STR_ARG(list->items[i]->meta.name));
    object_list_done(list);
    return text;
}

static const char *all_names(struct late *l)
{
    struct object_list list;
    cluster_list(l->cluster, &nodeclaim_kind, &list);
    return names(&list);
}

static const char *pool_names(struct late *l, const char *pool)
{
    struct object_list list;
    cluster_list_by(l->cluster, CLAIMS_BY_POOL, str_of(pool), &list);
    return names(&list);
}

TEST(an_object_that_was_created_is_read_before_its_event_has_come)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT b = make_claim(l, "b", "web");
    EXPECT_Z(all_names(l), "");
    cluster_assume(l->cluster, b);
    EXPECT_Z(all_names(l), "b");
    EXPECT_Z(pool_names(l, "web"), "b");
    EXPECT_Z(pool_names(l, "other"), "");
    AUTO_OBJECT seen = known(l, "b");
    EXPECT_TRUE(seen == b);
    pass(l, 10);
    EXPECT_Z(all_names(l), "b");
    EXPECT_Z(pool_names(l, "web"), "b");
}

TEST(lists_stay_sorted_with_what_is_assumed_between_what_is_known)
{
    AUTO(late) l = late_new();
    object_unref(make_claim(l, "a", "web"));
    object_unref(make_claim(l, "c", "web"));
    pass(l, 10);
    AUTO_OBJECT b = make_claim(l, "b", "web");
    AUTO_OBJECT d = make_claim(l, "d", "other");
    cluster_assume(l->cluster, d);
    cluster_assume(l->cluster, b);
    EXPECT_Z(all_names(l), "a b c d");
    EXPECT_Z(pool_names(l, "web"), "a b c");
}

TEST(a_change_of_ours_hides_the_older_state_until_something_newer_comes)
{
    AUTO(late) l = late_new();
    object_unref(make_claim(l, "a", "web"));
    pass(l, 10);
    AUTO_OBJECT mine = merge(l->w->store, &nodeclaim_kind, "a",
                             js("{'metadata':{'labels':{'karpenter.sh/nodepool':'other'}}}"));
    cluster_assume(l->cluster, mine);
    EXPECT_Z(pool_names(l, "web"), "");
    EXPECT_Z(pool_names(l, "other"), "a");
    object_unref(merge(l->w->store, &nodeclaim_kind, "a",
                       js("{'metadata':{'labels':{'karpenter.sh/nodepool':'third'}}}")));
    EXPECT_Z(pool_names(l, "other"), "a");
    pass(l, 10);
    EXPECT_Z(pool_names(l, "other"), "");
    EXPECT_Z(pool_names(l, "third"), "a");
}

TEST(of_the_answers_to_two_writers_the_newer_stays_whichever_is_told_first)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT made = make_claim(l, "a", "web");
    pass(l, 10);
    AUTO_OBJECT first = merge(l->w->store, &nodeclaim_kind, "a",
                              js("{'metadata':{'labels':{'karpenter.sh/nodepool':'first'}}}"));
    AUTO_OBJECT second = merge(l->w->store, &nodeclaim_kind, "a",
                               js("{'metadata':{'labels':{'karpenter.sh/nodepool':'second'}}}"));
    cluster_assume(l->cluster, second);
    cluster_assume(l->cluster, first);
    EXPECT_Z(pool_names(l, "second"), "a");
    remove_it(l->w->store, &nodeclaim_kind, "a");
    cluster_assume_gone(l->cluster, made);
    cluster_assume(l->cluster, second);
    EXPECT_Z(all_names(l), "");
    pass(l, 10);
    EXPECT_Z(all_names(l), "");
}

TEST(what_somebody_else_deleted_after_our_write_is_gone_once_the_events_are_here)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT a = make_claim(l, "a", "web");
    cluster_assume(l->cluster, a);
    remove_it(l->w->store, &nodeclaim_kind, "a");
    EXPECT_Z(all_names(l), "a");
    pass(l, 10);
    EXPECT_Z(all_names(l), "");
    EXPECT_TRUE(known(l, "a") == NULL);
}

TEST(what_we_deleted_is_gone_at_once_and_stays_gone)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT a = make_claim(l, "a", "web");
    pass(l, 10);
    EXPECT_Z(all_names(l), "a");
    remove_it(l->w->store, &nodeclaim_kind, "a");
    cluster_assume_gone(l->cluster, a);
    EXPECT_Z(all_names(l), "");
    EXPECT_Z(pool_names(l, "web"), "");
    EXPECT_TRUE(known(l, "a") == NULL);
    pass(l, 10);
    EXPECT_Z(all_names(l), "");
}

TEST(what_we_created_and_deleted_before_any_event_came_never_shows_up)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT a = make_claim(l, "a", "web");
    virtual_clock_advance(l->w->time, 5 * SECOND_NS);
    cluster_assume(l->cluster, a);
    remove_it(l->w->store, &nodeclaim_kind, "a");
    cluster_assume_gone(l->cluster, a);
    for (int i = 0; i < 20; i++) {
        EXPECT_Z(all_names(l), "");
        pass(l, 1);
    }
}

TEST(a_name_that_is_used_again_is_the_new_object)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT a = make_claim(l, "a", "web");
    pass(l, 10);
    remove_it(l->w->store, &nodeclaim_kind, "a");
    cluster_assume_gone(l->cluster, a);
    AUTO_OBJECT again = make_claim(l, "a", "other");
    cluster_assume(l->cluster, again);
    for (int i = 0; i < 20; i++) {
        AUTO_OBJECT seen = known(l, "a");
        EXPECT_TRUE(seen && str_eq(seen->meta.uid, again->meta.uid));
        EXPECT_Z(pool_names(l, "other"), "a");
        pass(l, 1);
    }
}

TEST(what_was_thought_gone_but_is_kept_by_a_finalizer_comes_back_with_its_event)
{
    AUTO(late) l = late_new();
    AUTO_OBJECT a = make_claim(l, "a", "web");
    pass(l, 10);
    object_unref(merge(l->w->store, &nodeclaim_kind, "a",
                       js("{'metadata':{'finalizers':['example.com/hold']}}")));
    remove_it(l->w->store, &nodeclaim_kind, "a");
    cluster_assume_gone(l->cluster, a);
    EXPECT_TRUE(known(l, "a") == NULL);
    pass(l, 10);
    AUTO_OBJECT seen = known(l, "a");
    EXPECT_TRUE(seen && seen->meta.deleted_us);
}

TEST(claims_and_pools_are_found_by_group_kind_and_name_of_their_class)
{
    AUTO(late) l = late_new();
    AUTO_ARENA arena = { 0 };
    struct object_list list;
    AUTO_OBJECT a = make_claim(l, "a", "web");
    AUTO_OBJECT other =
        make(l->w->store, &nodeclaim_kind,
             js("{'metadata':{'name':'other'},'spec':{'nodeClassRef':{'group':'karpenter.k8s.aws',"
                "'kind':'EC2NodeClass','name':'default'},'requirements':[]}}"));
    pass(l, 10);
    struct str key = cluster_class_key(&arena, &nodeclaim_of(a)->spec.node.node_class_ref);
    EXPECT_STR(key, "karpenter.kwok.sh/KWOKNodeClass/default");
    cluster_list_by(l->cluster, CLAIMS_BY_CLASS, key, &list);
    EXPECT_Z(names(&list), "a");
    key = cluster_class_key(&arena, &nodeclaim_of(other)->spec.node.node_class_ref);
    cluster_list_by(l->cluster, CLAIMS_BY_CLASS, key, &list);
    EXPECT_Z(names(&list), "other");
}

TEST(the_version_of_a_kind_changes_with_events_and_with_writes_of_our_own)
{
    AUTO(late) l = late_new();
    uint64_t before = cluster_version(l->cluster, &nodeclaim_kind);
    AUTO_OBJECT a = make_claim(l, "a", "web");
    EXPECT_EQ(cluster_version(l->cluster, &nodeclaim_kind), before);
    cluster_assume(l->cluster, a);
    uint64_t assumed = cluster_version(l->cluster, &nodeclaim_kind);
    EXPECT_TRUE(assumed != before);
    pass(l, 10);
    EXPECT_TRUE(cluster_version(l->cluster, &nodeclaim_kind) != assumed);
}
