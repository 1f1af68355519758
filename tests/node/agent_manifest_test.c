/* Manifests that change, and agents that die, on a real containerd. */
#include "node/agent_pods.h"

#include "base/rng.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MAIN "status.containerStatuses[main]."
#define READY "status.conditions[Ready].status"

/* A pod without a uid of its own: what is written makes it. Each start is noted, with the word. */
static void worded_pod(struct node_fixture *f, const char *name, const char *word)
{
    fixture_manifest(
        f, name,
        arena_strf(&f->arena,
                   "apiVersion: v1\n"
                   "kind: Pod\n"
                   "metadata: {name: %s}\n"
                   "spec:\n"
                   "  volumes: [{name: v, hostPath: {path: %s/words, type: DirectoryOrCreate}}]\n"
                   "  containers:\n"
                   "  - name: main\n"
                   "    image: karve.test/tools:1\n"
                   "    command: [sh, -c, 'echo %s >>/v/%s; exec tools polite']\n"
                   "    volumeMounts: [{name: v, mountPath: /v}]\n",
                   name, f->dir, word, name)
            .p);
}

static struct str words(struct node_fixture *f, const char *name)
{
    return file_content(f, arena_strf(&f->arena, "%s/words/%s", f->dir, name).p);
}

/* Of all pods with that name in their manifest. */
struct census {
    uint32_t pods, sandboxes, running, containers;
    struct str uid; /* of the last */
};

static struct census census(struct node_fixture *f, const char *name)
{
    struct census seen = { 0 };
    struct str full = arena_strf(&f->arena, "%s-" NODE_NAME, name);
    const struct runtime_listing *listing = fixture_list(f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        const struct runtime_pod *pod = &listing->pods[i];
        if (!str_eq(pod->name, full))
            continue;
        seen.pods++;
        seen.uid = pod->uid;
        seen.sandboxes += pod->sandboxes.count;
        seen.containers += pod->containers.count;
        for (uint32_t j = 0; j < pod->containers.count; j++)
            seen.running += pod->containers.items[j].state == RUNTIME_RUNNING;
    }
    return seen;
}

TEST(an_edited_manifest_ends_the_old_pod_and_then_starts_the_new_one)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    worded_pod(f, "edit", "old");
    WITHIN_LIMIT(f, census(f, "edit").running == 1 && words(f, "edit").len > 0);
    struct str uid = census(f, "edit").uid;
    worded_pod(f, "edit", "new");
    int64_t until = fixture_deadline();
    while (!str_eqz(words(f, "edit"), "old\nnew\n")) {
        EXPECT_TRUE(census(f, "edit").running <= 1); /* never both */
        fixture_wait(f, until, "the new pod runs", __FILE__, __LINE__);
    }
    EXPECT_FALSE(str_eq(census(f, "edit").uid, uid) && census(f, "edit").pods == 1);
    WITHIN_LIMIT(f, census(f, "edit").pods == 1);
    EXPECT_EQ(census(f, "edit").running, 1);
}

TEST(a_manifest_whose_text_alone_changed_restarts_nothing)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    worded_pod(f, "same", "word");
    WITHIN_LIMIT(f, words(f, "same").len > 0);
    const char *path = arena_strf(&f->arena, "%s/same.yaml", f->manifests).p;
    struct str text = file_content(f, path);
    fixture_manifest(f, "same", arena_strf(&f->arena, "# a comment\n%.*s", STR_ARG(text)).p);
    worded_pod(f, "next", "word"); /* read with it, or after it */
    WITHIN_LIMIT(f, words(f, "next").len > 0);
    linger(300);
    EXPECT_STR(words(f, "same"), "word\n");
    EXPECT_EQ(census(f, "same").running, 1);
}

static uint32_t links_of(struct node_fixture *f, const char *id)
{
    return file_exists(
        arena_strf(&f->arena, "%s/links/gone-" NODE_NAME "_default_main-%s.log", f->dir, id).p);
}

TEST(a_removed_manifest_leaves_nothing_behind_and_comes_back_as_new)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    for (int round = 0; round < 2; round++) {
        static_pod(f, "gone",
                   "volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}], "
                   "containers: [{name: main, image: 'karve.test/tools:1', volumeMounts: "
                   "[{name: v, mountPath: /v}, {name: m, mountPath: /m}]}]");
        WITHIN_LIMIT(f, pod_says(f, "gone", READY, "True"));
        EXPECT_STR(pod_value(f, "gone", MAIN "restartCount"), "0");
        const char *id = arena_str(&f->arena, newest_id(f, "gone", "main")).p;
        const char *folder = arena_strf(&f->arena, "%s/agent/pods/uid-gone", f->dir).p;
        EXPECT_TRUE(file_exists(folder));
        EXPECT_TRUE(links_of(f, id));

        static_pod_remove(f, "gone");
        WITHIN_LIMIT(f, !runtime_pod_of(f, "gone"));
        WITHIN_LIMIT(f, !pod_is_known(f, "gone"));
        WITHIN_LIMIT(f, !file_exists(folder));
        WITHIN_LIMIT(f, !file_exists(log_folder(f, "gone")));
        WITHIN_LIMIT(f, !links_of(f, id));
    }
}

