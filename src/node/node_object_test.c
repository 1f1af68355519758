/* The texts of Nodes and statuses, and the flags that they come from. */
#include "node/node_api_inner.h"
#include "store/testing.h"

static struct node_api_options options(const char *reserved)
{
    return (struct node_api_options){
        .clock = clock_real(), .root = "/", .pods_max = 110, .reserved = { reserved }
    };
}

TEST(what_is_reserved_is_not_allocatable_and_more_than_there_is_cannot_be)
{
    AUTO_ARENA arena = { 0 };
    struct node_machine machine;
    struct err err;
    struct node_api_options some = options("cpu=100m,memory=64Mi");
    EXPECT_OK(node_machine_read(&arena, &some, &machine, &err), err);
    EXPECT_EQ(machine.capacity.count, 4);
    EXPECT_EQ(quantity_milli(machine.capacity.items[0].amount) -
                  quantity_milli(machine.allocatable.items[0].amount),
              100);
    EXPECT_EQ(quantity_units(machine.capacity.items[2].amount) -
                  quantity_units(machine.allocatable.items[2].amount),
              64 << 20);
    EXPECT_TRUE(machine.kernel.len > 0);
    struct node_api_options all = options("memory=1000Ti");
    EXPECT_ERR(node_machine_read(&arena, &all, &machine, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "more memory than this machine has");
}

TEST(labels_taints_and_resources_are_read_or_refused_with_what_is_wrong)
{
    static const struct {
        const char *labels, *taints, *resources, *wrong;
    } cases[] = {
        { "", "", "", NULL },
        { "a=b,c.d/e=", "k=v:NoSchedule,k:NoExecute", "cpu=1,memory=2Gi", NULL },
        { "a", "", "", "expected KEY=VALUE" },
        { "a=b,a=c", "", "", "twice" },
        { "a=b,", "", "", "expected KEY=VALUE" },
        { "a b=c", "", "", "label" },
        { "", "k=v", "", "expected KEY=VALUE:EFFECT" },
        { "", "k=v:Sometimes", "", "none of NoSchedule" },
        { "", "k:NoSchedule,k=v:NoSchedule", "", "twice" },
        { "", "", "cpu", "expected NAME=QUANTITY" },
        { "", "", "cpu=much", "cpu" },
        { "", "", "cpu=-1", "negative" },
        { "", "", "cpu=1,cpu=2", "twice" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        struct str_map labels;
        struct node_view view = { 0 };
        struct resources resources;
        struct err err = { 0 };
        bool bad = node_labels_parse(&arena, str_of(cases[i].labels), &labels, &err) < 0 ||
                   node_taints_parse(&arena, str_of(cases[i].taints), &view, &err) < 0 ||
                   node_resources_parse(&arena, str_of(cases[i].resources), &resources, &err) < 0;
        EXPECT_EQ(bad, cases[i].wrong != NULL);
        if (bad) {
            EXPECT_EQ(err.kind, ERR_INVALID);
            EXPECT_HAS(str_of(err.text), cases[i].wrong);
        }
    }
}

static void patch_of(const char *status, bool finished, struct buf *out)
{
    struct doc doc = { 0 };
    struct err err;
    struct str text = js("%s", status);
    EXPECT_OK(json_read(text, &doc, &err), err);
    status_patch(doc.root, STR("u"), finished, out);
    doc_done(&doc);
}

TEST(a_status_patch_says_what_is_an_agents_to_say_and_takes_back_what_it_does_not_say_any_more)
{
    AUTO_BUF out = { 0 };
    patch_of("{'phase':'Running','nominatedNodeName':'x','resourceClaimStatuses':[],"
             "'conditions':[{'type':'Ready','status':'True'},{'type':'lb','status':'True'}],"
             "'podIPs':[{'ip':'10.0.0.1'}],'podIP':'10.0.0.1','qosClass':'BestEffort',"
             "'containerStatuses':[]}",
             false, &out);
    EXPECT_STR(
        buf_str(&out),
        js("{'metadata':{'uid':'u'},'status':{'phase':'Running','reason':null,'message':null,"
           "'hostIP':null,'podIP':'10.0.0.1','startTime':null,'initContainerStatuses':null,"
           "'containerStatuses':[],'ephemeralContainerStatuses':null,"
           "'qosClass':'BestEffort','hostIPs':null,"
           "'podIPs':[{'$patch':'replace'},{'ip':'10.0.0.1'}],"
           "'conditions':[{'type':'Ready','status':'True','lastProbeTime':null,'reason':null,"
           "'message':null}]}}")
            .p);
}

TEST(a_terminal_phase_is_told_with_the_last_status_only)
{
    static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed" };
    for (size_t i = 0; i < KV_COUNT_OF(phases); i++) {
        for (int finished = 0; finished < 2; finished++) {
            AUTO_BUF out = { 0 };
            char status[64];
            snprintf(status, sizeof status, "{'phase':'%s','reason':'Why'}", phases[i]);
            patch_of(status, finished, &out);
            bool told = strstr(out.p, "\"phase\"") != NULL;
            EXPECT_EQ(told, finished || i < 2);
            EXPECT_EQ(strstr(out.p, "\"Why\"") != NULL, told);
        }
    }
}

TEST(waits_after_failures_double_up_to_the_longest)
{
    struct api_backoff backoff = { 0 };
    static const int64_t expected[] = { 100, 200, 400, 800, 1000, 1000 };
    for (size_t i = 0; i < KV_COUNT_OF(expected); i++)
        EXPECT_EQ(api_backoff_next(&backoff, 100, 1000), expected[i]);
    backoff.failures = UINT32_MAX - 1;
    EXPECT_EQ(api_backoff_next(&backoff, 100, 1000), 1000);
}
