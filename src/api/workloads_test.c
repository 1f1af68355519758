/* The kinds that make pods. */
#include "api/workloads.h"
#include "api/kind_test.h"

#define POD "{containers: [{name: c, image: i}]}"
#define TEMPLATE "template: {metadata: {labels: {app: web}}, spec: " POD "}"
#define SELECTOR "selector: {matchLabels: {app: web}}"
#define APPS(kind_, spec_)                                                                         \
    "{apiVersion: apps/v1, kind: " kind_ ", metadata: {name: web, namespace: shop}, spec: " spec_  \
    "}"

TEST(deployment_decodes_replicas_strategy_template_and_status)
{
    SAMPLE s;
    sample_decode(
        &s, "apiVersion: apps/v1\n"
            "kind: Deployment\n"
            "metadata: {name: web, namespace: shop}\n"
            "spec:\n"
            "  replicas: 80\n"
            "  minReadySeconds: 5\n"
            "  revisionHistoryLimit: 3\n"
            "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 10%, maxUnavailable: 0}}\n"
            "  selector: {matchLabels: {app: web}}\n"
            "  template:\n"
            "    metadata: {labels: {app: web, tier: front}}\n"
            "    spec:\n"
            "      containers:\n"
            "      - name: web\n"
            "        image: registry.example.com/web:1\n"
            "        resources: {requests: {cpu: 500m, memory: 1Gi}}\n"
            "status:\n"
            "  observedGeneration: 4\n"
            "  replicas: 80\n"
            "  updatedReplicas: 80\n"
            "  readyReplicas: 79\n"
            "  availableReplicas: 79\n"
            "  unavailableReplicas: 1\n"
            "  conditions:\n"
            "  - {type: Available, status: 'True', lastUpdateTime: '2026-01-02T03:04:05Z', "
            "lastTransitionTime: '2026-01-02T03:04:05Z', reason: MinimumReplicasAvailable}\n");
    const struct deployment *d = deployment_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(d->spec.replicas.value, 80);
    EXPECT_STR(d->spec.strategy.maybe_rolling->max_surge.str, "10%");
    EXPECT_EQ(d->spec.strategy.maybe_rolling->max_unavailable.number, 0);
    EXPECT_STR(str_map_get(&d->spec.maybe_template->meta.labels, STR("tier")), "front");
    EXPECT_EQ(d->spec.maybe_template->spec.containers.count, 1);
    EXPECT_TRUE(
        label_selector_matches(d->spec.maybe_selector, &d->spec.maybe_template->meta.labels));
    EXPECT_EQ(d->status.ready_replicas, 79);
    EXPECT_EQ(d->status.conditions.count, 1);
}

TEST(deployment_defaults_are_those_of_the_api_server)
{
    SAMPLE s, recreate, partial;
    sample_read(&s, APPS("Deployment", "{" SELECTOR ", " TEMPLATE "}"), NULL);
    sample_read(&recreate,
                APPS("Deployment", "{strategy: {type: Recreate}, " SELECTOR ", " TEMPLATE "}"),
                NULL);
    sample_read(&partial,
                APPS("Deployment",
                     "{strategy: {rollingUpdate: {maxSurge: 1}}, " SELECTOR ", " TEMPLATE "}"),
                NULL);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(sample_default(&s, "spec.replicas"), "1");
    EXPECT_STR(sample_default(&s, "spec.revisionHistoryLimit"), "10");
    EXPECT_STR(sample_default(&s, "spec.progressDeadlineSeconds"), "600");
    EXPECT_STR(sample_default(&s, "spec.strategy.type"), "\"RollingUpdate\"");
    EXPECT_STR(sample_default(&s, "spec.strategy.rollingUpdate.maxSurge"), "\"25%\"");
    EXPECT_STR(sample_default(&recreate, "spec.strategy"), "{\"type\":\"Recreate\"}");
    EXPECT_STR(sample_default(&partial, "spec.strategy.rollingUpdate.maxSurge"), "1");
    EXPECT_STR(sample_default(&partial, "spec.strategy.rollingUpdate.maxUnavailable"), "\"25%\"");
}