TEST(a_manifest_put_back_while_its_pod_ends_runs_again)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    static_pod(f, "back",
               "terminationGracePeriodSeconds: 3600, containers: [{name: main, "
               "image: 'karve.test/tools:1', command: [tools, stubborn]}]");
    WITHIN_LIMIT(f, pod_says(f, "back", READY, "True"));
    struct str first = newest_id(f, "back", "main");
    struct str text = file_content(f, arena_strf(&f->arena, "%s/back.yaml", f->manifests).p);
    static_pod_remove(f, "back");
    WITHIN_LIMIT(f, pod_says(f, "back", "worker.state", "Terminating"));
    fixture_manifest(f, "back", text.p);
    worded_pod(f, "after", "word"); /* read with it, or after it */
    WITHIN_LIMIT(f, words(f, "after").len > 0);
    EXPECT_STR(pod_value(f, "back", "worker.state"), "Terminating");
    EXPECT_TRUE(str_eq(newest_id(f, "back", "main"), first));
    fixture_kill(f, first, SIGKILL);
    WITHIN_LIMIT(f, pod_says(f, "back", "worker.state", "Syncing") &&
                        pod_says(f, "back", READY, "True"));
    EXPECT_FALSE(str_eq(newest_id(f, "back", "main"), first));
    EXPECT_EQ(count_in(f, "back", "main", RUNTIME_RUNNING), 1);
}

TEST(what_was_edited_and_removed_while_the_agent_was_away_is_made_up_for)
{
    struct node_fixture *f = node_fixture();
    agent_runs_pods(f);
    worded_pod(f, "kept", "kept");
    worded_pod(f, "edited", "old");
    worded_pod(f, "removed", "word");
    WITHIN_LIMIT(f, words(f, "kept").len && words(f, "edited").len && words(f, "removed").len);
    WITHIN_LIMIT(f, census(f, "kept").running == 1 && census(f, "edited").running == 1 &&
                        census(f, "removed").running == 1);
    fixture_agent_stop(f);
    EXPECT_EQ(census(f, "kept").running, 1); /* pods outlive their agent */

    worded_pod(f, "edited", "new");
    fixture_manifest(f, "removed", NULL);
    agent_runs_pods(f);
    int64_t until = fixture_deadline();
    while (!str_eqz(words(f, "edited"), "old\nnew\n") || census(f, "removed").pods) {
        EXPECT_TRUE(census(f, "edited").running <= 1);
        fixture_wait(f, until, "edited and removed", __FILE__, __LINE__);
    }
    EXPECT_STR(words(f, "kept"), "kept\n");
    EXPECT_EQ(census(f, "kept").running, 1);
}

/* --- the agent dies --- */

enum { PODS = 5, DEATHS = 8 };

/* In each pod one container that stays, one that crashes, each noting its starts. */
static void busy_pod(struct node_fixture *f, uint32_t ix, uint32_t version)
{
    fixture_manifest(
        f, arena_strf(&f->arena, "busy-%u", ix).p,
        arena_strf(&f->arena,
                   "apiVersion: v1\n"
                   "kind: Pod\n"
                   "metadata: {name: busy-%u, uid: busy-%u-%u}\n"
                   "spec:\n"
                   "  terminationGracePeriodSeconds: 1\n"
                   "  volumes: [{name: v, hostPath: {path: %s/busy, type: DirectoryOrCreate}}]\n"
                   "  containers:\n"
                   "  - name: stays\n"
                   "    image: karve.test/tools:1\n"
                   "    command: [sh, -c, 'echo start >>/v/%u-%u; exec tools polite']\n"
                   "    volumeMounts: [{name: v, mountPath: /v}]\n"
                   "  - name: crashes\n"
                   "    image: karve.test/busybox:1\n"
                   "    command: [sh, -c, 'sleep 0.3; exit 1']\n",
                   ix, ix, version, f->dir, ix, version)
            .p);
}

