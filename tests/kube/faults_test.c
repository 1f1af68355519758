/* The store port on a real API server whose network and server fail: what tests/kube/fixture.h offers to
 * break is broken here once, and what store/store.h promises of it is seen. */
#include "kube/launches.h"
#include "store/testing.h"

#include <poll.h>

static struct plane *small_plane(void)
{
    return plane_with(launches_plane);
}

static struct plane_access direct_access(struct plane *p)
{
    return plane_open(p, plane_path(p, "admin.kubeconfig"), (struct kube_options){ 0 });
}

static struct plane_access proxied(struct plane *p, struct kube_options base)
{
    return plane_open(p, plane_proxied(p, "admin.kubeconfig"), base);
}

static uint64_t version_now(const struct store *store)
{
    struct object_list all = { 0 };
    struct err err;
    EXPECT_OK(store_list(store, &node_kind, NULL, &all, &err), err);
    uint64_t version = all.resource_version;
    object_list_done(&all);
    return version;
}

static struct watch *watch_nodes(const struct store *store, uint64_t version)
{
    struct watch *watch = NULL;
    struct err err;
    EXPECT_OK(store_watch(store, &node_kind,
                          &(struct watch_options){ .resource_version = version, .bookmarks = true },
                          &watch, &err),
              err);
    return watch;
}

/* The next thing a watch says: the kind of its end, or -1 and the name of the node in an event. */
static int next_of(struct plane *p, struct watch *watch, char *name, size_t size)
{
    struct watch_event event = { 0 };
    struct err err;
    int rc = 0;
    for (;;) {
        PLANE_WAIT(p, (rc = watch_next(watch, &event, &err)) != 0);
        if (rc < 0)
            return (int)err.kind;
        if (event.type == EVENT_BOOKMARK)
            continue;
        snprintf(name, size, "%.*s", STR_ARG(event.object->meta.name));
        object_unref(event.object);
        return -1;
    }
}

TEST(who_may_do_nothing_is_denied_and_a_token_is_as_good_as_a_certificate)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS nobody =
        plane_open(p, plane_path(p, "nobody.kubeconfig"), (struct kube_options){ 0 });
    AUTO_PLANE_ACCESS token =
        plane_open(p, plane_path(p, "token.kubeconfig"), (struct kube_options){ 0 });
    struct err err;
    EXPECT_ERR(store_get(nobody.store, at(&node_kind, "a"), NULL, &err), err, ERR_DENIED);
    EXPECT_ERR(store_get(token.store, at(&node_kind, "a"), NULL, &err), err, ERR_NOT_FOUND);
    make_node(token.store, "a");
    EXPECT_STR(plane_must(p, "kubectl get nodes -o name"), "node/a");
}

TEST(a_node_may_write_its_own_node_and_no_other)
{
    struct plane *p = small_plane();
    const char *path = plane_user(p, "system:node:a", (const char *[]){ "system:nodes", NULL });
    AUTO_PLANE_ACCESS node = plane_open(p, path, (struct kube_options){ 0 });
    struct err err;
    make_node(node.store, "a");
    EXPECT_ERR(
        store_create(node.store, &node_kind, STR(""), js("{'metadata':{'name':'b'}}"), NULL, &err),
        err, ERR_DENIED);
}

TEST(a_test_finds_nothing_of_the_ones_before_it)
{
    static const char names[] =
        "kubectl get nodes,pods,leases,namespaces -A -o name | grep -v 'apiserver\\|kube-\\|/default' || true";
    struct plane *p = small_plane();
    EXPECT_STR(plane_must(p, "%s", names), "");
    plane_must(p, "kubectl create namespace other");
    plane_apply(p, "apiVersion: v1\nkind: Node\n"
                   "metadata: {name: held, finalizers: [karve.test/x]}");
    EXPECT_STR(plane_must(p, "%s", names), "node/held\nnamespace/other");
    p = small_plane();
    EXPECT_STR(plane_must(p, "%s", names), "");
}

TEST(a_watch_whose_connection_is_cut_says_so_and_another_goes_on_from_its_version)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS direct = direct_access(p);
    AUTO_PLANE_ACCESS far = proxied(p, (struct kube_options){ 0 });
    char name[64];
    uint64_t version = version_now(far.store);
    struct watch *watch = watch_nodes(far.store, version);
    make_node(direct.store, "a");
    EXPECT_EQ(next_of(p, watch, name, sizeof name), -1);
    EXPECT_Z(name, "a");
    proxy_cut(p->proxy);
    make_node(direct.store, "b");
    EXPECT_EQ(next_of(p, watch, name, sizeof name), ERR_UNAVAILABLE);
    watch_close(watch);
    watch = watch_nodes(far.store, version);
    EXPECT_EQ(next_of(p, watch, name, sizeof name), -1);
    EXPECT_EQ(next_of(p, watch, name, sizeof name), -1);
    EXPECT_Z(name, "b");
    watch_close(watch);
}