TEST(deployment_selector_finds_its_own_pods)
{
    expect_problem(APPS("Deployment",
                        "{" SELECTOR ", template: {metadata: {labels: {app: api}}, spec: " POD
                        "}}"),
                   "spec.template.metadata.labels: do not match spec.selector");
    expect_problem(APPS("Deployment", "{selector: {}, " TEMPLATE "}"), "spec.selector: is empty");
    expect_problem(APPS("Deployment", "{" TEMPLATE "}"), "spec.selector: required, missing");
    expect_problem(APPS("Deployment", "{" SELECTOR "}"), "spec.template: required, missing");
    expect_problem(APPS("Deployment", "{selector: {matchLabels: {app: 'a b'}}, " TEMPLATE "}"),
                   "spec.selector.matchLabels[\"app\"]: ");
}

TEST(deployment_update_must_be_able_to_take_a_step)
{
    expect_problem(APPS("Deployment",
                        "{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}, " SELECTOR
                        ", " TEMPLATE "}"),
                   "spec.strategy.rollingUpdate: maxUnavailable and maxSurge are both 0");
    expect_problem(APPS("Deployment", "{strategy: {type: Recreate, rollingUpdate: {}}, " SELECTOR
                                      ", " TEMPLATE "}"),
                   "spec.strategy.rollingUpdate: may not be set");
    expect_problem(APPS("Deployment",
                        "{strategy: {rollingUpdate: {maxUnavailable: 150%}}, " SELECTOR
                        ", " TEMPLATE "}"),
                   "spec.strategy.rollingUpdate.maxUnavailable: is more than all");
    expect_problem(APPS("Deployment", "{strategy: {type: Rolling}, " SELECTOR ", " TEMPLATE "}"),
                   "spec.strategy.type: expected one of \"Recreate\", \"RollingUpdate\"");
    expect_problem(
        APPS("Deployment", "{minReadySeconds: 700, " SELECTOR ", " TEMPLATE "}"),
        "spec.progressDeadlineSeconds: is 600, expected more than minReadySeconds (700)");
}

TEST(deployment_pods_restart_for_ever)
{
    expect_problem(APPS("Deployment",
                        "{" SELECTOR ", template: {metadata: {labels: {app: web}}, spec: "
                        "{restartPolicy: Never, containers: [{name: c, image: i}]}}}"),
                   "spec.template.spec.restartPolicy: expected Always");
    expect_problem(APPS("Deployment",
                        "{" SELECTOR ", template: {metadata: {labels: {app: web}}, spec: "
                        "{activeDeadlineSeconds: 5, containers: [{name: c, image: i}]}}}"),
                   "spec.template.spec.activeDeadlineSeconds: may not be set");
}

TEST(deployment_unknown_fields_are_found_at_every_depth)
{
    expect_problem(APPS("Deployment", "{replica: 3, " SELECTOR ", " TEMPLATE "}"),
                   "spec.replica: unknown field, did you mean \"replicas\"?");
    expect_problem(
        APPS("Deployment", "{" SELECTOR ", template: {metadata: {labels: {app: web}}, spec: "
                           "{containers: [{name: c, image: i, resource: {}}]}}}"),
        "spec.template.spec.containers[0].resource: unknown field, did you mean \"resources\"?");
    expect_problem(
        APPS("Deployment",
             "{strategy: {rollingUpdate: {maxSurges: 1}}, " SELECTOR ", " TEMPLATE "}"),
        "spec.strategy.rollingUpdate.maxSurges: unknown field, did you mean \"maxSurge\"?");
}

TEST(deployment_selector_can_not_be_changed)
{
    const char *old = APPS("Deployment", "{" SELECTOR ", " TEMPLATE "}");

    expect_change(old, APPS("Deployment", "{replicas: 5, " SELECTOR ", " TEMPLATE "}"), "");
    expect_change(old,
                  APPS("Deployment",
                       "{selector: {matchLabels: {app: api}}, template: {metadata: {labels: {app: "
                       "api}}, spec: " POD "}}"),
                  "selector can not be changed");
}

TEST(deployment_sent_again_without_its_defaults_is_no_change)
{
    const char *written = APPS("Deployment", "{" SELECTOR ", " TEMPLATE "}");
    expect_change(written, written, "");
}

