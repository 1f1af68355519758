/* Reading pods from a real API server, beside others who do.
 *
 *     create  pods are created, from 16 threads: what the server takes, rather than what we send
 *     live    a watch while pods change by a patch each. `behind_ms` is how long after the last patch was
 *             answered the last event was decoded, and the watcher had ended
 *     replay  the same watch, once more afterwards: the server has its events ready. Beside it curl, which
 *             reads the same bytes and drops them; `ratio` is curl's time over ours
 *     list    all pods, in pages, decoded and kept. Beside it `kubectl get --raw` and curl, which ask for one
 *             answer, decode nothing and keep nothing. `ratio` is kubectl's time over ours; `growth` our time per
 *             pod over that of the size before. `wire_bytes` is what passed the network, TLS and all
 *     format  the same list as the server can send it: bytes, curl's seconds, the server's processor time
 *
 * Each reader is a process of its own, and times are of the whole process, the best of some rounds; `cpu_s` is
 * its processor time, `reader_cpu_s` the part of our decoding, `peak_kb` the most memory it had, `rss_kb` what it
 * has once all is read. The hash is of what was read. The servers share the machine with the readers. Needs what
 * tests/kube/kube.sh needs; otherwise it says so and ends.
 */
#include "bench/kube_load.h"
#include "bench/kube_read.h"

#include "kube/fixture.h"
#include "support/program.h"

#include "api/kinds.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 3
#define WRITES_MAX 500 /* of each sort: they take time, which is the server's */

struct bench {
    struct plane *plane;
    struct plane_access access;
    struct load load;
    const char *self;
    const char *kubeconfig, *proxied;
    pid_t apiserver;
};

struct reader { /* one of ours, at its best */
    struct kube_read read;
    struct process_run run;
};

static struct process start_reader(struct bench *b, const char *task, const char *kubeconfig,
                                   uint64_t version, uint64_t count)
{
    char numbers[2][24];
    snprintf(numbers[0], sizeof numbers[0], "%" PRIu64, version);
    snprintf(numbers[1], sizeof numbers[1], "%" PRIu64, count);
    return process_start(
        (const char *const[]){ b->self, task, kubeconfig, numbers[0], numbers[1], NULL });
}

static struct reader finish_reader(struct process process)
{
    struct reader r;
    struct kube_read *read = &r.read;
    process_finish(&process, &r.run);
    EXPECT_EQ(sscanf(r.run.said.p, KUBE_READ_FORMAT, &read->count, &read->s, &read->reader_s,
                     &read->hash, &read->version, &read->rss_kb, &read->peak_kb),
              7);
    buf_done(&r.run.said);
    return r;
}

static double faster(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

/* --- others --- */

static struct process_run run_shell(const char *command)
{
    struct process_run run;
    process_run((const char *const[]){ "/bin/sh", "-c", command, NULL }, &run);
    return run;
}

static const char *curl(struct bench *b, const char *options, const char *path)
{
    return arena_strf(&b->plane->arena,
                      "exec curl -sS --fail --noproxy '*' -A karve --cacert $DIR/ca.crt --cert "
                      "$DIR/pki/admin.crt --key $DIR/pki/admin.key %s '%s%s'",
                      options, b->plane->server, path)
        .p;
}

struct format {
    const char *name, *options;
};

static void report_format(struct bench *b, uint32_t pod_count, struct format format)
{
    const char *command = curl(
        b, arena_strf(&b->plane->arena, "%s -o /dev/null -w '%%{size_download}'", format.options).p,
        "/api/v1/pods");
    double s = 0, server_s = 0;
    int64_t bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t server_ns = process_cpu_ns(b->apiserver);
        struct process_run run = run_shell(command);
        server_s = faster(server_s, (double)(process_cpu_ns(b->apiserver) - server_ns) / 1e9);
        s = faster(s, run.s);
        EXPECT_TRUE(str_to_i64(buf_str(&run.said), &bytes));
        buf_done(&run.said);
    }
    printf("kube format=%s pods=%u bytes=%" PRId64 " s=%.3f server_cpu_s=%.3f\n", format.name,
           pod_count, bytes, s, server_s);
    fflush(stdout);
}

