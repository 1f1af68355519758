/* Effective requests, rule by rule. The sums are those of kube-scheduler. */
#include "api/requests.h"

#include "api/kind_test.h"

/* "cpu=1500m memory=2Gi", in the order of names. */
static void expect_requests(const char *spec_and_status, const char *want)
{
    SAMPLE s;
    struct err err;
    struct resources r;
    AUTO_BUF text = { 0 };
    AUTO_BUF got = { 0 };
    buf_addf(&text, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n%s", spec_and_status);
    sample_decode(&s, text.p);
    EXPECT_OK(pod_requests(pod_of(s.object), &s.arena, &r, &err), err);
    for (uint32_t i = 0; i < r.count; i++) {
        char amount[QUANTITY_TEXT_MAX];
        quantity_format(r.items[i].amount, amount);
        buf_addf(&got, "%s%.*s=%s", i ? " " : "", STR_ARG(r.items[i].name), amount);
    }
    EXPECT_STR(buf_str(&got), want);
}

#define C(name, requests) "{name: " name ", resources: {requests: " requests "}}"
#define SIDECAR(name, requests)                                                                    \
    "{name: " name ", restartPolicy: Always, resources: {requests: " requests "}}"

TEST(containers_add_up)
{
    expect_requests("spec: {containers: [{name: a}]}\n", "");
    expect_requests("spec: {containers: [" C("a", "{cpu: 100m, memory: 1Gi}") ", " C(
                        "b", "{cpu: 0.4, example.com/gpu: 1}") "]}\n",
                    "cpu=500m example.com/gpu=1 memory=1Gi");
}

TEST(a_limit_without_a_request_is_the_request)
{
    expect_requests("spec: {containers: [{name: a, resources: {limits: {cpu: 2, memory: 1Gi},"
                    " requests: {cpu: 1}}}]}\n",
                    "cpu=1 memory=1Gi");
}

TEST(an_init_container_counts_only_where_it_asks_for_more)
{
    expect_requests(
        "spec: {initContainers: [" C("i", "{cpu: 2, memory: 10Mi}") ", " C(
            "j", "{cpu: 1, memory: 20Mi}") "],"
                                           " containers: [" C("a", "{cpu: 1, memory: 1Gi}") "]}\n",
        "cpu=2 memory=1Gi");
}

TEST(a_sidecar_counts_with_the_containers)
{
    expect_requests("spec: {initContainers: [" SIDECAR("s", "{cpu: 1}") "], containers: [" C(
                        "a", "{cpu: 2}") "]}\n",
                    "cpu=3");
}

TEST(an_init_container_counts_with_the_sidecars_started_before_it)
{
    /* i: 5. s1: 1. j: 4 + 1. s2: 1 + 2. Running: 1 + 1 + 2. */
    expect_requests(
        "spec: {initContainers: [" C("i", "{cpu: 5}") ", " SIDECAR("s1", "{cpu: 1}") ", " C(
            "j", "{cpu: 4.5}") ", " SIDECAR("s2",
                                            "{cpu: 2}") "], containers: [" C("a",
                                                                             "{cpu: 1}") "]}\n",
        "cpu=5500m");
    /* The same with the sidecars last: they do not count with the init containers. */
    expect_requests(
        "spec: {initContainers: [" C("i", "{cpu: 5}") ", " C("j", "{cpu: 4.5}") ", " SIDECAR(
            "s1", "{cpu: 1}") ", " SIDECAR("s2",
                                           "{cpu: 2}") "], containers: [" C("a", "{cpu: 1}") "]}\n",
        "cpu=5");
    expect_requests(
        "spec: {initContainers: [" SIDECAR("s1", "{cpu: 1}") ", " SIDECAR("s2", "{cpu: 2}") ", " C(
            "i", "{memory: 1Gi}") "], containers: [" C("a", "{cpu: 1}") "]}\n",
        "cpu=4 memory=1Gi");
}

TEST(overhead_comes_on_top)
{
    expect_requests("spec: {overhead: {cpu: 250m, memory: 120Mi}, initContainers: [" C(
                        "i", "{cpu: 3}") "], containers: [" C("a", "{cpu: 1}") "]}\n",
                    "cpu=3250m memory=120Mi");
}

TEST(requests_of_the_pod_replace_the_sum_of_its_containers)
{
    expect_requests("spec: {resources: {requests: {cpu: 1}}, overhead: {cpu: 1}, containers: [" C(
                        "a", "{cpu: 4, memory: 1Gi}") "]}\n",
                    "cpu=2 memory=1Gi");
    /* Only cpu, memory and huge pages can be asked for so. */
    expect_requests("spec: {resources: {requests: {cpu: 1, example.com/gpu: 8}}, containers: [" C(
                        "a", "{example.com/gpu: 1}") "]}\n",
                    "cpu=1 example.com/gpu=1");
}

TEST(a_limit_of_the_pod_is_a_request_if_no_container_has_one)
{
    expect_requests("spec: {resources: {limits: {cpu: 8, memory: 4Gi}}, containers: [" C(
                        "a", "{cpu: 1}") "]}\n",
                    "cpu=1 memory=4Gi");
    expect_requests("spec: {resources: {limits: {hugepages-2Mi: 8Mi}}, containers: [" C(
                        "a", "{hugepages-2Mi: 2Mi}") "]}\n",
                    "hugepages-2Mi=8Mi");
}

#define STATUS(conditions, allocated, actual)                                                      \
    "status: {conditions: [" conditions                                                            \
    "], containerStatuses: [{name: a, allocatedResources: " allocated                              \
    ", resources: {requests: " actual "}}]}\n"

TEST(a_container_being_resized_counts_with_the_most_it_may_have)
{
    const char *const spec = "spec: {containers: [" C("a", "{cpu: 2, memory: 1Gi}") "]}\n";
    const struct {
        const char *status, *want;
    } cases[] = {
        { STATUS("", "{cpu: 1, memory: 2Gi}", "{cpu: 1, memory: 1Gi}"), "cpu=2 memory=2Gi" },
        { STATUS("", "{cpu: 1}", "{cpu: 3}"), "cpu=3 memory=1Gi" },
        /* Growing is refused for good: what it has is what counts. */
        { STATUS("{type: PodResizePending, status: 'True', reason: Infeasible}",
                 "{cpu: 1, memory: 1Gi}", "{cpu: 1, memory: 1Gi}"),
          "cpu=1 memory=1Gi" },
        { STATUS("{type: PodResizePending, status: 'True', reason: Deferred}",
                 "{cpu: 1, memory: 1Gi}", "{cpu: 1, memory: 1Gi}"),
          "cpu=2 memory=1Gi" },
        { "status: {resize: Infeasible, containerStatuses: [{name: a, allocatedResources:"
          " {cpu: 1, memory: 1Gi}}]}\n",
          "cpu=1 memory=1Gi" },
        { "status: {containerStatuses: [{name: a}, {name: other, resources: {requests: {cpu: 9}}}]}\n",
          "cpu=2 memory=1Gi" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, "%s%s", spec, cases[i].status);
        expect_requests(text.p, cases[i].want);
    }
}

TEST(a_sidecar_can_be_resized_and_an_init_container_cannot)
{
    expect_requests(
        "spec: {initContainers: [" SIDECAR("s", "{cpu: 1}") ", " C(
            "i",
            "{cpu: 1}") "],"
                        " containers: [" C(
                            "a",
                            "{cpu: 1}") "]}\n"
                                        "status: {initContainerStatuses: [{name: s, resources: {requests: {cpu: 3}}},"
                                        " {name: i, resources: {requests: {cpu: 9}}}]}\n",
        "cpu=4");
}

TEST(on_a_node_a_pod_takes_one_pod)
{
    SAMPLE s;
    struct err err;
    struct resources r;
    sample_decode(&s, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [" C(
                          "a", "{cpu: 1, z/z: 1}") "]}\n");
    EXPECT_OK(pod_requests_on_node(pod_of(s.object), &s.arena, &r, &err), err);
    EXPECT_EQ(r.count, 3);
    EXPECT_STR(r.items[1].name, "pods"); /* in its place by name */
    EXPECT_EQ(quantity_units(r.items[1].amount), 1);
}

TEST(a_sum_beyond_any_node_is_an_error_that_names_the_resource)
{
    SAMPLE s;
    struct err err;
    struct resources r;
    sample_decode(&s, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [" C(
                          "a", "{memory: 9E}") ", " C("b", "{memory: 9E}") "]}\n");
    EXPECT_ERR(pod_requests(pod_of(s.object), &s.arena, &r, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "memory");
}
