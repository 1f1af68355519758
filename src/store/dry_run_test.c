#include "store/dry_run.h"

#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "api/policy.h"
#include "store/log_testing.h"
#include "store/testing.h"

struct dry {
    struct world *w;
    struct heard *heard;
    struct dry_run *run;
    const struct store *store;
};

static struct dry *dry_new(void)
{
    struct dry *d = kv_calloc(1, sizeof *d);
    d->w = world_new((struct embedded_options){ .seed = 5 });
    d->heard = heard_new(virtual_clock_port(d->w->time));
    d->run = dry_run_new((struct dry_run_options){ .inner = d->w->store,
                                                   .pool = d->w->pool,
                                                   .clock = virtual_clock_port(d->w->time),
                                                   .log = d->heard->log });
    d->store = dry_run_store(d->run);
    return d;
}

static void dry_free(struct dry *d)
{
    dry_run_free(d->run);
    heard_free(d->heard);
    world_free(d->w);
    free(d);
}
KV_AUTO_TYPE(dry, dry_free)

static struct str claim_json(const char *name, const char *cpu)
{
    return js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'web'}},'spec':{"
              "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
              "'name':'default'},'requirements':[{'key':'node.kubernetes.io/instance-type',"
              "'operator':'In','values':['a','b','c']}],'resources':{'requests':{'cpu':'%s'}}}}",
              name, cpu);
}

/* Nothing that a test does through d->store may change this. */
static void expect_untouched(struct dry *d, uint64_t version)
{
    EXPECT_EQ(embedded_version(d->w->e), version);
}

TEST(reads_pass)
{
    AUTO(dry) d = dry_new();
    AUTO_BUF text = { 0 };
    struct object_list list = { 0 };
    struct err err = { 0 };
    make_node(d->w->store, "n");
    AUTO_OBJECT node = get(d->store, &node_kind, "n");
    EXPECT_STR(node->meta.name, "n");
    EXPECT_OK(store_get_json(d->store, at(&node_kind, "n"), &text, &err), err);
    EXPECT_OK(store_list(d->store, &node_kind, NULL, &list, &err), err);
    EXPECT_EQ(list.count, 1);
    object_list_done(&list);
    struct watch *w = watch(d->store, &node_kind, (struct watch_options){ 0 });
    EXPECT_Z(event_text(w, NULL), "ADDED n");
    watch_close(w);
    EXPECT_EQ(store_version(d->store), embedded_version(d->w->e));
    EXPECT_EQ(dry_run_writes(d->run), 0);
}

TEST(a_created_object_comes_back_as_if_it_were_there_and_is_not)
{
    AUTO(dry) d = dry_new();
    uint64_t before = embedded_version(d->w->e);
    AUTO_OBJECT claim = make(d->store, &nodeclaim_kind, claim_json("web-1", "2"));
    EXPECT_STR(claim->meta.name, "web-1");
    EXPECT_EQ(claim->meta.uid.len, 36);
    EXPECT_EQ(claim->meta.created_us, START_US);
    EXPECT_EQ(claim->meta.generation, 1);
    EXPECT_EQ(claim->meta.resource_version, 0);
    EXPECT_FALSE(is_there(d->store, &nodeclaim_kind, "web-1"));
    expect_untouched(d, before);
    EXPECT_EQ(dry_run_writes(d->run), 1);
    EXPECT_EQ(heard_count(d->heard, "would create"), 1);
    EXPECT_EQ(heard_count(d->heard, "kind=NodeClaim name=web-1 nodepool=web instance-types=3"), 1);
}

TEST(a_generated_name_is_made_up)
{
    AUTO(dry) d = dry_new();
    AUTO_OBJECT pod =
        make(d->store, &pod_kind,
             js("{'metadata':{'generateName':'web-'},'spec':{'containers':[{'name':'c',"
                "'image':'i'}]}}"));
    EXPECT_EQ(pod->meta.name.len, 9);
    EXPECT_STR(pod->meta.namespace_, "default");
}

