/* What is there, read from a live cluster: the same objects that a dump of it would have. Lists only:
 * nothing is watched, nothing is written.
 */
#include "cmd/kube_access.h"
#include "cmd/plan_inner.h"
#include "cmd/version.h"

#include "api/kinds.h"

#include <unistd.h>

#define LIVE_PAGE 500

/* Of these a cluster may have none served: the definitions of another provider, or none at all. */
static const struct kind *const live_kinds[] = {
    &namespace_kind,
    &priority_class_kind,
    &node_kind,
    &nodepool_kind,
    &nodeclaim_kind,
    &nodeoverlay_kind,
    &ec2nodeclass_kind,
    &kwoknodeclass_kind,
    &daemon_set_kind,
    &replica_set_kind,
    &storage_class_kind,
    &csi_node_kind,
    &pv_kind,
    &pvc_kind,
    &pod_kind,
    &node_feature_kind, /* the last: only where images count */
};

struct reading {
    struct planning *p;
    const struct store *store;
    bool images;
    bool progress; /* on a terminal, a line that is overwritten */
    size_t count;
};

static void show_progress(const struct reading *r, const struct kind *kind)
{
    if (r->progress)
        fprintf(stderr, "\r\033[Kreading %s: %zu objects so far", kind->plural, r->count);
}

/* Takes over the page's objects. */
static void keep(struct reading *r, const struct kind *kind, struct object_list *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct object *object = take(&page->items[i]);
        vec_push(&r->p->running.items, (struct manifest){ .kind = kind,
                                                          .kind_name = str_of(kind->name),
                                                          .namespace_ = object->meta.namespace_,
                                                          .name = object->meta.name,
                                                          .object = object });
        r->count++;
    }
}

/* What cannot be read and need not be. */
static bool is_dispensable(struct reading *r, const struct kind *kind, const struct err *err)
{
    if (err->kind != ERR_DENIED || kind != &node_feature_kind)
        return err->kind == ERR_NOT_FOUND;
    planning_note(r->p,
                  "nodes are judged by their instance types, as NodeFeatures cannot be read: "
                  "%s",
                  err->text);
    return true;
}

static int read_kind(struct reading *r, const struct kind *kind, struct err *err)
{
    AUTO_FREE char *next = NULL;
    struct list_options options = { .limit = LIVE_PAGE, .skip_unreadable = true };
    do {
        struct object_list page = { 0 };
        show_progress(r, kind);
        options.continue_ = str_of(next);
        if (store_list(r->store, kind, &options, &page, err) < 0)
            return is_dispensable(r, kind, err) && !next ? 0 : -1;
        keep(r, kind, &page);
        free(next);
        next = take(&page.continue_);
        object_list_done(&page);
    } while (next);
    return 0;
}

/* The server's version is asked for first: if there is none to talk to, that is told at once. */
static int read_kinds(struct reading *r, struct kube *kube, struct err *err)
{
    AUTO_BUF version = { 0 };
    if (kube_server_version(kube, &version, err) < 0)
        return -1;
    for (size_t i = 0; i < KV_COUNT_OF(live_kinds) - !r->images; i++) {
        if (read_kind(r, live_kinds[i], err) < 0)
            return -1;
    }
    return 0;
}

int plan_read_live(struct planning *p, const struct invocation *inv)
{
    const bool terminal = isatty(STDERR_FILENO);
    AUTO(log)
    log = log_new((struct log_options){ .clock = clock_real(),
                                        .fd = STDERR_FILENO,
                                        .format = terminal ? LOG_AUTO : LOG_TEXT, /* for people */
                                        .level = LOG_LEVEL_WARN });
    AUTO(kubeconfig) access = NULL;
    AUTO(kube) kube = NULL;
    struct err err;
    if (kube_access_open(inv, clock_real(), log, &access, &err) != EXIT_DONE)
        return print_complaint("plan", EXIT_ENVIRONMENT, "%s", err.text);
    struct kube_options options = { .access = access,
                                    .pool = p->running.pool,
                                    .clock = clock_real(),
                                    .maybe_log = log,
                                    .user_agent = "karve/" KARVE_VERSION };
    if (kube_new(options, &kube, &err) < 0)
        return print_complaint("plan", EXIT_ENVIRONMENT, "%s", err.text);
    struct reading r = { .p = p,
                         .store = kube_store(kube),
                         .images = plan_images_wanted(inv, true),
                         .progress = terminal };
    int rc = read_kinds(&r, kube, &err);
    if (r.progress)
        fputs("\r\033[K", stderr);
    if (rc < 0)
        return print_complaint("plan", EXIT_ENVIRONMENT, "context %s: %s",
                               kubeconfig_context(access), err.text);
    planning_note(p, "read %zu objects of context %s", r.count, kubeconfig_context(access));
    return EXIT_DONE;
}