TEST(replica_set_decodes_and_selects_by_count)
{
    SAMPLE s;
    sample_decode(
        &s, "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1}, spec: {" SELECTOR
            ", " TEMPLATE "}, status: {replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 2}}");
    struct workload w;

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(replica_set_of(s.object)->status.ready_replicas, 2);
    EXPECT_STR(object_field(s.object, STR("status.replicas")), "3");
    EXPECT_TRUE(workload_of(s.object, &w));
    EXPECT_EQ(w.replicas, 1);
}

static const char stateful_set_text[] =
    "apiVersion: apps/v1\n"
    "kind: StatefulSet\n"
    "metadata: {name: db, namespace: shop}\n"
    "spec:\n"
    "  replicas: 3\n"
    "  serviceName: db\n"
    "  podManagementPolicy: Parallel\n"
    "  ordinals: {start: 2}\n"
    "  selector: {matchLabels: {app: db}}\n"
    "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}\n"
    "  template:\n"
    "    metadata: {labels: {app: db}}\n"
    "    spec: {containers: [{name: c, image: i, volumeMounts: [{name: data, mountPath: /d}]}]}\n"
    "  volumeClaimTemplates:\n"
    "  - apiVersion: v1\n"
    "    kind: PersistentVolumeClaim\n"
    "    metadata: {name: data, labels: {app: db}, creationTimestamp: null}\n"
    "    spec: {accessModes: [ReadWriteOnce], storageClassName: ssd, resources: {requests: {storage: "
    "1Gi}}}\n"
    "    status: {phase: Pending}\n";

TEST(stateful_set_decodes_claim_templates_and_ordinals)
{
    SAMPLE s;
    sample_decode(&s, stateful_set_text);
    const struct stateful_set *set = stateful_set_of(s.object);
    struct workload w;

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(set->spec.claim_templates.count, 1);
    EXPECT_STR(set->spec.claim_templates.items[0].meta.name, "data");
    EXPECT_STR(set->spec.claim_templates.items[0].spec.storage_class_name, "ssd");
    EXPECT_EQ(set->spec.pod_management, POD_MANAGEMENT_PARALLEL);
    EXPECT_TRUE(workload_of(s.object, &w));
    EXPECT_EQ(w.replicas, 3);
    EXPECT_EQ(w.first, 2);
    EXPECT_STR(sample_default(&s, "spec.persistentVolumeClaimRetentionPolicy"),
               "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}");
}

TEST(stateful_set_names_are_labels_and_claims_have_names)
{
    expect_problem(
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a.b}, spec: {" SELECTOR
        ", " TEMPLATE "}}",
        "metadata.name: ");
    expect_problem(APPS("StatefulSet",
                        "{" SELECTOR ", " TEMPLATE ", volumeClaimTemplates: [{metadata: "
                        "{}, spec: {accessModes: [ReadWriteOnce], resources: {requests: "
                        "{storage: 1Gi}}}}]}"),
                   "spec.volumeClaimTemplates[0].metadata.name: required, missing");
}

TEST(workload_templates_mount_volumes_that_there_are)
{
#define MOUNTING                                                                                   \
    "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i,"           \
    " volumeMounts: [{name: data, mountPath: /d}]}]}}"
    expect_problem(APPS("Deployment", "{" SELECTOR ", " MOUNTING "}"),
                   "spec.template.spec.containers[0].volumeMounts[0].name: \"data\" is not one of");
    expect_fine(APPS("StatefulSet",
                     "{serviceName: s, " SELECTOR ", " MOUNTING
                     ", volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes:"
                     " [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}"));
    expect_problem(APPS("StatefulSet", "{serviceName: s, " SELECTOR ", " MOUNTING "}"),
                   "volumeMounts[0].name: \"data\" is not one of");
#undef MOUNTING
}

TEST(stateful_set_identity_can_not_be_changed)
{
#define SET(rest_) APPS("StatefulSet", "{" SELECTOR ", " TEMPLATE ", " rest_ "}")
    const char *old = SET("serviceName: web, replicas: 1");
    const char *problem =
        "selector, serviceName, volumeClaimTemplates and podManagementPolicy can not";

    expect_change(old, SET("serviceName: web, replicas: 5, minReadySeconds: 3"), "");
    expect_change(old, SET("serviceName: other"), problem);
    expect_change(old, SET("serviceName: web, podManagementPolicy: Parallel"), problem);
}

