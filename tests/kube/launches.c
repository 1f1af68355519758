#include "kube/launches.h"

#include "api/karpenter.h"
#include "api/kinds.h"
#include "api/node.h"
#include "api/nodeclaim.h"
#include "base/map.h"
#include "store/testing.h"

const char *const launches_plane[] = {
    "--no-scheduler",
    "--no-controller-manager",
    "--apiserver=--audit-policy-file=tests/kube/audit-policy.yaml",
    "--apiserver=--audit-log-path=@DIR@/audit.log",
    NULL,
};

/* 4 cpus, of which a pod takes more than half. Nothing is disrupted: an empty node stays. */
static const char pool_yaml[] =
    "apiVersion: karpenter.kwok.sh/v1alpha1\n"
    "kind: KWOKNodeClass\n"
    "metadata: {name: default}\n"
    "spec: {}\n"
    "---\n"
    "apiVersion: karpenter.sh/v1\n"
    "kind: NodePool\n"
    "metadata: {name: default}\n"
    "spec:\n"
    "  disruption: {consolidateAfter: Never}\n"
    "  template:\n"
    "    spec:\n"
    "      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"
    "      requirements:\n"
    "      - {key: kubernetes.io/os, operator: In, values: [linux]}\n"
    "      - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ['4']}\n";

void launches_pool(struct launches *l)
{
    plane_apply(l->plane, pool_yaml);
}

static void give_rights(struct plane *p)
{
    plane_must(p,
               "{ $KARVE crds --rbac && echo --- && "
               "kubectl create clusterrolebinding replicas --clusterrole=karve --group=%s"
               " --dry-run=client -o yaml && echo --- && "
               "kubectl create rolebinding replicas -n kube-system --role=karve --group=%s"
               " --dry-run=client -o yaml; } | kubectl apply -f -",
               LAUNCHES_GROUP, LAUNCHES_GROUP);
}

static struct informer *follow(struct launches *l, const struct kind *kind)
{
    struct informer *inf = informer_new(
        (struct informer_options){ .store = l->admin.store, .clock = clock_real(), .kind = kind });
    informer_set_add(l->set, inf);
    return inf;
}

/* A test that fails leaves its frame by a jump: what it had is freed by the next one, or at the end and
 * then before the plane, which is older. */
static struct launches *left;

static void free_left(void)
{
    launches_free(left);
}

struct launches *launches_new(void)
{
    static bool has_rights;
    free_left();
    struct plane *p = plane_with(launches_plane);
    struct launches *l = left = kv_calloc(1, sizeof *l);
    l->plane = p;
    plane_crds(p);
    if (!has_rights) {
        give_rights(p);
        atexit(free_left);
    }
    has_rights = true;
    launches_pool(l);
    l->admin = plane_open(p, plane_path(p, "admin.kubeconfig"), (struct kube_options){ 0 });
    l->set = informer_set_new(clock_real());
    l->claims = follow(l, &nodeclaim_kind);
    l->nodes = follow(l, &node_kind);
    informer_set_start(l->set);
    PLANE_WAIT(p, informer_synced(l->claims) && informer_synced(l->nodes));
    return l;
}

void launches_free(struct launches *l)
{
    if (!l)
        return;
    left = NULL;
    if (l->set) {
        kube_cancel(l->admin.kube);
        informer_set_free(l->set);
        informer_free(l->claims);
        informer_free(l->nodes);
    }
    plane_close(&l->admin);
    free(l);
}

/* --- pods --- */

