/* Requests and limits as the kernel takes them: CPU shares and quota, memory, OOM score, huge
 * pages. */
#include "node/configs_inner.h"

#include "api/resources.h"
#include "node/pod_sum.h"

#define CPU_PERIOD_US 100000
#define CPU_QUOTA_US_MIN 1000 /* the kernel takes no less */
#define CPU_SHARES_MIN 2
#define CPU_SHARES_MAX 262144
#define MILLI_MAX (INT64_MAX / 1024)

/* What the kernel adds to a process's badness when memory runs out. */
#define OOM_GUARANTEED (-997)
#define OOM_BEST_EFFORT 1000
#define OOM_BURSTABLE_MIN 2
#define OOM_BURSTABLE_MAX 999
#define PRIORITY_NODE_CRITICAL 2000001000

static int64_t milli_bounded(struct quantity cpu)
{
    int64_t milli = quantity_milli(cpu);
    return milli < 0 ? 0 : milli > MILLI_MAX ? MILLI_MAX : milli;
}

static int64_t cpu_shares(int64_t milli)
{
    int64_t shares = milli * 1024 / 1000;
    return shares < CPU_SHARES_MIN   ? CPU_SHARES_MIN
           : shares > CPU_SHARES_MAX ? CPU_SHARES_MAX
                                     : shares;
}

Cri__LinuxContainerResources *linux_resources(struct arena *arena, struct quantity cpu_request,
                                              struct quantity cpu_limit,
                                              struct quantity memory_limit)
{
    Cri__LinuxContainerResources *out =
        MESSAGE(arena, linux_container_resources, LinuxContainerResources);
    int64_t limit = milli_bounded(cpu_limit), request = milli_bounded(cpu_request);
    out->cpu_shares = cpu_shares(request > 0 ? request : limit);
    if (limit > 0) {
        int64_t quota = limit * (CPU_PERIOD_US / 1000);
        out->cpu_period = CPU_PERIOD_US;
        out->cpu_quota = quota < CPU_QUOTA_US_MIN ? CPU_QUOTA_US_MIN : quota;
    }
    int64_t memory = quantity_units(memory_limit);
    out->memory_limit_in_bytes = memory > 0 ? memory : 0;
    return out;
}

/* --- OOM score --- */

static int64_t oom_score_alone(const struct node_pod *pod, const struct node_container *container,
                               const struct node_facts *facts)
{
    if (pod->qos == QOS_GUARANTEED ||
        (pod->priority.set && pod->priority.value >= PRIORITY_NODE_CRITICAL))
        return OOM_GUARANTEED;
    if (pod->qos == QOS_BEST_EFFORT)
        return OOM_BEST_EFFORT;

    int64_t memory = facts->memory_bytes > 0
                         ? facts->memory_bytes
                         : quantity_units(resources_get(&facts->allocatable, STR("memory")));
    int64_t request = quantity_units(resources_get(&container->resources.requests, STR("memory")));
    if (memory <= 0 || request <= 0)
        return OOM_BURSTABLE_MAX;
    int64_t score = 1000 - (int64_t)((__int128)1000 * request / memory);
    return score < OOM_BURSTABLE_MIN   ? OOM_BURSTABLE_MIN
           : score > OOM_BURSTABLE_MAX ? OOM_BURSTABLE_MAX
                                       : score;
}

/* The containers that a sidecar serves shall not outlive it for want of memory. */
static int64_t oom_score(const struct node_pod *pod, const struct node_container *container,
                         const struct node_facts *facts)
{
    int64_t score = oom_score_alone(pod, container, facts);
    for (uint32_t i = 0; container->sidecar && i < pod->containers.count; i++) {
        int64_t served = oom_score_alone(pod, &pod->containers.items[i], facts);
        if (served < score)
            score = served;
    }
    return score;
}

/* --- huge pages --- */

/* 2 MiB pages are "2MB" to the kernel. */
static struct str page_size_text(struct arena *arena, int64_t bytes)
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
    size_t unit = 0;
    for (; unit + 1 < KV_COUNT_OF(units) && bytes >= 1024 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    return arena_strf(arena, "%lld%s", (long long)bytes, units[unit]);
}

static void add_hugepages(struct arena *arena, const struct resources *limits,
                          Cri__LinuxContainerResources *out)
{
    struct str prefix = STR("hugepages-");
    out->hugepage_limits = arena_array(arena, Cri__HugepageLimit *, limits->count);
    for (uint32_t i = 0; i < limits->count; i++) {
        const struct resource *limit = &limits->items[i];
        struct quantity size;
        if (!str_starts(limit->name, prefix) ||
            quantity_parse(str_sub(limit->name, prefix.len, limit->name.len), &size, NULL) < 0)
            continue;
        int64_t bytes = quantity_units(limit->amount);
        Cri__HugepageLimit *page = MESSAGE(arena, hugepage_limit, HugepageLimit);
        page->page_size = message_str(arena, page_size_text(arena, quantity_units(size)));
        page->limit = bytes > 0 ? (uint64_t)bytes : 0;
        out->hugepage_limits[out->n_hugepage_limits++] = page;
    }
}

Cri__LinuxContainerResources *container_resources(struct arena *arena, const struct node_pod *pod,
                                                  const struct node_container *container,
                                                  const struct node_facts *facts)
{
    const struct resource_needs *needs = &container->resources;
    Cri__LinuxContainerResources *out = linux_resources(
        arena, resources_get(&needs->requests, STR("cpu")),
        resources_get(&needs->limits, STR("cpu")), resources_get(&needs->limits, STR("memory")));
    out->oom_score_adj = oom_score(pod, container, facts);
    add_hugepages(arena, &needs->limits, out);
    return out;
}

/* --- the pod as a whole --- */

Cri__LinuxContainerResources *pod_resources(struct arena *arena, const struct node_pod *pod)
{
    return linux_resources(arena, pod_sum(pod, STR("cpu"), false), pod_sum(pod, STR("cpu"), true),
                           pod_sum(pod, STR("memory"), true));
}
