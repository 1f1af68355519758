#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_hydration, &node_hydration };
#define CLASS_LABEL STR("karpenter.kwok.sh/kwoknodeclass")

TEST(claims_and_their_nodes_get_the_label_of_their_class)
{
    AUTO(paper_stage) p = paper_stage_new(cast, KV_COUNT_OF(cast));
    paper_claim(p, "a", "");
    object_unref(make(p->store, &node_kind,
                      js("{'metadata':{'name':'n'},'spec':{'providerID':'paper://0000'}}")));
    make_node(p->store, "stranger");
    settle(p->s);
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    EXPECT_STR(str_map_get(&claim->meta.labels, CLASS_LABEL), "default");

    /* Only its providerID makes the Node the claim's. */
    object_unref(merge_status(p->store, &nodeclaim_kind, "a",
                              js("{'status':{'providerID':'paper://0000'}}")));
    settle(p->s);
    AUTO_OBJECT node = get(p->store, &node_kind, "n");
    AUTO_OBJECT stranger = get(p->store, &node_kind, "stranger");
    EXPECT_STR(str_map_get(&node->meta.labels, CLASS_LABEL), "default");
    EXPECT_EQ(stranger->meta.labels.count, 0);

    object_unref(merge(p->store, &node_kind, "n",
                       js("{'metadata':{'labels':{'karpenter.kwok.sh/kwoknodeclass':null}}}")));
    settle(p->s);
    AUTO_OBJECT again = get(p->store, &node_kind, "n");
    EXPECT_STR(str_map_get(&again->meta.labels, CLASS_LABEL), "default");

    uint64_t version = embedded_version(p->s->w->e);
    control_resync(p->s->c);
    settle(p->s);
    EXPECT_EQ(embedded_version(p->s->w->e), version);
}
