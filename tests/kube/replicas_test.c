/* Replicas of the controller, of which one acts: when it dies, freezes or is told to end, the other goes
 * on, and what the audit log says of either never overlaps.
 *
 * A lease runs out after 15 s, so these tests take that long. */
#include "kube/launches.h"

#include "base/file.h"
#include "base/vec.h"
#include "codec/duration.h"
#include "codec/json.h"
#include "store/testing.h"

#include <signal.h>
#include <sys/wait.h>

#define AUDIT_BYTES_MAX ((size_t)512 << 20)
static const char *const elected[] = { "--leader-elect=true", NULL };

/* --- what they wrote --- */

struct written { /* by one user, since a moment */
    unsigned count;
    int64_t first_us, last_us; /* when the server received it */
    struct str last;           /* its path */
};

static bool is_read(struct str verb)
{
    return str_eqz(verb, "get") || str_eqz(verb, "list") || str_eqz(verb, "watch");
}

static bool is_about_lease(const json_val *event)
{
    return str_eqz(json_str(json_path(event, "objectRef.resource")), "leases");
}

static void count_event(const json_val *event, const char *user, int64_t since_us,
                        struct arena *arena, struct written *out)
{
    int64_t received_us = 0;
    struct err err;
    if (!str_eqz(json_str(json_path(event, "user.username")), user) || is_about_lease(event) ||
        is_read(json_str(json_get(event, STR("verb")))))
        return;
    EXPECT_OK(
        time_parse(json_str(json_get(event, STR("requestReceivedTimestamp"))), &received_us, &err),
        err);
    if (received_us < since_us)
        return;
    if (out->count++ == 0 || received_us < out->first_us)
        out->first_us = received_us;
    if (received_us >= out->last_us) {
        out->last_us = received_us;
        out->last = arena_str(arena, json_str(json_get(event, STR("requestURI"))));
    }
}

/* What was sent, whether or not it was allowed; the Lease apart. */
static struct written written_by(struct plane *p, const char *user, int64_t since_us)
{
    AUTO_BUF text = { 0 };
    struct written w = { 0 };
    struct err err;
    EXPECT_OK(file_read(plane_path(p, "audit.log"), AUDIT_BYTES_MAX, &text, &err), err);
    for (struct str line, rest = buf_str(&text); str_cut(rest, '\n', &line, &rest);) {
        struct doc doc;
        EXPECT_OK(json_read(line, &doc, &err), err);
        count_event(doc.root, user, since_us, &p->arena, &w);
        doc_done(&doc);
    }
    return w;
}

static void expect_one_after_the_other(struct plane *p, const struct replica *old,
                                       const struct replica *new, int64_t since_us)
{
    struct written before = written_by(p, old->name, since_us);
    struct written after = written_by(p, new->name, since_us);
    printf("# %s wrote %u times, %s %u times, %.1f s between the two\n", old->name, before.count,
           new->name, after.count, (double)(after.first_us - before.last_us) / 1e6);
    EXPECT_TRUE(after.count > 0);
    if (before.count > 0 && before.last_us >= after.first_us)
        fail_msg("%s wrote %.*s when %s acted", old->name, STR_ARG(before.last), new->name);
}

/* --- the lease --- */

static struct str holder(struct plane *p)
{
    return plane_must(p, "kubectl get lease -n kube-system karpenter-leader-election "
                         "-o jsonpath='{.spec.holderIdentity}'");
}

static struct replica leader_started(struct plane *p, const char *name)
{
    struct replica r = replica_start(p, name, false, elected);
    PLANE_WAIT(p, replica_said(p, &r, ACTING));
    return r;
}

static struct replica standby_started(struct plane *p, const char *name)
{
    struct replica r = replica_start(p, name, false, elected);
    PLANE_WAIT(p, replica_said(p, &r, "another replica leads"));
    return r;
}

static int64_t wall_us(void)
{
    return clock_wall_us(clock_real());
}

TEST(a_leader_killed_amid_500_launches_is_followed_by_the_other_and_none_is_doubled_or_lost)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    int64_t since_us = wall_us();
    struct replica a = leader_started(p, "karve-a"), b = standby_started(p, "karve-b");
    unsigned wanted = 0; /* on a slow day they are launched as fast as we make pods */
    for (; wanted < 500 && launches_count(l) < 150; wanted += 10)
        launches_want(l, wanted, 10);
    launches_wait(l, 149);
    plane_kill9(p, a.pid);
    double killed = launches_now_s();
    unsigned before = launches_listed(l);
    EXPECT_TRUE(before < 500);
    launches_want(l, wanted, 500 - wanted);
    launches_wait(l, before);
    printf("# the leader was killed after %u of 500 nodes; next launch %.1f s later\n", before,
           launches_now_s() - killed);
    launches_expect(l, 500);
    expect_one_after_the_other(p, &a, &b, since_us);
    EXPECT_TRUE(plane_runs(p, b.pid));
}

/* Frozen with its hands full: what it was about to write must not be written when it wakes up. */
TEST(a_leader_that_was_frozen_for_longer_than_its_lease_writes_nothing_more_and_ends)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    int64_t since_us = wall_us();
    struct replica a = leader_started(p, "karve-a"), b = standby_started(p, "karve-b");
    launches_want(l, 0, 60);
    launches_wait(l, 19);
    kill(a.pid, SIGSTOP);
    PLANE_WAIT(p, replica_said(p, &b, ACTING));
    kill(a.pid, SIGCONT);
    PLANE_WAIT(p, !plane_runs(p, a.pid)); /* by itself */
    int status = plane_stop(p, a.pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 3);
    launches_expect(l, 60);
    expect_one_after_the_other(p, &a, &b, since_us);
    EXPECT_TRUE(replica_said(p, &a, "no longer leading"));
}

TEST(a_leader_that_is_told_to_end_gives_the_lease_up_and_the_other_need_not_wait_for_it)
{
    AUTO(launches) l = launches_new();
    struct plane *p = l->plane;
    int64_t since_us = wall_us();
    struct replica a = leader_started(p, "karve-a"), b = standby_started(p, "karve-b");
    launches_want(l, 0, 40);
    launches_wait(l, 19);
    struct str its = holder(p);
    EXPECT_TRUE(its.len > 0);
    double told = launches_now_s();
    EXPECT_EQ(plane_stop(p, a.pid), 0);
    double ended = launches_now_s();
    EXPECT_FALSE(str_eq(holder(p), its));
    PLANE_WAIT(p, replica_said(p, &b, ACTING));
    printf("# it ended %.1f s after it was told to; the other acted %.1f s later\n", ended - told,
           launches_now_s() - ended);
    launches_expect(l, 40);
    expect_one_after_the_other(p, &a, &b, since_us);
}