static void want(const struct store *store, const char *name)
{
    struct err err;
    EXPECT_OK(store_create(store, &pod_kind, STR("default"),
                           js("{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c',"
                              "'image':'i','resources':{'requests':{'cpu':'3'}}}]}}",
                              name),
                           NULL, &err),
              err);
    EXPECT_OK(store_patch(store, at(&pod_kind, name),
                          (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                          js("{'status':{'conditions':[{'type':'PodScheduled','status':'False',"
                             "'reason':'Unschedulable','message':'no nodes'}]}}"),
                          NULL, &err),
              err);
}

void launches_want(struct launches *l, unsigned from, unsigned count)
{
    for (unsigned i = from; i < from + count; i++)
        want(l->admin.store, js("pod-%u", i).p);
}

void launches_unwant(struct launches *l, unsigned from, unsigned count)
{
    struct delete_options now = { .grace_s = { .set = true, .value = 0 } };
    struct err err;
    for (unsigned i = from; i < from + count; i++)
        EXPECT_OK(store_remove(l->admin.store, at(&pod_kind, js("pod-%u", i).p), &now, &err), err);
}

/* --- nodes --- */

unsigned launches_count(struct launches *l)
{
    return (unsigned)informer_count(l->nodes);
}

unsigned launches_listed(struct launches *l)
{
    struct object_list nodes = { 0 };
    struct err err;
    EXPECT_OK(store_list(l->admin.store, &node_kind, NULL, &nodes, &err), err);
    unsigned count = (unsigned)nodes.count;
    object_list_done(&nodes);
    return count;
}

unsigned launches_wait(struct launches *l, unsigned more_than)
{
    unsigned count = 0;
    PLANE_WAIT_S(l->plane, LAUNCHES_LIMIT_S, (count = launches_count(l)) > more_than);
    return count;
}

/* By providerID; each is there once. */
static void check_pairs(const struct object_list *claims, const struct object_list *nodes)
{
    struct str_table by_id = { 0 };
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node *node = node_of(nodes->items[i]);
        EXPECT_TRUE(node->spec.provider_id.len > 0);
        EXPECT_FALSE(str_table_has(&by_id, node->spec.provider_id));
        str_table_put(&by_id, node->spec.provider_id, (void *)node);
    }
    for (size_t i = 0; i < claims->count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims->items[i]);
        EXPECT_TRUE(claim->object.meta.deleted_us == 0);
        EXPECT_TRUE(str_table_has(&by_id, claim->status.provider_id));
        str_table_remove(&by_id, claim->status.provider_id); /* no other claim has it */
    }
    str_table_done(&by_id);
}

static bool all_launched(struct launches *l, unsigned count)
{
    if (informer_count(l->claims) < count || informer_count(l->nodes) < count)
        return false;
    struct object_list claims;
    informer_list(l->claims, STR(""), &claims);
    bool whole = true;
    for (size_t i = 0; i < claims.count; i++)
        whole = whole && nodeclaim_of(claims.items[i])->status.provider_id.len > 0;
    object_list_done(&claims);
    return whole;
}

static void wait_for_all(struct launches *l, unsigned count)
{
    struct object_list claims = { 0 }, nodes = { 0 };
    struct err err;
    PLANE_WAIT_S(l->plane, LAUNCHES_LIMIT_S, all_launched(l, count));
    EXPECT_OK(store_list(l->admin.store, &nodeclaim_kind, NULL, &claims, &err), err);
    EXPECT_OK(store_list(l->admin.store, &node_kind, NULL, &nodes, &err), err);
    EXPECT_EQ(claims.count, count);
    EXPECT_EQ(nodes.count, count);
    check_pairs(&claims, &nodes);
    object_list_done(&claims);
    object_list_done(&nodes);
}

void launches_expect(struct launches *l, unsigned count)
{
    wait_for_all(l, count);
    want(l->admin.store, "pod-last");
    wait_for_all(l, count + 1);
}

/* --- replicas --- */

struct replica replica_start(struct plane *p, const char *name, bool proxied,
                             const char *const *flags)
{
    const char *kubeconfig = plane_user(p, name, (const char *const[]){ LAUNCHES_GROUP, NULL });
    if (proxied)
        kubeconfig = plane_proxied(p, arena_strf(&p->arena, "%s.kubeconfig", name).p);
    return replica_start_with(p, name, kubeconfig, flags);
}

struct replica replica_start_with(struct plane *p, const char *name, const char *kubeconfig,
                                  const char *const *flags)
{
    const char *args[32] = {
        "controller", "--kubeconfig",        kubeconfig, "--metrics-port",
        "0",          "--health-probe-port", "0",        "--batch-idle-duration",
        "200ms",      "--kube-client-qps",   "1000",     "--kube-client-burst",
        "1000"
    };
    size_t count = 13;
    for (; *flags; flags++) {
        EXPECT_TRUE(count < KV_COUNT_OF(args) - 1);
        args[count++] = *flags;
    }
    struct replica r = { .name = name, .log_from = plane_log(p, name).len };
    r.pid = plane_karve(p, name, args);
    return r;
}

bool replica_said(struct plane *p, const struct replica *r, const char *words)
{
    struct str log = plane_log(p, r->name);
    return log.len > r->log_from &&
           memmem(log.p + r->log_from, log.len - r->log_from, words, strlen(words)) != NULL;
}

int64_t launches_pod_lists(struct plane *p, const char *user)
{
    int64_t count = -1;
    EXPECT_TRUE(str_to_i64(plane_must(p,
                                      "grep '\"username\":\"%s\"' $DIR/audit.log | "
                                      "grep -c '/api/v1/pods[^\"]*\",\"verb\":\"list\"' || true",
                                      user),
                           &count));
    return count;
}

double launches_now_s(void)
{
    return (double)clock_mono_ns(clock_real()) / 1e9;
}