TEST(what_the_api_server_would_refuse_is_refused_and_not_told)
{
    AUTO(dry) d = dry_new();
    struct err err = { 0 };
    struct delete_options other = { .uid = STR("11111111-2222-4333-8444-555555555555") };
    make_node(d->w->store, "n");
    AUTO_OBJECT node = get(d->w->store, &node_kind, "n");
    struct patch_options stale = { .resource_version = node->meta.resource_version + 1 };

    EXPECT_ERR(
        store_create(d->store, &node_kind, STR(""), js("{'metadata':{'name':'n'}}"), NULL, &err),
        err, ERR_EXISTS);
    EXPECT_ERR(store_create(d->store, &node_kind, STR(""), js("{'metadata':{}}"), NULL, &err), err,
               ERR_INVALID);
    EXPECT_ERR(store_create(d->store, &nodeclaim_kind, STR(""),
                            js("{'metadata':{'name':'c'},'spec':{'typo':1}}"), NULL, &err),
               err, ERR_INVALID);
    EXPECT_ERR(store_create(d->store, &node_kind, STR(""), js("{"), NULL, &err), err, ERR_INVALID);
    EXPECT_ERR(store_patch(d->store, at(&node_kind, "no"), (struct patch_options){ 0 }, js("{}"),
                           NULL, &err),
               err, ERR_NOT_FOUND);
    EXPECT_ERR(store_patch(d->store, at(&node_kind, "n"), stale, js("{}"), NULL, &err), err,
               ERR_CONFLICT);
    EXPECT_ERR(store_patch(d->store, at(&node_kind, "n"), (struct patch_options){ 0 }, js("[]"),
                           NULL, &err),
               err, ERR_INVALID);
    EXPECT_ERR(store_remove(d->store, at(&node_kind, "no"), NULL, &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(store_remove(d->store, at(&node_kind, "n"), &other, &err), err, ERR_CONFLICT);
    EXPECT_ERR(evict(d->store, "no", &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(store_bind(d->store, STR("default"), STR("no"), STR("n"), &err), err, ERR_NOT_FOUND);
    EXPECT_EQ(heard_count(d->heard, "would"), 0);
}

TEST(a_patched_object_comes_back_as_the_patch_would_make_it)
{
    static const struct {
        enum patch_type type;
        bool status;
        const char *patch;
    } cases[] = {
        { PATCH_MERGE, false, "{'metadata':{'labels':{'a':'b'}}}" },
        { PATCH_JSON, false, "[{'op':'add','path':'/metadata/labels','value':{'a':'b'}}]" },
        { PATCH_STRATEGIC, false, "{'metadata':{'labels':{'a':'b'}}}" },
    };
    AUTO(dry) d = dry_new();
    struct err err = { 0 };
    make_node(d->w->store, "n");
    AUTO_OBJECT stored = get(d->w->store, &node_kind, "n");
    uint64_t before = embedded_version(d->w->e);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_OBJECT node = NULL;
        EXPECT_OK(
            store_patch(d->store, at(&node_kind, "n"),
                        (struct patch_options){ .type = cases[i].type,
                                                .resource_version = stored->meta.resource_version },
                        js("%s", cases[i].patch), &node, &err),
            err);
        EXPECT_STR(str_map_get(&node->meta.labels, STR("a")), "b");
        EXPECT_EQ(node->meta.resource_version, stored->meta.resource_version);
        EXPECT_TRUE(str_eq(node->meta.uid, stored->meta.uid));
    }
    expect_untouched(d, before);
    /* The first and the third say the same. */
    EXPECT_EQ(heard_count(d->heard, "would patch"), 2);
    EXPECT_EQ(heard_count(d->heard, "labels"), 2);
}

TEST(a_patch_of_the_status_changes_the_status_only_and_the_other_way_round)
{
    AUTO(dry) d = dry_new();
    object_unref(make(d->w->store, &nodeclaim_kind, claim_json("web-1", "2")));
    AUTO_OBJECT both =
        merge_status(d->store, &nodeclaim_kind, "web-1",
                     js("{'metadata':{'labels':{'a':'b'}},'status':{'providerID':'kwok://n'}}"));
    EXPECT_STR(nodeclaim_of(both)->status.provider_id, "kwok://n");
    EXPECT_TRUE(str_map_get(&both->meta.labels, STR("a")).p == NULL);
    AUTO_OBJECT spec = merge(d->store, &nodeclaim_kind, "web-1",
                             js("{'metadata':{'labels':{'a':'b'}},'status':{'providerID':'x'}}"));
    EXPECT_EQ(nodeclaim_of(spec)->status.provider_id.len, 0);
    EXPECT_STR(str_map_get(&spec->meta.labels, STR("a")), "b");
}

TEST(conditions_of_a_pod_merge_by_their_type)
{
    AUTO(dry) d = dry_new();
    AUTO_OBJECT pod = NULL;
    struct err err = { 0 };
    make_pod(d->w->store, "p", "");
    set_pod(d->w->store, "p", "Running", true);
    EXPECT_OK(store_patch(d->store, at(&pod_kind, "p"),
                          (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                          js("{'status':{'conditions':[{'type':'Other','status':'True'}]}}"), &pod,
                          &err),
              err);
    EXPECT_EQ(pod_of(pod)->status->conditions.count, 2);
}

TEST(a_patch_that_changes_nothing_is_not_told)
{
    AUTO(dry) d = dry_new();
    object_unref(make(d->w->store, &node_kind, js("{'metadata':{'name':'n','labels':{'a':'b'}}}")));
    object_unref(merge(d->store, &node_kind, "n", js("{'metadata':{'labels':{'a':'b'}}}")));
    EXPECT_EQ(heard_count(d->heard, "would"), 0);
}

TEST(removals_evictions_and_bindings_are_told_once_and_not_done)
{
    AUTO(dry) d = dry_new();
    struct err err = { 0 };
    make_node(d->w->store, "n");
    make_pod(d->w->store, "p", "");
    uint64_t before = embedded_version(d->w->e);
    for (int i = 0; i < 3; i++) {
        remove_it(d->store, &node_kind, "n");
        EXPECT_OK(evict(d->store, "p", &err), err);
        bind_pod(d->store, "p", "n");
    }
    expect_untouched(d, before);
    EXPECT_EQ(heard_count(d->heard, "would delete"), 1);
    EXPECT_EQ(heard_count(d->heard, "kind=Node name=n"), 1);
    EXPECT_EQ(heard_count(d->heard, "would evict"), 1);
    EXPECT_EQ(heard_count(d->heard, "would bind"), 1);
    EXPECT_EQ(heard_count(d->heard, "pod=default/p node=n"), 1);
    EXPECT_EQ(dry_run_writes(d->run), 9);
}

TEST(what_is_on_its_way_out_already_is_not_told_again)
{
    AUTO(dry) d = dry_new();
    object_unref(
        make(d->w->store, &node_kind, js("{'metadata':{'name':'n','finalizers':['a.b/c']}}")));
    remove_it(d->w->store, &node_kind, "n");
    remove_it(d->store, &node_kind, "n");
    EXPECT_EQ(heard_count(d->heard, "would"), 0);
}

TEST(a_write_that_differs_in_its_times_only_is_the_same_write)
{
    AUTO(dry) d = dry_new();
    make_pod(d->w->store, "p", "");
    for (int i = 0; i < 5; i++)
        object_unref(merge_status(d->store, &pod_kind, "p",
                                  js("{'status':{'conditions':[{'type':'A','status':'True',"
                                     "'lastTransitionTime':'2026-01-02T03:04:0%dZ'}]}}",
                                     i)));
    EXPECT_EQ(heard_count(d->heard, "would patch"), 1);
    object_unref(merge_status(d->store, &pod_kind, "p",
                              js("{'status':{'conditions':[{'type':'A','status':'False',"
                                 "'lastTransitionTime':'2026-01-02T03:04:09Z'}]}}")));
    EXPECT_EQ(heard_count(d->heard, "would patch"), 2);
}

/* Two decisions, ten seconds apart, each with new names. */
TEST(a_claim_that_is_decided_on_again_has_the_name_it_was_told_with)
{
    AUTO(dry) d = dry_new();
    char first[2][16], uid[37];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) { /* two that are equal */
            char name[16];
            snprintf(name, sizeof name, "web-%c%d", 'a' + i, round);
            AUTO_OBJECT claim = make(d->store, &nodeclaim_kind, claim_json(name, "2"));
            if (round == 0)
                snprintf(first[i], sizeof first[i], "%.*s", STR_ARG(claim->meta.name));
            if (round == 0 && i == 0)
                snprintf(uid, sizeof uid, "%.*s", STR_ARG(claim->meta.uid));
            EXPECT_STR(claim->meta.name, first[i]);
            EXPECT_EQ(str_eqz(claim->meta.uid, uid), i == 0);
        }
        virtual_clock_advance(d->w->time, 10 * SECOND_NS);
    }
    EXPECT_Z(first[0], "web-a0");
    EXPECT_Z(first[1], "web-b0");
    EXPECT_EQ(heard_count(d->heard, "would create"), 2);

    /* Another decision: three of them, and a larger one. */
    for (int i = 0; i < 3; i++)
        object_unref(make(d->store, &nodeclaim_kind, claim_json(i == 2 ? "web-c" : "web-x", "2")));
    object_unref(make(d->store, &nodeclaim_kind, claim_json("web-d", "8")));
    EXPECT_EQ(heard_count(d->heard, "would create"), 4);
    EXPECT_EQ(heard_count(d->heard, "name=web-c"), 1);
    EXPECT_EQ(heard_count(d->heard, "name=web-d"), 1);
}

TEST(events_become_lines)
{
    AUTO(dry) d = dry_new();
    for (int i = 0; i < 3; i++)
        object_unref(make(
            d->store, &event_kind,
            js("{'metadata':{'name':'p.%d','namespace':'default'},'involvedObject':{'kind':'Pod',"
               "'apiVersion':'v1','namespace':'default','name':'p'},'type':'Warning','reason':'Sad',"
               "'message':'no room for it','source':{'component':'karpenter'},'count':1}",
               i)));
    EXPECT_EQ(heard_count(d->heard, "would"), 0);
    EXPECT_EQ(heard_count(d->heard, "event"), 1);
    EXPECT_EQ(heard_count(d->heard, "WARN"), 1);
    EXPECT_EQ(
        heard_count(d->heard, "reason=Sad kind=Pod name=default/p message=\"no room for it\""), 1);
}

TEST(a_long_patch_is_cut)
{
    AUTO(dry) d = dry_new();
    AUTO_BUF patch = { 0 };
    make_node(d->w->store, "n");
    buf_addz(&patch, "{\"metadata\":{\"annotations\":{\"a\":\"");
    for (int i = 0; i < 5000; i++)
        buf_addz(&patch, "\xc3\xa4");
    buf_addz(&patch, "\"}}}");
    object_unref(merge(d->store, &node_kind, "n", buf_str(&patch)));
    AUTO_BUF all = { 0 };
    heard_text(d->heard, &all);
    EXPECT_TRUE(all.len < 2000);
    EXPECT_HAS(buf_str(&all), "...");
    EXPECT_TRUE(str_is_utf8(buf_str(&all)));
}

TEST(what_was_told_long_ago_is_forgotten_so_memory_is_bounded)
{
    AUTO(dry) d = dry_new();
    EXPECT_TRUE(dry_run_is_new(d->run, 1));
    for (uint64_t i = 2; i < 60000; i++) {
        EXPECT_TRUE(dry_run_is_new(d->run, i));
        if (i % 1000 == 0)
            EXPECT_FALSE(dry_run_is_new(d->run, 7)); /* what goes on is remembered */
        if (i == 7)
            EXPECT_FALSE(dry_run_is_new(d->run, 7));
    }
    EXPECT_TRUE(dry_run_is_new(d->run, 1));
}