TEST(daemon_set_wants_a_pod_per_node)
{
    SAMPLE s;
    sample_decode(&s,
                  "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log}, spec: {" SELECTOR
                  ", " TEMPLATE "}, status: {currentNumberScheduled: 3, numberMisscheduled: 0, "
                  "desiredNumberScheduled: 4, numberReady: 3}}");
    struct workload w;

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(daemon_set_of(s.object)->status.desired, 4);
    EXPECT_TRUE(workload_of(s.object, &w));
    EXPECT_TRUE(w.per_node);
    EXPECT_STR(
        sample_default(&s, "spec.updateStrategy"),
        "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":1,\"maxSurge\":0}}");
}

TEST(daemon_set_update_takes_down_or_surges_and_not_both)
{
#define DAEMON(rolling_)                                                                           \
    APPS("DaemonSet", "{updateStrategy: {rollingUpdate: " rolling_ "}, " SELECTOR ", " TEMPLATE "}")
    expect_fine(DAEMON("{maxUnavailable: 10%}"));
    expect_fine(DAEMON("{maxSurge: 1, maxUnavailable: 0}"));
    expect_problem(DAEMON("{maxSurge: 1}"),
                   "spec.updateStrategy.rollingUpdate: maxUnavailable (1 if unset)");
    expect_problem(DAEMON("{maxUnavailable: 0}"), "are both 0, expected exactly one");
}

#define JOB(spec_)                                                                                 \
    "{apiVersion: batch/v1, kind: Job, metadata: {name: import, namespace: data}, spec: " spec_ "}"
#define NEVER "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"

static int64_t job_pods(const char *text)
{
    SAMPLE s;
    struct workload w;

    sample_decode(&s, text);
    EXPECT_STR(sample_problems(&s), "");
    EXPECT_TRUE(workload_of(s.object, &w));
    return w.replicas;
}

TEST(job_wants_as_many_pods_as_run_at_once_and_are_missing)
{
    EXPECT_EQ(job_pods(JOB("{" NEVER "}")), 1);
    EXPECT_EQ(job_pods(JOB("{parallelism: 6, completions: 12, " NEVER "}")), 6);
    EXPECT_EQ(job_pods(JOB("{parallelism: 6, completions: 4, " NEVER "}")), 4);
    EXPECT_EQ(job_pods(JOB("{completions: 4, " NEVER "}")), 1);
    EXPECT_EQ(job_pods(JOB("{parallelism: 5, " NEVER "}")), 5); /* a work queue */
    EXPECT_EQ(job_pods(JOB("{parallelism: 0, completions: 4, " NEVER "}")), 0);
    EXPECT_EQ(job_pods(JOB("{suspend: true, parallelism: 5, completions: 5, " NEVER "}")), 0);
    EXPECT_EQ(
        job_pods("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 6, "
                 "completions: 12, " NEVER "}, status: {succeeded: 9, active: 3}}"),
        3);
    EXPECT_EQ(
        job_pods("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 6, "
                 "completions: 12, " NEVER "}, status: {conditions: [{type: Failed, status: "
                 "'True'}]}}"),
        0);
}

/* A server or a manifest may say anything that fits into 64 bits. */
TEST(job_survives_absurd_numbers)
{
    SAMPLE s;
    struct workload w;
    sample_decode(&s,
                  "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completionMode: "
                  "Indexed, parallelism: 9223372036854775807, completions: "
                  "-9223372036854775808, backoffLimitPerIndex: 1, " NEVER
                  "}, status: {succeeded: -9223372036854775808}}");

    EXPECT_HAS(sample_problems(&s), "spec.completions: expected 0 to 2147483647");
    EXPECT_HAS(sample_problems(&s), "spec.parallelism: is more than 100000");
    EXPECT_TRUE(workload_of(s.object, &w));
    EXPECT_EQ(w.replicas, 0);
}

TEST(job_decodes_status_and_selects_by_successes)
{
    SAMPLE s;
    sample_decode(&s, "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {" NEVER
                      "}, status: {startTime: '2026-01-02T03:04:05Z', succeeded: 7, failed: 1, "
                      "uncountedTerminatedPods: {}, conditions: [{type: Complete, status: 'True', "
                      "lastProbeTime: '2026-01-02T03:04:05Z', lastTransitionTime: "
                      "'2026-01-02T03:04:05Z'}]}}");

    EXPECT_TRUE(job_is_finished(job_of(s.object)));
    EXPECT_STR(object_field(s.object, STR("status.successful")), "7");
}

