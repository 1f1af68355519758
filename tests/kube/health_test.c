/* Conditions and choices of pools on a real control plane, as kubectl shows them. */
#include "kube/life.h"

/* --- do nodes join? --- */

static struct str healthy(struct plane *p, const char *field)
{
    return life_get(p,
                    "nodepool web -o 'jsonpath={.status.conditions[?(@.type=="
                    "\"NodeRegistrationHealthy\")].%s}'",
                    field);
}

/* The fourth column: NAME NODECLASS NODES READY NODEREGISTRATIONHEALTHY AGE. */
static bool column_says(struct plane *p, const char *status)
{
    return str_eqz(plane_must(p, "kubectl get nodepool web --no-headers | awk '{ print $5 }'"),
                   status);
}

static void set_delay(struct plane *p, const char *json)
{
    plane_must(p,
               "kubectl patch kwoknodeclass default --type=merge -p "
               "'{\"spec\":{\"nodeRegistrationDelay\":%s}}'",
               json);
}

TEST(registration_health_goes_through_its_states)
{
    struct plane *p = life_plane();
    set_delay(p, "\"1h\"");
    life_pool(p, "name: web, annotations: {karve.io/registration-timeout: 3s}", "", "");
    life_controller(p, NULL);
    PLANE_WAIT(p, column_says(p, "Unknown"));

    life_deployment(p, "web", 1, "", "terminationGracePeriodSeconds: 0");
    PLANE_WAIT(p, column_says(p, "False"));
    EXPECT_STR(healthy(p, "reason"), "RegistrationFailed");
    EXPECT_HAS(healthy(p, "message"), "Node not registered with cluster after 3s");
    EXPECT_STR(life_get(p, "nodepool web -o 'jsonpath={.status.conditions[?(@.type=="
                           "\"Ready\")].status}'"),
               "True");

    set_delay(p, "null");
    PLANE_WAIT(p, column_says(p, "True"));
    PLANE_WAIT(p, life_running("web") == 1);

    plane_must(p, "kubectl patch nodepool web --type=merge -p '{\"spec\":{\"weight\":5}}'");
    PLANE_WAIT(p, column_says(p, "Unknown"));
    EXPECT_TRUE(str_eq(healthy(p, "observedGeneration"),
                       life_get(p, "nodepool web -o 'jsonpath={.metadata.generation}'")));
}

TEST(a_pod_that_fits_nowhere_is_told_why_until_it_has_a_place)
{
    struct plane *p = life_plane();
    life_pool(p, "name: web", "limits: {cpu: '0'}", "");
    life_controller(p, NULL);
    life_deployment(p, "web", 1, "", "terminationGracePeriodSeconds: 0");
    const char *condition = "pod -l app=web -o 'jsonpath={.items[*].status.conditions[?(@.type=="
                            "\"karve.io/NodePlanned\")].%s}'";
    PLANE_WAIT(p, str_eqz(life_get(p, condition, "status"), "False"));
    EXPECT_HAS(life_get(p, condition, "message"), "limits");
    PLANE_WAIT(p, life_count(p, "events --field-selector reason=FailedScheduling") > 0);

    plane_must(p, "kubectl patch nodepool web --type=merge -p '{\"spec\":{\"limits\":null}}'");
    PLANE_WAIT(p, life_running("web") == 1);
    PLANE_WAIT(p, str_eqz(life_get(p, condition, "status"), "True"));
}

/* --- overlays --- */

#define OVERLAY(name, type, says)                                                                  \
    "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: " name            \
    "}\nspec: {weight: 10, " says                                                                  \
    ", requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [" type        \
    "]}]}\n"

static struct str overlay_condition(struct plane *p, const char *name, const char *field)
{
    return life_get(p,
                    "nodeoverlay %s -o 'jsonpath={.status.conditions[?(@.type=="
                    "\"ValidationSucceeded\")].%s}'",
                    name, field);
}

/* A price decides what is planned for; which of the types that will do is launched is the provider's choice,
 * by its own prices. A resource that only one type has leaves no choice. */
TEST(overlays_change_what_is_planned_and_launched)
{
    struct plane *p = life_plane();
    plane_apply(p, OVERLAY("cheap", "m-64x-arm64-linux", "price: '0.0001'"));
    plane_apply(p, OVERLAY("device", "m-16x-arm64-linux", "capacity: {example.com/device: '4'}"));
    life_pool(p, "name: web", "", "");
    life_deployment(p, "web", 1, "", "terminationGracePeriodSeconds: 0");
    struct str plan = plane_must(p, "$KARVE plan --kubeconfig $DIR/admin.kubeconfig");
    EXPECT_HAS(plan, "m-64x-arm64-linux");

    plane_must(p, "kubectl patch deployment web --type=json -p '[{\"op\":\"add\",\"path\":"
                  "\"/spec/template/spec/containers/0/resources/limits\",\"value\":"
                  "{\"example.com/device\":\"1\"}}]'");
    life_controller(p, NULL);
    PLANE_WAIT(p, life_running("web") == 1);
    EXPECT_HAS(plane_must(p, "kubectl get nodeclaim --no-headers"), "m-16x-arm64-linux");
    EXPECT_HAS(plane_must(p, "kubectl get nodeoverlay cheap --no-headers"), "True");
}

TEST(overlays_that_contradict_each_other_are_told_so)
{
    struct plane *p = life_plane();
    plane_apply(p, OVERLAY("one", "c-8x-amd64-linux", "price: '1.5'")
                       OVERLAY("two", "c-8x-amd64-linux", "price: '2'"));
    life_pool(p, "name: web", "", "");
    life_controller(p, NULL);
    PLANE_WAIT(p, overlay_condition(p, "one", "status").len > 0 &&
                      overlay_condition(p, "two", "status").len > 0);
    bool one = str_eqz(overlay_condition(p, "one", "status"), "False");
    const char *loser = one ? "one" : "two";
    EXPECT_STR(overlay_condition(p, loser, "status"), "False");
    EXPECT_STR(overlay_condition(p, loser, "reason"), "Conflict");

    plane_must(p, "kubectl patch nodeoverlay %s --type=merge -p '{\"spec\":{\"weight\":20}}'",
               loser);
    PLANE_WAIT(p, str_eqz(overlay_condition(p, "one", "status"), "True") &&
                      str_eqz(overlay_condition(p, "two", "status"), "True"));
}