/* No name runs twice in a pod of that name, whatever its uid: called all the time. */
static void check_no_twins(struct node_fixture *f)
{
    AUTO_ARENA arena = { 0 };
    struct runtime_listing listing;
    struct err err;
    EXPECT_OK(cri_list(f->cri, STR_NONE, &arena, &listing, &err), err);
    uint32_t stays[PODS] = { 0 }, crashes[PODS] = { 0 };
    for (uint32_t i = 0; i < listing.pod_count; i++) {
        const struct runtime_pod *pod = &listing.pods[i];
        unsigned ix;
        AUTO_FREE char *name = str_dup(pod->name);
        if (sscanf(name, "busy-%u-n1", &ix) != 1 || ix >= PODS)
            fail_msg("a pod that nobody asked for: %s", name);
        for (uint32_t j = 0; j < pod->containers.count; j++) {
            if (pod->containers.items[j].state != RUNTIME_RUNNING)
                continue;
            uint32_t *count = str_eqz(pod->containers.items[j].name, "stays") ? stays : crashes;
            if (++count[ix] > 1) {
                fixture_show(f);
                fail_msg("%s runs twice in %s",
                         str_eqz(pod->containers.items[j].name, "stays") ? "stays" : "crashes",
                         name);
            }
        }
    }
}

static void watch_for(struct node_fixture *f, uint32_t ms)
{
    int64_t until = clock_mono_ns(clock_real()) + (int64_t)ms * 1000000;
    while (clock_mono_ns(clock_real()) < until) {
        check_no_twins(f);
        linger(10);
    }
}

static bool settled(struct node_fixture *f, const uint32_t versions[PODS])
{
    check_no_twins(f);
    const struct runtime_listing *listing = fixture_list(f);
    uint32_t wanted = 0, right = 0;
    for (uint32_t i = 0; i < PODS; i++) {
        wanted += versions[i] > 0;
        struct str uid = arena_strf(&f->arena, "busy-%u-%u", i, versions[i]);
        for (uint32_t j = 0; versions[i] && j < listing->pod_count; j++) {
            const struct runtime_pod *pod = &listing->pods[j];
            for (uint32_t k = 0; str_eq(pod->uid, uid) && k < pod->containers.count; k++)
                right += pod->containers.items[k].state == RUNTIME_RUNNING &&
                         str_eqz(pod->containers.items[k].name, "stays");
        }
    }
    return right == wanted && listing->pod_count == wanted;
}

/* Of the container that stays: how many there were before it. */
static uint32_t attempts(struct node_fixture *f, uint32_t ix)
{
    const struct runtime_listing *listing = fixture_list(f);
    struct str name = arena_strf(&f->arena, "busy-%u-" NODE_NAME, ix);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        const struct runtime_pod *pod = &listing->pods[i];
        for (uint32_t j = 0; str_eq(pod->name, name) && j < pod->containers.count; j++) {
            if (str_eqz(pod->containers.items[j].name, "stays"))
                return pod->containers.items[j].attempt; /* the newest */
        }
    }
    fail_msg("%s does not run", name.p);
    return 0;
}

TEST(an_agent_killed_at_random_moments_starts_nothing_twice_and_leaves_nothing_behind)
{
    struct node_fixture *f = node_fixture();
    struct rng rng;
    uint64_t seed = (uint64_t)clock_wall_us(clock_real());
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&rng, seed);
    uint32_t versions[PODS] = { 0 }, next = 1; /* 0: no manifest */
    for (uint32_t death = 0; death < DEATHS; death++) {
        agent_runs_pods(f);
        for (uint32_t change = 0; change < 3; change++) {
            uint32_t ix = (uint32_t)rng_below(&rng, PODS);
            if (versions[ix] && rng_below(&rng, 3) == 0) {
                fixture_manifest(f, arena_strf(&f->arena, "busy-%u", ix).p, NULL);
                versions[ix] = 0;
            } else {
                versions[ix] = next++;
                busy_pod(f, ix, versions[ix]);
            }
            watch_for(f, (uint32_t)rng_below(&rng, 400));
        }
        fixture_agent_kill9(f);
        watch_for(f, (uint32_t)rng_below(&rng, 100));
    }
    agent_runs_pods(f);
    /* Seen once in many runs: a container whose start was under way when its caller died was listed as
     * ended, and could not be removed ("cannot delete running task") before containerd was restarted. */
    fixture_containerd_restart(f);
    WITHIN_LIMIT(f, settled(f, versions));
    /* A start that an agent did not live to see through is counted too, and may have come to nothing. */
    for (uint32_t i = 0; i < PODS; i++) {
        if (!versions[i])
            continue;
        struct str path = arena_strf(&f->arena, "%s/busy/%u-%u", f->dir, i, versions[i]);
        WITHIN_LIMIT(f, file_content(f, path.p).len > 0);
        EXPECT_TRUE(file_content(f, path.p).len <= strlen("start\n") * (attempts(f, i) + 1));
    }
}
