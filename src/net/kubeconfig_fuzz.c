/* Any bytes as a kubeconfig. What is read is whole: every entry has a name that no other has, paths
 * are absolute, names of headers are names, and a server that is taken is a URL. */
#include "net/kubeconfig_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const kube_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        KV_ASSERT(list->items[i]->name.len > 0);
        KV_ASSERT(list->items[i]->line > 0);
        KV_ASSERT(kube_find(list, list->items[i]->name) == list->items[i]);
    }
}

static void check_path(struct str path)
{
    KV_ASSERT(path.len == 0 || path.p[0] == '/');
}

static void check_cluster(const struct kube_cluster *c, struct arena *arena)
{
    const char *url;
    check_path(c->ca_path);
    if (kube_server_url(c->server, true, arena, &url, NULL) == 0) {
        KV_ASSERT(strncmp(url, "http", 4) == 0);
        KV_ASSERT(url[strlen(url) - 1] != '/');
    }
}

static void check_user(const struct kube_user *u)
{
    check_path(u->token_path);
    check_path(u->cert_path);
    check_path(u->key_path);
    for (uint32_t i = 0; i < u->impersonate_count; i++) {
        KV_ASSERT(str_starts(u->impersonate[i].name, STR("Impersonate-")));
        for (size_t n = 0; n < u->impersonate[i].name.len; n++)
            KV_ASSERT((unsigned char)u->impersonate[i].name.p[n] > ' ');
    }
    if (u->maybe_exec && exec_plugin_check(u->maybe_exec, NULL) == 0) {
        AUTO_BUF info = { 0 };
        struct exec_cluster cluster = { .server = u->entry.name, .config = STR("{}") };
        exec_credential_info(u->maybe_exec, &cluster, false, &info);
        KV_ASSERT(info.len > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_entries entries = { 0 };
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct str text = { (const char *)data, size };
    if (kubeconfig_decode(text, "fuzz", STR("/folder"), &entries, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(strncmp(err.text, "fuzz:", 5) == 0);
    } else {
        check_list(&entries.clusters);
        check_list(&entries.users);
        check_list(&entries.contexts);
        for (size_t i = 0; i < entries.clusters.count; i++)
            check_cluster((struct kube_cluster *)entries.clusters.items[i], &arena);
        for (size_t i = 0; i < entries.users.count; i++)
            check_user((struct kube_user *)entries.users.items[i]);
    }
    kube_entries_done(&entries);
    return 0;
}
