/* Jobs and CronJobs. */
#include "sim/workloads_testing.h"

/* --- Jobs --- */

TEST(a_job_runs_so_many_at_a_time_until_enough_have_succeeded)
{
    AUTO(lab) l = lab_new();
    AUTO_OBJECT now = NULL;
    job(l, "'parallelism':3,'completions':5,");
    step(l);
    EXPECT_EQ(active_pods(l), 3);
    finish(l, 3, "Succeeded");
    EXPECT_EQ(active_pods(l), 2);
    EXPECT_EQ(job_now(l, &now)->status.succeeded, 3);
    finish(l, 2, "Succeeded");
    EXPECT_TRUE(job_is_finished(job_now(l, &now)));
    EXPECT_EQ(job_of(now)->status.succeeded, 5);
    EXPECT_EQ(job_of(now)->status.active, 0);
    EXPECT_EQ(count_of(l, &pod_kind), 5);
    uint64_t version = embedded_version(l->w->e);
    pass(l, 600);
    EXPECT_EQ(embedded_version(l->w->e), version);
}

TEST(successes_count_although_their_pods_are_gone)
{
    AUTO(lab) l = lab_new();
    AUTO_OBJECT now = NULL;
    job(l, "'parallelism':1,'completions':3,");
    for (int i = 0; i < 3; i++) {
        step(l);
        finish(l, 1, "Succeeded");
        struct object_list pods = all(l, &pod_kind);
        for (size_t k = 0; k < pods.count; k++) {
            if (pod_is_terminal(pod_of(pods.items[k])))
                remove_it(l->store, &pod_kind, z(pods.items[k]->meta.name));
        }
        object_list_done(&pods);
    }
    step(l);
    EXPECT_TRUE(job_is_finished(job_now(l, &now)));
    EXPECT_EQ(job_of(now)->status.succeeded, 3);
}

TEST(failures_back_off_and_too_many_fail_the_job)
{
    AUTO(lab) l = lab_new();
    AUTO_OBJECT now = NULL;
    job(l, "'backoffLimit':2,");
    step(l);
    finish(l, 1, "Failed");
    EXPECT_EQ(active_pods(l), 0);
    EXPECT_EQ(step(l), 10 * SECOND_NS);
    pass(l, 10);
    EXPECT_EQ(active_pods(l), 1);
    finish(l, 1, "Failed");
    pass(l, 10);
    EXPECT_EQ(active_pods(l), 0); /* twice as long */
    pass(l, 10);
    EXPECT_EQ(active_pods(l), 1);
    finish(l, 1, "Failed");
    EXPECT_TRUE(job_is_finished(job_now(l, &now)));
    EXPECT_STR(job_of(now)->status.conditions.items[0].reason, "BackoffLimitExceeded");
    pass(l, 3600);
    EXPECT_EQ(count_of(l, &pod_kind), 3);
}

TEST(an_indexed_job_runs_each_index_once)
{
    AUTO(lab) l = lab_new();
    AUTO_OBJECT now = NULL;
    job(l, "'parallelism':2,'completions':3,'completionMode':'Indexed',");
    step(l);
    struct str_table seen = { 0 };
    for (int i = 0; i < 3; i++) {
        struct object_list pods = all(l, &pod_kind);
        for (size_t k = 0; k < pods.count; k++)
            str_table_put(&seen,
                          str_map_get(&pods.items[k]->meta.labels,
                                      STR("batch.kubernetes.io/job-completion-index")),
                          l);
        object_list_done(&pods);
        finish(l, 1, "Succeeded");
    }
    EXPECT_EQ(seen.live_count, 3);
    EXPECT_EQ(count_of(l, &pod_kind), 3);
    str_table_done(&seen);
    EXPECT_TRUE(job_is_finished(job_now(l, &now)));
}

