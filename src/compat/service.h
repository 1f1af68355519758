/* compat/service.h - image compatibility as a whole: pods come in, demands on nodes go out.
 *
 *     pods seen  -->  images, pull secrets  -->  image cache (registry)  -->  demand of the pod
 *     Nodes, NodeFeatures                   -->  fleet (classes)         -->  verdicts
 *     NodeFeatureGroups                     <->  nfg cache (publishing)
 *
 * Whoever has informers feeds them in; nothing here lists or watches. What a pod asks for is worked out when the
 * pod is seen, on threads of the service, and remembered by the pod's UID: to ask for it later costs a lookup.
 * No call but compat_service_settle waits for anybody.
 */
#pragma once

#include "api/pod.h"
#include "compat/fleet.h"
#include "compat/image_cache.h"
#include "compat/nfg_cache.h"

/* What to make of an image that could not be looked at: no node will do, or all. */
enum resolve_error_policy { RESOLVE_FAIL, RESOLVE_IGNORE };
/* Of machines of which it is not known whether they fit. */
enum unknown_policy { UNKNOWN_PREFER_KNOWN, UNKNOWN_ALLOW, UNKNOWN_DENY };

struct compat_settings {
    struct compat_options rules; /* setCombine, ruleCombine, versionParsing, tags */
    enum resolve_error_policy on_resolve_error;
    enum unknown_policy unknown_features;
    enum unobserved_policy unobserved_node;
    bool platform_only; /* artifacts are not asked for: architecture and os alone */
    bool pull_secrets;  /* read those that pods and their service accounts name */
    struct str_list launch_repositories; /* whose artifacts may decide what is launched */
    /* The cache's: cacheEnabled, cacheTTLSeconds, maxCacheSize; see image_cache.h. */
    bool cache_disabled;
    int64_t cache_ttl_ns, stale_max_ns;
    uint32_t cache_entries_max;
    size_t cache_bytes_max;
    enum nfg_mode nfg_mode;
    uint32_t sets_max; /* maxNFGsPerImage */
    int64_t nfg_idle_ns;
    struct str nfd_namespace; /* "": found by nfd-master's pods */
};

struct compat_service_options {
    struct image_source source;
    const struct store *store; /* for secrets and groups; NULL: neither is used */
    const struct clock *clock;
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    const struct keyring *maybe_keys; /* for all images: a node-wide config.json */
    struct compat_settings settings;  /* its texts are borrowed */
    /* What some pods ask for has changed. From any thread, with no lock held; may be NULL. */
    void (*on_change)(void *ctx);
    void *ctx;
};

struct compat_service;
int compat_service_new(struct compat_service_options options, struct compat_service **out,
                       struct err *err);
void compat_service_free(struct compat_service *service); /* NULL is fine */
KV_AUTO_TYPE(compat_service, compat_service_free)

/* Changes, as informers tell them; any kind that is of interest, others are passed over. */
void compat_service_observe(void *service, const struct object *maybe_old,
                            const struct object *maybe_new);

enum demand_for {
    DEMAND_PLACE, /* on a node that is there */
    DEMAND_LAUNCH /* of a new one: artifacts count only from repositories that may decide */
};
struct pod_demand {
    const struct demand *maybe_demand; /* the caller's reference; NULL: still pending */
    struct str_list pending;           /* images that are not known yet; borrowed until done */
    struct arena arena;
};
void pod_demand_done(struct pod_demand *demand);

/* What the pod asks of a node; it need not have been observed before. */
void compat_service_demand(struct compat_service *service, const struct pod *pod,
                           enum demand_for what, struct pod_demand *out);
/* The same of a pod that was observed, by its UID. False: none such waits for a node. */
bool compat_service_demand_of(struct compat_service *service, struct str uid, enum demand_for what,
                              struct pod_demand *out);
/* Wait until no image of these pods is pending, or mono_ns reaches `until_ns`. */
void compat_service_settle(struct compat_service *service, const struct pod *const *pods,
                           uint32_t count, int64_t until_ns);

/* Per node name, in `out`: the fleet's verdict, and the groups' where those have a say: in authoritative mode,
 * and for rules that only NFD can evaluate. */
void compat_service_judge(struct compat_service *service, const struct demand *demand,
                          const struct str *names, uint32_t count, struct fleet_verdict *out);
/* Why not, in a line. */
void compat_service_explain(struct compat_service *service, const struct demand *demand,
                            struct str node, struct buf *out);

/* Goes up when what a pod asks for, or a verdict, may have changed. */
uint64_t compat_service_generation(struct compat_service *service);

struct fleet *compat_service_fleet(struct compat_service *service);
struct image_cache *compat_service_images(struct compat_service *service);
struct nfg_cache *compat_service_groups(struct compat_service *service);
const struct compat_settings *compat_service_settings(const struct compat_service *service);
