#include "base/file.h"
#include "codec/duration.h"
#include "sim/scenario.h"
#include "support/test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL                                                                                       \
    "- {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: " \
    "{spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default},"        \
    " requirements: []}}}}\n"
#define CLASS                                                                                      \
    "- {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n"
#define WEB                                                                                        \
    "- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: "     \
    "{replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: "      \
    "web}}, spec: {containers: [{name: c, image: i}]}}}}\n"

static int parse(const char *text, struct scenario **out, struct err *err)
{
    return scenario_parse("a.yaml", str_of(text), out, err);
}

static struct scenario *good(const char *text)
{
    struct scenario *s = NULL;
    struct err err = { 0 };
    EXPECT_OK(parse(text, &s, &err), err);
    return s;
}

static void expect_wrong(const char *text, const char *words)
{
    struct scenario *s = NULL;
    struct err err = { 0 };
    EXPECT_ERR(parse(text, &s, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
}

TEST(an_almost_empty_scenario_has_sensible_defaults)
{
    AUTO(scenario) s = good("about: nothing happens\n");
    EXPECT_STR(s->name, "a");
    EXPECT_EQ(s->duration_ns, 2 * DURATION_HOUR);
    EXPECT_EQ(s->seed, 1);
    EXPECT_EQ(s->zones.count, 6);
    EXPECT_TRUE(s->boot.min_ns > 0 && s->boot.max_ns > s->boot.min_ns);
    EXPECT_EQ(s->settings.batch_idle_ns, DURATION_SECOND);
    EXPECT_EQ(s->timeline_count, 0);
    EXPECT_EQ(s->chaos.steps, 0);
}

TEST(every_field_is_taken_over)
{
    AUTO(scenario) s = good(
        "name: all\nabout: of it\nstart: 2026-01-02T03:04:05Z\nduration: 3h\nsample: 30s\n"
        "seed: 42\n"
        "controller: {batch-idle-duration: 2s, registration-health-window: 4, feature-gates: "
        "\"NodeRepair=true\"}\n"
        "cloud: {types: kwok, boot: 10s, ready: {min: 1s, max: 2s}, terminate: 5s, bootFailures: "
        "0.5, readyFailures: 0.25}\n"
        "cluster: {podStart: 3s, podStop: 4s, jobRun: 1m, startupTaints: 9s, eventDelay: "
        "1500ms}\n"
        "faults: {storeErrors: 0.1, storeLostReplies: 0.2, watchCuts: 0.3, launchErrors: 0.4, "
        "launchLostReplies: 0.5, cloudErrors: 1, crashesPerHour: 2.5}\n"
        "chaos: {steps: 7, pause: {min: 1s, max: 9s}, actions: [scale, crash]}\n");
    EXPECT_STR(s->name, "all");
    EXPECT_EQ(s->start_us, 1767323045000000);
    EXPECT_EQ(s->duration_ns, 3 * DURATION_HOUR);
    EXPECT_EQ(s->sample_ns, 30 * DURATION_SECOND);
    EXPECT_EQ(s->seed, 42);
    EXPECT_EQ(s->settings.batch_idle_ns, 2 * DURATION_SECOND);
    EXPECT_EQ(s->settings.health.window, 4);
    EXPECT_TRUE(s->settings.node_repair);
    EXPECT_TRUE(s->kwok_types);
    EXPECT_EQ(s->zones.count, 4);
    EXPECT_EQ(s->boot.min_ns, s->boot.max_ns);
    EXPECT_EQ(s->ready.max_ns, 2 * DURATION_SECOND);
    EXPECT_EQ(s->startup_taints.min_ns, 9 * DURATION_SECOND);
    EXPECT_EQ(s->event_delay_ns, 1500000000);
    EXPECT_TRUE(s->rates.launch_lost_reply == 0.5);
    EXPECT_TRUE(s->rates.cloud_error == 1);
    EXPECT_TRUE(s->crashes_per_hour == 2.5);
    EXPECT_EQ(s->chaos.steps, 7);
    EXPECT_EQ(s->chaos.actions, 1u << ACTION_SCALE | 1u << ACTION_CRASH);
}

TEST(the_timeline_is_in_the_order_of_time_and_has_the_ends_of_what_lasts)
{
    AUTO(scenario) s = good("cloud: {types: kwok}\nobjects:\n" POOL CLASS WEB "timeline:\n"
                            "- {at: 10m, scale: {namespace: shop, name: web, replicas: 40}}\n"
                            "- {at: 5m, say: dry, drought: {zone: test-zone-a}, for: 10m}\n"
                            "- {at: 10m, say: after the scale}\n"
                            "- {at: 20m, breakImage: default, for: 2h}\n");
    EXPECT_EQ(s->timeline_count, 5); /* an end beyond the duration is none */
    EXPECT_EQ(s->timeline[0].kind, ACTION_DROUGHT);
    EXPECT_STR(s->timeline[0].say, "dry");
    EXPECT_EQ(s->timeline[1].kind, ACTION_SCALE);
    EXPECT_EQ(s->timeline[2].kind, ACTION_SAY);
    EXPECT_EQ(s->timeline[3].kind, ACTION_DROUGHT);
    EXPECT_TRUE(s->timeline[3].ends);
    EXPECT_STR(s->timeline[3].offering.match.zone, "test-zone-a");
    EXPECT_EQ(s->timeline[3].at_ns, 15 * DURATION_MINUTE);
    EXPECT_EQ(s->timeline[4].kind, ACTION_BREAK);
}

TEST(actions_are_told_in_words)
{
    AUTO(scenario) s =
        good("cloud: {types: kwok}\nobjects:\n" POOL CLASS WEB "timeline:\n"
             "- {at: 0s, scale: {namespace: shop, name: web, replicas: 40}}\n"
             "- {at: 1s, delete: {kind: NodeClaim, any: 2}}\n"
             "- {at: 2s, delete: {kind: NodePool, name: general}}\n"
             "- {at: 3s, price: {capacityType: spot, factor: 2}}\n"
             "- {at: 4s, drought: {zone: test-zone-a, capacityType: spot}, ends: true}\n"
             "- {at: 5s, outage: test-zone-b}\n"
             "- {at: 6s, breakNetwork: \"*\"}\n"
             "- {at: 7s, kill: {count: 3, zone: test-zone-a}}\n"
             "- {at: 8s, crash: true}\n"
             "- {at: 9s, crash: {calls: 3, afterEffect: true}}\n"
             "- {at: 10s, faults: {storeErrors: 0.5}}\n"
             "- at: 11s\n  apply:\n    {apiVersion: v1, kind: Namespace, metadata: {name: x}}\n");
    static const char *const words[] = {
        "scale Deployment shop/web to 40",
        "delete 2 NodeClaims",
        "delete NodePool general",
        "the price of spot is times 2",
        "spot in test-zone-a can be had again",
        "zone test-zone-b goes down",
        "network of all node classes breaks",
        "3 instances of any kind in test-zone-a die",
        "the control plane is killed",
        "the control plane is killed",
        "calls fail at other rates",
        "apply Namespace x",
    };
    EXPECT_EQ(s->timeline_count, KV_COUNT_OF(words));
    for (uint32_t i = 0; i < s->timeline_count; i++) {
        AUTO_BUF got = { 0 };
        action_words(&s->timeline[i], &got);
        EXPECT_STR(buf_str(&got), words[i]);
    }
}

TEST(mistakes_are_told_with_file_line_and_field)
{
    expect_wrong("", "a.yaml:1:1: is empty");
    expect_wrong("a: 1\n---\nb: 2\n", "a second document");
    expect_wrong("- 1\n", "a.yaml:1:1: ");
    expect_wrong("name: x\ndurations: 1h\n",
                 "a.yaml:2:1: durations: unknown field, did you mean \"duration\"?");
    expect_wrong("duration: 0s\n", "a.yaml:1:11: duration: \"0s\" expected at least 1s");
    expect_wrong("duration: 9000h\n", "expected 0s to 8784h");
    expect_wrong("start: tomorrow\n", "a.yaml:1:8: start: ");
    expect_wrong("cloud: {boot: {min: 9s, max: 1s}}\n", "cloud.boot: expected a duration such as");
    expect_wrong("cloud: {boot: -1s}\n", "cloud.boot: expected a duration");
    expect_wrong("cloud: {boot: {min: 1s, max: 2s, mid: 1s}}\n", "cloud.boot: expected");
    expect_wrong("cloud: {bootFailures: 1.5}\n",
                 "cloud.bootFailures: expected a share from 0 to 1");
    expect_wrong("cloud: {types: gcp}\n", "cloud.types: expected one of \"catalogue\", \"kwok\"");
    expect_wrong("cloud: {region: mars-1}\n", "cloud.region: there is no region \"mars-1\"");
    expect_wrong("cloud: {types: kwok, region: us-east-1}\n", "no catalogue and no region");
    expect_wrong("cloud: {catalogue: none.yaml}\n", "a.yaml:1:20: cloud.catalogue: ");
    expect_wrong("controller: {batch-idel-duration: 1s}\n",
                 "did you mean \"batch-idle-duration\"?");
    expect_wrong("controller: {batch-idle-duration: soon}\n", "controller.batch-idle-duration: ");
    expect_wrong("manifests: [none.yaml]\n", "a.yaml:1:13: manifests[0]: ");
    expect_wrong("chaos: {steps: 0}\n", "chaos.steps: expected 1 to 10000");
    expect_wrong("chaos: {steps: 1, actions: [dance]}\n", "chaos.actions[0]: expected one of");
}

TEST(objects_are_checked_as_a_cluster_would)
{
    expect_wrong("objects:\n- {apiVersion: v1, kind: Nodle}\n",
                 "a.yaml:2:3: objects[0]: \"Nodle\" of \"v1\" is not a kind that karve reads");
    expect_wrong("objects:\n- 5\n", "objects[0]: expected an object with apiVersion and kind");
    expect_wrong("objects:\n" WEB "- apiVersion: apps/v1\n  kind: Deployment\n"
                 "  metadata: {name: b}\n  spec: {replica: 3, selector: {matchLabels: {a: b}}, "
                 "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "
                 "i}]}}}\n",
                 "a.yaml:6:10: objects[1].spec.replica: unknown field, did you mean \"replicas\"?");
    expect_wrong("objects:\n" WEB WEB, "there is an object of this kind and name already");
}

TEST(names_in_the_timeline_must_mean_something)
{
    static const char *const cases[][2] = {
        { "scale: {name: web, replicas: 1}", "there is no Deployment default/web" },
        { "scale: {namespace: shop, name: web, replicas: -1}", "expected 0 to 1000000" },
        { "delete: {kind: NodePool, name: gone}", "there is no NodePool gone" },
        { "delete: {kind: Nodle, name: x}", "\"Nodle\" is not a kind" },
        { "delete: {kind: Node}", "expected either name or any" },
        { "delete: {kind: Node, namespace: x, any: 1}", "a Node is in no namespace" },
        { "drought: {zone: test-zone-z}",
          "there is no zone \"test-zone-z\"; there are test-zone-a" },
        { "drought: {instanceType: m5.large}", "there is no instance type" },
        { "drought: {capacityType: cheap}", "expected one of \"on-demand\"" },
        { "outage: nowhere", "there is no zone" },
        { "breakImage: nothing", "there is no node class \"nothing\"" },
        { "price: {zone: test-zone-a, factor: 0}", "expected a number above 0" },
        { "kill: {count: 0}", "expected 1 to" },
        { "crash: false", "expected true" },
        { "crash: {calls: 0}", "expected true, or" },
        { "crash: true, kill: {count: 1}", "expected one action" },
        { "ends: true", "expected one action" },
        { "crash: true, for: 5m", "for and ends go with" },
        { "outage: test-zone-a, for: 5m, ends: true", "not both" },
        { "apply: []", "expected an object, or a list" },
        { "apply: {apiVersion: v1, kind: Node}", "timeline[0].apply" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        char text[2000];
        snprintf(text, sizeof text,
                 "cloud: {types: kwok}\nobjects:\n" POOL CLASS WEB "timeline:\n- {at: 1m, %s}\n",
                 cases[i][0]);
        expect_wrong(text, cases[i][1]);
    }
    expect_wrong("timeline:\n- {at: 3h, say: late}\n", "is after the end of the scenario");
    expect_wrong("timeline:\n- {say: never}\n", "timeline[0].at: ");
}

TEST(what_the_timeline_brings_may_be_scaled_by_it)
{
    AUTO(scenario) s = good("timeline:\n"
                            "- {at: 2m, scale: {namespace: shop, name: web, replicas: 1}}\n"
                            "- at: 1m\n  apply:\n  " WEB);
    EXPECT_EQ(s->timeline[0].kind, ACTION_APPLY);
    EXPECT_EQ(s->timeline[0].apply.object_count, 1);
}

TEST(all_mistakes_are_told_at_once_as_far_as_they_fit)
{
    struct scenario *s = NULL;
    struct err err = { 0 };
    EXPECT_ERR(parse("nam: x\nsead: 3\nduration: []\n", &s, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "a.yaml:1:1: nam");
    EXPECT_HAS(str_of(err.text), "\na.yaml:2:1: sead");
    EXPECT_HAS(str_of(err.text), "\na.yaml:3:11: duration");

    AUTO_BUF many = { 0 };
    for (int i = 0; i < 100; i++)
        buf_addf(&many, "unknown%d: 1\n", i);
    EXPECT_ERR(scenario_parse("a.yaml", buf_str(&many), &s, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "more)");
    EXPECT_TRUE(strlen(err.text) < ERR_TEXT_MAX - 1);
}

TEST(a_written_scenario_reads_back_the_same)
{
    for (const char *const *name = scenario_names; *name; name++) {
        AUTO(scenario) s = NULL;
        AUTO(scenario) again = NULL;
        AUTO_BUF once = { 0 }, twice = { 0 };
        struct err err = { 0 };
        EXPECT_OK(scenario_load(*name, &s, &err), err);
        EXPECT_STR(s->name, *name);
        scenario_write(s, &once);
        EXPECT_OK(scenario_parse("b.yaml", buf_str(&once), &again, &err), err);
        scenario_write(again, &twice);
        EXPECT_TRUE(str_eq(buf_str(&once), buf_str(&twice)));
        EXPECT_EQ(again->object_count, s->object_count);
        EXPECT_EQ(again->timeline_count, s->timeline_count);
    }
}

TEST(a_name_that_is_no_file_and_not_built_in_lists_those_that_are_or_the_one_meant)
{
    struct scenario *s = NULL;
    struct err err = { 0 };
    EXPECT_ERR(scenario_load("black-monday", &s, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "there are black-friday, chaos, cooldown");
    EXPECT_ERR(scenario_load("/nowhere/x.yaml", &s, &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(scenario_load("black-fridy", &s, &err), err, ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "\"black-fridy\"; did you mean black-friday?");
}

TEST(manifests_and_catalogue_are_found_beside_the_file)
{
    char folder[] = "/tmp/karve-scenario-XXXXXX", path[100];
    struct err err = { 0 };
    AUTO(scenario) s = NULL;
    EXPECT_TRUE(mkdtemp(folder) != NULL);
    static const char *const files[][2] = {
        { "web.yaml", WEB },
        { "types.yaml", "instanceTypes:\n- {name: big, capacity: {cpu: 4, memory: 8Gi}, offerings: "
                        "[{zone: zone-x, capacityType: spot, price: 0.1}]}\n" },
        { "s.yaml", "cloud: {catalogue: types.yaml}\nmanifests: [web.yaml]\n"
                    "timeline: [{at: 1m, outage: zone-x}]\n" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
        FILE *f = fopen(path, "w");
        EXPECT_TRUE(f != NULL);
        /* A manifest is one object, the macro is an item of a list. */
        fputs(i == 0 ? files[i][1] + 2 : files[i][1], f);
        fclose(f);
    }
    EXPECT_OK(scenario_load(path, &s, &err), err);
    EXPECT_EQ(s->object_count, 1);
    EXPECT_HAS(s->objects[0], "\"web\"");
    EXPECT_EQ(s->zones.count, 1);
    for (size_t i = 0; i < KV_COUNT_OF(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
        unlink(path);
    }
    rmdir(folder);
}
