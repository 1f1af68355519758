/* The controller on an API server that answers otherwise than it should, or not for as long: refused requests, lost
 * and broken answers, watches that end, a credential that is taken back. Nothing is launched twice, and nothing that
 * is wanted is forgotten. */
#include "kube/http_faults.h"
#include "kube/launches.h"
#include "store/testing.h"

#include <stdlib.h>

#define USER "karve-answers"
static const char *const alone[] = { "--leader-elect=false", NULL };

/* The seed is printed, and $KARVE_SEED repeats it; what meets which request is up to the threads. */
static uint64_t seed(void)
{
    const char *given = getenv("KARVE_SEED");
    uint64_t value = given ? strtoull(given, NULL, 10) : (uint64_t)clock_wall_us(clock_real());
    printf("# KARVE_SEED=%llu\n", (unsigned long long)value);
    return value;
}

/* Asks as USER, whom its certificate makes a replica. */
static struct http_faults *faults_start(struct plane *p)
{
    plane_user(p, USER, (const char *const[]){ LAUNCHES_GROUP, NULL });
    return http_faults_start(
        (struct http_faults_options){ .server = p->server,
                                      .ca_path = plane_path(p, "ca.crt"),
                                      .cert_path = plane_path(p, "pki/user-" USER ".crt"),
                                      .key_path = plane_path(p, "pki/user-" USER ".key"),
                                      .seed = seed() });
}

/* A kubeconfig for the server at that URL, with these further lines of the cluster and of the user. */
static const char *kubeconfig(struct plane *p, const char *server, const char *cluster,
                              const char *user)
{
    const char *path = plane_path(p, "answers.kubeconfig");
    plane_must(p,
               "cat >%s <<'Y' && chmod 600 %s\n"
               "apiVersion: v1\n"
               "kind: Config\n"
               "clusters: [{name: test, cluster: {server: '%s'%s}}]\n"
               "contexts: [{name: test, context: {cluster: test, user: user}}]\n"
               "current-context: test\n"
               "users: [{name: user, user: {%s}}]\n"
               "Y\n",
               path, path, server, cluster, user);
    return path;
}

static struct replica through(struct plane *p, struct http_faults *f)
{
    const char *server =
        arena_strf(&p->arena, "http://127.0.0.1:%u", (unsigned)http_faults_port(f)).p;
    struct replica r = replica_start_with(p, USER, kubeconfig(p, server, "", ""), alone);
    PLANE_WAIT(p, replica_said(p, &r, ACTING));
    return r;
}

TEST(requests_that_are_refused_and_answers_that_are_lost_at_random_only_take_longer)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    AUTO(http_faults) f = faults_start(p);
    http_faults_set(f, (struct http_faults_rules){ .one_in = 12 });
    struct replica r = through(p, f);
    double start = launches_now_s();
    launches_want(l, 0, 200);
    PLANE_WAIT_S(p, LAUNCHES_LIMIT_S, launches_count(l) >= 200);
    struct http_faults_counts counts = http_faults_counts(f);
    printf("# 200 nodes in %.1f s, %llu requests, faults:", launches_now_s() - start,
           (unsigned long long)counts.requests);
    for (unsigned i = 0; i < HTTP_FAULTS; i++)
        printf(" %s=%llu", http_fault_names[i], (unsigned long long)counts.faults[i]);
    printf("\n");
    for (unsigned i = 0; i < HTTP_FAULTS; i++)
        EXPECT_TRUE(counts.faults[i] > 0);
    http_faults_set(f, (struct http_faults_rules){ 0 });
    launches_expect(l, 200);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

/* After the time that was asked for the real server ends a watch, well. */
TEST(watches_that_the_server_ends_miss_nothing_and_nobody_lists_again)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    AUTO(http_faults) f = faults_start(p);
    http_faults_set(f, (struct http_faults_rules){ .watch_seconds = 1 });
    struct replica r = through(p, f);
    int64_t lists = 0; /* the server writes down what it has answered */
    PLANE_WAIT(p, (lists = launches_pod_lists(p, USER)) > 0);
    for (unsigned round = 0; round < 4; round++) {
        uint64_t ended = http_faults_counts(f).watches_ended;
        launches_want(l, 15 * round, 15);
        launches_wait(l, 15 * (round + 1) - 1);
        PLANE_WAIT(p, http_faults_counts(f).watches_ended > ended + 20);
    }
    launches_expect(l, 60);
    printf("# %llu watches were ended\n", (unsigned long long)http_faults_counts(f).watches_ended);
    EXPECT_EQ(launches_pod_lists(p, USER), lists);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}

/* --- a credential that is taken back --- */

/* A token of the controller's ServiceAccount that is good as long as that Secret is there. The plugin hands out
 * the newest, and counts how often it was asked. */
static void new_token(struct plane *p, const char *secret)
{
    plane_must(p,
               "kubectl create secret generic %s -n kube-system && "
               "kubectl create token karve-answers -n kube-system --bound-object-kind=Secret "
               "--bound-object-name=%s >$DIR/token.new && mv $DIR/token.new $DIR/token",
               secret, secret);
}

static void begin_tokens(struct plane *p)
{
    plane_must(p,
               "kubectl create serviceaccount karve-answers -n kube-system && "
               "kubectl create clusterrolebinding answers --clusterrole=karve "
               "--serviceaccount=kube-system:karve-answers && "
               "kubectl create rolebinding answers -n kube-system --role=karve "
               "--serviceaccount=kube-system:karve-answers && "
               "cat >$DIR/plugin <<'S' && chmod 755 $DIR/plugin && : >$DIR/asked\n"
               "#!/bin/sh\n"
               "echo asked >>%s/asked\n"
               "printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
               "\"ExecCredential\",\"status\":{\"token\":\"%%s\"}}' \"$(cat %s/token)\"\n"
               "S\n",
               p->dir, p->dir);
}

static int64_t times_asked(struct plane *p)
{
    int64_t count = -1;
    EXPECT_TRUE(str_to_i64(plane_must(p, "wc -l <$DIR/asked"), &count));
    return count;
}

/* The server remembers for ten seconds whom it believed. */
static bool is_refused(struct plane *p, const char *token_file)
{
    return str_eqz(plane_must(p,
                              "curl -s -o /dev/null -w '%%{http_code}' --noproxy '*' --cacert "
                              "$DIR/ca.crt -H \"Authorization: Bearer $(cat $DIR/%s)\" "
                              "%s/api/v1/nodes?limit=1",
                              token_file, p->server),
                   "401");
}

TEST(a_token_that_is_taken_back_under_a_running_controller_is_renewed_and_nothing_is_missed)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    begin_tokens(p);
    new_token(p, "first");
    const char *config = kubeconfig(
        p, p->server, arena_strf(&p->arena, ", certificate-authority: '%s/ca.crt'", p->dir).p,
        arena_strf(&p->arena,
                   "exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                   "'%s/plugin', interactiveMode: Never}",
                   p->dir)
            .p);
    struct replica r = replica_start_with(p, USER, config, alone);
    PLANE_WAIT(p, replica_said(p, &r, ACTING));
    launches_want(l, 0, 20);
    launches_wait(l, 19);
    EXPECT_EQ(times_asked(p), 1);
    plane_must(p, "cp $DIR/token $DIR/token.old");
    new_token(p, "second");
    plane_must(p, "kubectl delete secret first -n kube-system");
    PLANE_WAIT(p, is_refused(p, "token.old"));
    launches_want(l, 20, 20);
    launches_expect(l, 40);
    EXPECT_EQ(times_asked(p), 2);
    EXPECT_EQ(plane_stop(p, r.pid), 0);
}