TEST(job_pods_do_not_restart_always)
{
    expect_problem(
        JOB("{template: {spec: " POD "}}"),
        "spec.template.spec.restartPolicy: is Always if unset, expected Never or OnFailure");
    expect_problem(
        JOB("{template: {spec: {restartPolicy: Always, containers: [{name: c, image: i}]}}}"),
        "spec.template.spec.restartPolicy: is Always, expected Never or OnFailure");
    expect_problem(
        JOB("{podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: "
            "DisruptionTarget}]}]}, template: {spec: {restartPolicy: OnFailure, containers: "
            "[{name: c, image: i}]}}}"),
        "spec.template.spec.restartPolicy: is OnFailure, expected Never together with");
}

TEST(job_policies_need_one_another)
{
    expect_fine(
        JOB("{completionMode: Indexed, completions: 3, backoffLimitPerIndex: 1, maxFailedIndexes: "
            "2, podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, "
            "values: [42]}}]}, " NEVER "}"));
    expect_problem(JOB("{completionMode: Indexed, " NEVER "}"), "spec.completions: required with");
    expect_problem(JOB("{backoffLimitPerIndex: 1, " NEVER "}"), "spec.backoffLimitPerIndex: needs");
    expect_problem(JOB("{completionMode: Indexed, completions: 3, maxFailedIndexes: 1, " NEVER "}"),
                   "spec.maxFailedIndexes: needs backoffLimitPerIndex");
    expect_problem(JOB("{successPolicy: {rules: [{succeededCount: 1}]}, " NEVER "}"),
                   "spec.successPolicy: needs completionMode Indexed");
    expect_problem(
        JOB("{podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, "
            "values: [1]}}]}, " NEVER "}"),
        "spec.podFailurePolicy: has action FailIndex");
    expect_problem(JOB("{parallelism: -1, " NEVER "}"), "spec.parallelism: expected 0 to");
    expect_problem(JOB("{selector: {matchLabels: {a: b}}, " NEVER "}"),
                   "spec.selector: is made by");
    expect_problem(JOB("{manualSelector: true, selector: {matchLabels: {a: b}}, " NEVER "}"),
                   "spec.template.metadata.labels: do not match");
}

TEST(job_indexed_name_leaves_room_for_the_index)
{
    expect_fine(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: "
        "a12345678901234567890123456789012345678901234567890123456789}, spec: {completionMode: "
        "Indexed, completions: 10, " NEVER "}}");
    expect_problem("{apiVersion: batch/v1, kind: Job, metadata: {name: "
                   "a1234567890123456789012345678901234567890123456789012345678901}, spec: "
                   "{completionMode: Indexed, completions: 10, " NEVER "}}",
                   "metadata.name: is 62 characters long, expected at most 61");
}

TEST(job_defaults_depend_on_what_is_set)
{
    SAMPLE none, queue, indexed;
    sample_read(&none, JOB("{" NEVER "}"), NULL);
    sample_read(&queue, JOB("{parallelism: 4, " NEVER "}"), NULL);
    sample_read(
        &indexed,
        JOB("{completionMode: Indexed, completions: 2, backoffLimitPerIndex: 1, " NEVER "}"), NULL);

    EXPECT_STR(sample_default(&none, "spec.parallelism"), "1");
    EXPECT_STR(sample_default(&none, "spec.completions"), "1");
    EXPECT_STR(sample_default(&none, "spec.backoffLimit"), "6");
    EXPECT_STR(sample_default(&none, "spec.completionMode"), "\"NonIndexed\"");
    EXPECT_STR(sample_default(&queue, "spec.completions"), "");
    EXPECT_STR(sample_default(&indexed, "spec.completions"), "2");
    EXPECT_STR(sample_default(&indexed, "spec.backoffLimit"), "2147483647");
}