TEST(a_watch_on_which_nothing_comes_any_more_ends)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS direct = direct_access(p);
    AUTO_PLANE_ACCESS far =
        proxied(p, (struct kube_options){ .watch_idle_timeout_ns = 10 * SECOND_NS });
    char name[64];
    uint64_t version = version_now(direct.store);
    make_node(direct.store, "a"); /* before: the watch waits for nothing but the server */
    struct watch *watch = watch_nodes(far.store, version);
    EXPECT_EQ(next_of(p, watch, name, sizeof name), -1);
    proxy_set(p->proxy, (struct proxy_faults){ .stall = true });
    EXPECT_EQ(next_of(p, watch, name, sizeof name), ERR_UNAVAILABLE);
    watch_close(watch);
}

TEST(a_server_that_cannot_be_reached_is_unavailable_and_reads_wait_for_it_to_come_back)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS direct = direct_access(p);
    AUTO_PLANE_ACCESS far =
        proxied(p, (struct kube_options){ .timeout_ns = 2 * SECOND_NS, .patience_ns = SECOND_NS });
    struct err err;
    make_node(direct.store, "a");
    PLANE_WAIT(p, store_get(far.store, at(&node_kind, "a"), NULL, &err) == 0);
    proxy_set(p->proxy, (struct proxy_faults){ .refuse = true });
    proxy_cut(p->proxy);
    EXPECT_ERR(store_get(far.store, at(&node_kind, "a"), NULL, &err), err, ERR_UNAVAILABLE);
    proxy_set(p->proxy, (struct proxy_faults){ 0 });
    PLANE_WAIT(p, store_get(far.store, at(&node_kind, "a"), NULL, &err) == 0);
}

TEST(a_slow_network_only_takes_longer)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS far = proxied(p, (struct kube_options){ 0 });
    proxy_set(p->proxy, (struct proxy_faults){ .delay_ns = SECOND_NS / 20 });
    make_node(far.store, "a");
    EXPECT_TRUE(is_there(far.store, &node_kind, "a"));
}

/* A write whose answer was lost may have been carried out: the next attempt finds it there. */
TEST(connections_cut_at_random_lose_no_write_that_was_answered)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS direct = direct_access(p);
    AUTO_PLANE_ACCESS far = proxied(p, (struct kube_options){ 0 });
    unsigned lost = 0;
    proxy_set(p->proxy, (struct proxy_faults){ .cut_one_in = 12 });
    for (unsigned i = 0; i < 60; i++) {
        struct err err;
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        struct str json = js("{'metadata':{'name':'%s'}}", name);
        while (store_create(far.store, &node_kind, STR(""), json, NULL, &err) < 0) {
            if (err.kind == ERR_EXISTS)
                break;
            EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
            lost++;
        }
        EXPECT_TRUE(is_there(direct.store, &node_kind, name));
    }
    printf("# %u of 60 writes got no answer at first, %llu connections\n", lost,
           (unsigned long long)proxy_accepted_count(p->proxy));
}

TEST(a_killed_server_comes_back_and_the_watch_goes_on)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS access = direct_access(p);
    char name[64];
    make_node(access.store, "a");
    uint64_t version = version_now(access.store);
    struct watch *watch = watch_nodes(access.store, version);
    plane_apiserver_kill9(p);
    EXPECT_EQ(next_of(p, watch, name, sizeof name), ERR_UNAVAILABLE);
    watch_close(watch);
    plane_apiserver_restart(p);
    watch = watch_nodes(access.store, version);
    make_node(access.store, "b");
    EXPECT_EQ(next_of(p, watch, name, sizeof name), -1);
    EXPECT_Z(name, "b");
    watch_close(watch);
}

/* At the opening, or at the first read. */
static bool is_gone(struct plane *p, const struct store *store, uint64_t version)
{
    struct watch *watch = NULL;
    struct err err;
    char name[64];
    if (store_watch(store, &node_kind, &(struct watch_options){ .resource_version = version },
                    &watch, &err) < 0)
        return err.kind == ERR_GONE;
    int said = next_of(p, watch, name, sizeof name);
    watch_close(watch);
    return said == ERR_GONE;
}

TEST(a_version_from_before_a_compaction_is_gone)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS access = direct_access(p);
    uint64_t version = version_now(access.store);
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        make_node(access.store, name);
    }
    plane_compact(p);
    PLANE_WAIT(p, is_gone(p, access.store, version));
    struct watch *watch = watch_nodes(access.store, version_now(access.store));
    char name[64];
    make_node(access.store, "later");
    EXPECT_EQ(next_of(p, watch, name, sizeof name), -1);
    EXPECT_Z(name, "later");
    watch_close(watch);
}

TEST(a_frozen_server_is_waited_for_no_longer_than_told)
{
    struct plane *p = small_plane();
    AUTO_PLANE_ACCESS patient = direct_access(p);
    AUTO_PLANE_ACCESS access =
        plane_open(p, plane_path(p, "admin.kubeconfig"),
                   (struct kube_options){ .timeout_ns = SECOND_NS, .patience_ns = SECOND_NS });
    struct err err;
    make_node(patient.store, "a");
    PLANE_WAIT(p, store_get(access.store, at(&node_kind, "a"), NULL, &err) == 0);
    plane_freeze(p, "kube-apiserver");
    EXPECT_ERR(store_get(access.store, at(&node_kind, "a"), NULL, &err), err, ERR_UNAVAILABLE);
    plane_thaw(p, "kube-apiserver");
    PLANE_WAIT(p, store_get(access.store, at(&node_kind, "a"), NULL, &err) == 0);
}