TEST(suspending_a_job_ends_its_pods_and_a_deadline_fails_it)
{
    AUTO(lab) l = lab_new();
    AUTO_OBJECT now = NULL;
    job(l, "'parallelism':2,'activeDeadlineSeconds':100,'backoffLimit':10,");
    step(l);
    EXPECT_EQ(active_pods(l), 2);
    object_unref(merge(l->store, &job_kind, "work", js("{'spec':{'suspend':true}}")));
    step(l);
    EXPECT_EQ(active_pods(l), 0);
    object_unref(merge(l->store, &job_kind, "work", js("{'spec':{'suspend':false}}")));
    pass(l, 60);
    EXPECT_EQ(active_pods(l), 2);
    pass(l, 40);
    EXPECT_TRUE(job_is_finished(job_now(l, &now)));
    EXPECT_STR(job_of(now)->status.conditions.items[0].reason, "DeadlineExceeded");
    EXPECT_EQ(active_pods(l), 0);
}

TEST(a_finished_job_is_removed_when_its_time_is_over)
{
    AUTO(lab) l = lab_new();
    job(l, "'ttlSecondsAfterFinished':30,");
    step(l);
    finish(l, 1, "Succeeded");
    pass(l, 29);
    EXPECT_TRUE(is_there(l->store, &job_kind, "work"));
    pass(l, 1);
    EXPECT_FALSE(is_there(l->store, &job_kind, "work"));
}

/* --- CronJobs --- */

static void cron(struct lab *l, const char *schedule, const char *more)
{
    object_unref(make(l->store, &cron_job_kind,
                      js("{'metadata':{'name':'night'},'spec':{'schedule':'%s',%s'jobTemplate':{"
                         "'spec':{'template':{'spec':{'restartPolicy':'Never',"
                         "'containers':[{'name':'c','image':'i'}]}}}}}}",
                         schedule, more)));
}

TEST(a_cron_job_makes_a_job_at_its_minute)
{
    AUTO(lab) l = lab_new();
    cron(l, "*/10 * * * *", "");
    EXPECT_EQ(step(l), 600 * SECOND_NS);
    EXPECT_EQ(count_of(l, &job_kind), 0);
    pass(l, 600);
    EXPECT_EQ(count_of(l, &job_kind), 1);
    EXPECT_EQ(count_of(l, &pod_kind), 1);
    char want[64];
    snprintf(want, sizeof want, "night-%" PRId64, (START_US / SECOND_US + 600) / 60);
    EXPECT_Z(names_of(l, &job_kind), want);
    AUTO_OBJECT object = get(l->store, &cron_job_kind, "night");
    EXPECT_EQ(cron_job_of(object)->status.last_schedule_us, START_US + 600 * SECOND_US);
    pass(l, 599);
    EXPECT_EQ(count_of(l, &job_kind), 1);
    pass(l, 1);
    EXPECT_EQ(count_of(l, &job_kind), 2);
}

TEST(a_cron_job_obeys_its_concurrency_policy_and_keeps_few_finished_jobs)
{
    static const struct {
        const char *policy;
        size_t jobs;
    } cases[] = { { "Allow", 3 }, { "Forbid", 1 }, { "Replace", 1 } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(lab) l = lab_new();
        char more[64];
        snprintf(more, sizeof more, "'concurrencyPolicy':'%s',", cases[i].policy);
        cron(l, "* * * * *", more);
        step(l);
        for (int k = 0; k < 3; k++)
            pass(l, 60);
        EXPECT_EQ(count_of(l, &job_kind), cases[i].jobs);
    }
    AUTO(lab) l = lab_new();
    cron(l, "* * * * *", "'successfulJobsHistoryLimit':2,");
    step(l);
    for (int k = 0; k < 6; k++) {
        pass(l, 60);
        finish(l, 10, "Succeeded");
    }
    EXPECT_EQ(count_of(l, &job_kind), 2);
    object_unref(merge(l->store, &cron_job_kind, "night", js("{'spec':{'suspend':true}}")));
    EXPECT_EQ(step(l), INT64_MAX);
}