static void report_formats(struct bench *b, uint32_t pod_count)
{
    static const struct format formats[] = {
        { "json", "" },
        { "json+gzip", "--compressed" },
        { "protobuf", "-H 'Accept: application/vnd.kubernetes.protobuf'" },
        { "protobuf+gzip", "--compressed -H 'Accept: application/vnd.kubernetes.protobuf'" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(formats); i++)
        report_format(b, pod_count, formats[i]);
}

/* --- lists --- */

static struct reader best_list(struct bench *b)
{
    struct reader best = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        struct reader r = finish_reader(start_reader(b, "--list", b->kubeconfig, 0, 0));
        if (round == 0 || r.run.s < best.run.s)
            best = r;
        EXPECT_EQ(r.read.hash, best.read.hash);
    }
    return best;
}

static struct process_run best_shell(const char *command)
{
    struct process_run best = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        struct process_run run = run_shell(command);
        buf_done(&run.said);
        if (round == 0 || run.s < best.s)
            best = run;
    }
    return best;
}

/* Returns the seconds per pod. */
static double report_list(struct bench *b, uint32_t pod_count, double per_pod_before)
{
    uint64_t passed = proxy_passed_bytes(b->plane->proxy);
    finish_reader(start_reader(b, "--list", b->proxied, 0, 0));
    passed = proxy_passed_bytes(b->plane->proxy) - passed;
    struct reader ours = best_list(b);
    struct process_run kubectl = best_shell("exec kubectl get --raw /api/v1/pods >/dev/null");
    struct process_run plain = best_shell(curl(b, "-o /dev/null", "/api/v1/pods"));
    EXPECT_EQ(ours.read.count, pod_count);
    double per_pod = ours.run.s / pod_count;
    printf("kube list pods=%u s=%.3f pods_per_s=%.0f ratio=%.2f growth=%.2f cpu_s=%.3f "
           "reader_cpu_s=%.3f peak_kb=%ld rss_kb=%ld wire_bytes=%" PRIu64 " kubectl_s=%.3f "
           "kubectl_cpu_s=%.3f kubectl_peak_kb=%ld curl_s=%.3f curl_cpu_s=%.3f curl_peak_kb=%ld "
           "hash=%016" PRIx64 "\n",
           pod_count, ours.run.s, pod_count / ours.run.s, kubectl.s / ours.run.s,
           per_pod_before > 0 ? per_pod / per_pod_before : 1, ours.run.cpu_s, ours.read.reader_s,
           ours.read.peak_kb, ours.read.rss_kb, passed, kubectl.s, kubectl.cpu_s, kubectl.peak_kb,
           plain.s, plain.cpu_s, plain.peak_kb, ours.read.hash);
    fflush(stdout);
    return per_pod;
}

/* --- watches --- */

/* The version of now. */
static uint64_t version_now(struct bench *b)
{
    struct object_list list = { 0 };
    struct err err = { 0 };
    EXPECT_OK(
        store_list(b->access.store, &pod_kind, &(struct list_options){ .limit = 1 }, &list, &err),
        err);
    uint64_t version = list.resource_version;
    object_list_done(&list);
    return version;
}

static void report_live(struct bench *b, uint64_t version, uint32_t count)
{
    struct process watching = start_reader(b, "--watch", b->kubeconfig, version, count);
    double patches_s = load_report(&b->load, count);
    int64_t patched_ns = clock_mono_ns(clock_real());
    struct reader r = finish_reader(watching);
    double behind_s = (double)(clock_mono_ns(clock_real()) - patched_ns) / 1e9;
    printf("kube live events=%u patches_per_s=%.0f behind_ms=%.0f cpu_us_per_event=%.1f "
           "reader_cpu_us_per_event=%.1f peak_kb=%ld hash=%016" PRIx64 "\n",
           count, count / patches_s, behind_s * 1e3, r.run.cpu_s / count * 1e6,
           r.read.reader_s / count * 1e6, r.read.peak_kb, r.read.hash);
    fflush(stdout);
}