TEST(job_template_is_fixed_once_it_has_started)
{
    const char *other =
        "template: {spec: {restartPolicy: Never, containers: [{name: c, image: j}]}}";
    AUTO_BUF changed = { 0 };
    buf_addf(&changed, JOB("{%s}"), other);

    expect_change(JOB("{" NEVER "}"), changed.p, "spec: template can not be changed");
    expect_change(JOB("{suspend: true, " NEVER "}"), changed.p, "");
    expect_change(JOB("{completions: 2, " NEVER "}"), JOB("{completions: 3, " NEVER "}"),
                  "spec: completions can not be changed");
    expect_change(JOB("{completionMode: Indexed, completions: 2, parallelism: 2, " NEVER "}"),
                  JOB("{completionMode: Indexed, completions: 3, parallelism: 3, " NEVER "}"), "");
}

#define CRON(schedule_, rest_)                                                                     \
    "{apiVersion: batch/v1, kind: CronJob, metadata: {name: report}, spec: {schedule: '" schedule_ \
    "', " rest_ "jobTemplate: {spec: {" NEVER "}}}}"

TEST(cron_job_decodes_its_schedule_and_template)
{
    SAMPLE s;
    sample_decode(&s, CRON("30 2 * * *", "timeZone: Europe/Madrid, concurrencyPolicy: Forbid, "));
    const struct cron_job *cron = cron_job_of(s.object);
    struct workload w;

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(cron->spec.schedule, "30 2 * * *");
    EXPECT_EQ(cron->spec.concurrency, CONCURRENCY_FORBID);
    EXPECT_EQ(cron->spec.job_template.spec.maybe_template->spec.containers.count, 1);
    EXPECT_TRUE(workload_of(s.object, &w));
    EXPECT_EQ(w.replicas, 0);
    EXPECT_TRUE(w.maybe_template != NULL);
    EXPECT_STR(sample_default(&s, "spec.successfulJobsHistoryLimit"), "3");
    EXPECT_STR(sample_default(&s, "spec.jobTemplate.spec.backoffLimit"), "6");
}

TEST(cron_job_schedules_are_checked)
{
    expect_fine(CRON("@daily", ""));
    expect_fine(CRON("@every 1h30m", ""));
    expect_fine(CRON("*/5 0-6 1,15 jan-mar mon", ""));
    expect_problem(CRON("30 2 * *", ""), "spec.schedule: \"30 2 * *\" is not a schedule");
    expect_problem(CRON("60 2 * * *", ""), "is not a schedule");
    expect_problem(CRON("@every soon", ""), "expected a duration such as 1h30m after @every");
    expect_problem(CRON("TZ=UTC 0 0 * * *", ""), "names a time zone, expected it in timeZone");
    expect_problem(CRON("@daily", "timeZone: Local, "), "spec.timeZone: ");
    expect_problem(CRON("@daily", "timeZone: 'no where', "), "is not the name of a time zone");
    expect_problem(CRON("@daily", "concurrencyPolicy: Never, "),
                   "spec.concurrencyPolicy: expected one of");
}

TEST(cron_job_checks_the_jobs_that_it_will_make)
{
    expect_problem(
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: r}, spec: {schedule: '@daily', "
        "jobTemplate: {spec: {completionMode: Indexed, template: {spec: " POD "}}}}}",
        "spec.jobTemplate.spec.completions: required with completionMode Indexed");
    expect_problem(
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: r}, spec: {schedule: '@daily', "
        "jobTemplate: {spec: {template: {spec: " POD "}}}}}",
        "spec.jobTemplate.spec.template.spec.restartPolicy: is Always if unset");
    expect_problem(
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: "
        "a1234567890123456789012345678901234567890123456789012}, spec: {schedule: '@daily', "
        "jobTemplate: {spec: {" NEVER "}}}}",
        "metadata.name: is 53 characters long, expected at most 52");
}

/* A Deployment's status changes with every pod; what it shares does not. */
TEST(workload_templates_are_shared)
{
    SAMPLE s;
    sample_decode(&s, APPS("Deployment", "{" SELECTOR ", " TEMPLATE "}"));
    struct err err = { 0 };
    const struct object *second = NULL;

    EXPECT_OK(object_decode(s.pool, s.kind, s.docs.items[0].root, &second, &err), err);
    EXPECT_TRUE(deployment_of(second)->spec.maybe_template ==
                deployment_of(s.object)->spec.maybe_template);
    EXPECT_TRUE(deployment_of(second)->spec.maybe_selector ==
                deployment_of(s.object)->spec.maybe_selector);
    object_unref(second);
}