/* curl until it has said so many lines: a watch has no end of its own. */
static double curl_lines(struct bench *b, const char *path, uint32_t count)
{
    struct process curling =
        process_start((const char *const[]){ "/bin/sh", "-c", curl(b, "-N", path), NULL });
    char chunk[65536];
    ssize_t n;
    for (uint32_t seen = 0; seen < count && (n = read(curling.stdout_fd, chunk, sizeof chunk)) > 0;)
        for (const char *at = chunk; (at = memchr(at, '\n', (size_t)(chunk + n - at))); at++)
            seen++;
    double s = (double)(clock_mono_ns(clock_real()) - curling.start_ns) / 1e9;
    kill(curling.pid, SIGKILL);
    waitpid(curling.pid, NULL, 0);
    close(curling.stdout_fd);
    return s;
}

static void report_replay(struct bench *b, uint64_t version, uint32_t count)
{
    struct reader best = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        struct reader r = finish_reader(start_reader(b, "--watch", b->kubeconfig, version, count));
        if (round == 0 || r.run.s < best.run.s)
            best = r;
    }
    const char *path =
        arena_strf(&b->plane->arena, "/api/v1/pods?watch=true&resourceVersion=%" PRIu64, version).p;
    double curl_s = 0;
    for (int round = 0; round < ROUNDS; round++)
        curl_s = faster(curl_s, curl_lines(b, path, count));
    printf("kube replay events=%u s=%.3f events_per_s=%.0f ratio=%.2f cpu_us_per_event=%.1f "
           "reader_cpu_us_per_event=%.1f peak_kb=%ld curl_s=%.3f hash=%016" PRIx64 "\n",
           count, best.run.s, count / best.run.s, curl_s / best.run.s, best.run.cpu_s / count * 1e6,
           best.read.reader_s / count * 1e6, best.read.peak_kb, curl_s, best.read.hash);
    fflush(stdout);
}

/* --- all of it --- */

static const char *environment(struct bench *b, const char *name)
{
    return plane_must(b->plane, "tests/kube/kube.sh env $DIR | sed -n s/^%s=//p", name).p;
}

static void find_apiserver(struct bench *b)
{
    struct str pid = str_of(environment(b, "PID_KUBE_APISERVER"));
    int64_t number = 0;
    EXPECT_TRUE(str_to_i64(pid, &number) && number > 1);
    b->apiserver = (pid_t)number;
}

static double report_size(struct bench *b, uint32_t pod_count, double per_pod_before)
{
    uint32_t count = pod_count - (uint32_t)b->load.pods.count;
    uint32_t writes = count / 2 < WRITES_MAX ? count / 2 : WRITES_MAX;
    double create_s = load_create(&b->load, writes);
    printf("kube create pods=%u pods_per_s=%.0f\n", writes, writes / create_s);
    load_fill(&b->load, count - writes);
    plane_apiserver_restart(b->plane);
    find_apiserver(b);
    uint64_t version = version_now(b);
    report_live(b, version, writes);
    report_replay(b, version, writes);
    return report_list(b, pod_count, per_pod_before);
}

static void bench_all(const char *self, const uint32_t *sizes)
{
    static const char *const options[] = {
        "--no-controller-manager",
        "--no-scheduler",
        "--apiserver=--enable-priority-and-fairness=false",
        "--apiserver=--max-requests-inflight=0",
        "--apiserver=--max-mutating-requests-inflight=0",
        NULL,
    };
    struct bench b = { .self = self, .plane = plane_with(options) };
    b.kubeconfig = plane_path(b.plane, "admin.kubeconfig");
    b.proxied = plane_proxied(b.plane, "admin.kubeconfig");
    b.access = plane_open(b.plane, b.kubeconfig, (struct kube_options){ 0 });
    load_init(&b.load, b.access.store, environment(&b, "ETCD"));
    double per_pod = 0;
    for (; *sizes; sizes++) {
        per_pod = report_size(&b, *sizes, per_pod);
        report_formats(&b, *sizes);
    }
    load_done(&b.load);
    plane_close(&b.access);
}

int main(int argc, char **argv)
{
    static const uint32_t small[] = { 500, 2000, 0 }, full[] = { 5000, 20000, 50000, 0 };
    if (argc > 2 && strcmp(argv[1], "--list") == 0) {
        kube_read_list(argv[2]);
    } else if (argc > 4 && strcmp(argv[1], "--watch") == 0) {
        kube_read_watch(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    } else {
        bench_all("/proc/self/exe", argc > 1 && strcmp(argv[1], "--small") == 0 ? small : full);
    }
    return 0;
}
