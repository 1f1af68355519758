#include "node/pleg_records.h"

#include "base/rng.h"
#include "node/runtime_testing.h"
#include "support/test.h"

#include <stdio.h>

/* --- pods in a line --- */

#define ABSENT 4
static const uint8_t container_states[] = { RUNTIME_CREATED, RUNTIME_RUNNING, RUNTIME_EXITED,
                                            RUNTIME_UNKNOWN, ABSENT };
static const uint8_t sandbox_states[] = { RUNTIME_RUNNING, RUNTIME_EXITED, ABSENT };

/* "s1r c2x": sandbox s1 running, container c2 exited (c created, u unknown); the digit is also its
 * time of creation. Newest first is the writer's care. */
static const struct runtime_pod *pod_of(struct arena *arena, const char *text)
{
    struct runtime_pod *pod = arena_new(arena, struct runtime_pod);
    struct listed *sandboxes = arena_array(arena, struct listed, strlen(text) + 1);
    struct listed *containers = arena_array(arena, struct listed, strlen(text) + 1);
    uint32_t sandbox_count = 0, container_count = 0;
    for (struct str rest = arena_str(arena, str_of(text)), word; rest.len;) {
        if (!str_cut(rest, ' ', &word, &rest))
            rest = STR("");
        bool sandbox = word.p[0] == 's';
        uint8_t state = word.p[2] == 'r'   ? RUNTIME_RUNNING
                        : word.p[2] == 'x' ? RUNTIME_EXITED
                        : word.p[2] == 'c' ? RUNTIME_CREATED
                                           : RUNTIME_UNKNOWN;
        *(sandbox ? &sandboxes[sandbox_count++] : &containers[container_count++]) =
            (struct listed){ .id = str_sub(word, 0, 2),
                             .name = sandbox ? STR("") : str_sub(word, 0, 1),
                             .sandbox_id = sandbox ? STR_NONE : STR("s1"),
                             .created_ns = word.p[1] - '0',
                             .state = state };
    }
    *pod = (struct runtime_pod){ .uid = STR("uid-1"),
                                 .name = STR("web-0"),
                                 .namespace_ = STR("shop"),
                                 .sandboxes = { sandboxes, sandbox_count },
                                 .containers = { containers, container_count } };
    return pod;
}

/* "died c1, removed c1, started s2"; "(changed)" where something did and nobody is told. */
static struct str told(struct arena *arena, const struct runtime_pod *old,
                       const struct runtime_pod *new)
{
    static const char *const words[] = { "started", "died", "removed", "sync" };
    struct changes changes = changes_between(arena, old, new);
    EXPECT_EQ(changes.any, !seen_same(old, new));
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < changes.count; i++) {
        EXPECT_EQ(changes.items[i].sandbox, changes.items[i].id.p[0] == 's');
        buf_addf(&out, "%s%s %.*s", i ? ", " : "", words[changes.items[i].type],
                 STR_ARG(changes.items[i].id));
    }
    if (changes.any && !changes.count)
        buf_addz(&out, "(changed)");
    return arena_str(arena, buf_str(&out));
}

static void expect_told(const char *old, const char *new, const char *want)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_STR(told(&arena, old ? pod_of(&arena, old) : NULL, new ? pod_of(&arena, new) : NULL),
               want);
}

static const struct runtime_pod *pod_with_one(struct arena *arena, bool sandbox, uint8_t state)
{
    static const char letters[] = "crxu";
    char text[] = "c1?";
    if (state == ABSENT)
        return pod_of(arena, "");
    text[0] = sandbox ? 's' : 'c';
    text[2] = letters[state];
    return pod_of(arena, text);
}

/* --- the table --- */

TEST(each_pair_of_states_of_a_container_gives_the_events_of_the_table)
{
    /* old \ new:            created      running       exited     unknown      absent */
    static const char *const want[5][5] = {
        { /* created */ "", "started c1", "died c1", "", "died c1, removed c1" },
        { /* running */ "(changed)", "", "died c1", "(changed)", "died c1, removed c1" },
        { /* exited */ "(changed)", "started c1", "", "(changed)", "removed c1" },
        { /* unknown */ "", "started c1", "died c1", "", "died c1, removed c1" },
        { /* absent */ "(changed)", "started c1", "died c1", "(changed)", "" },
    };
    AUTO_ARENA arena = { 0 };
    for (size_t old = 0; old < KV_COUNT_OF(container_states); old++) {
        for (size_t new = 0; new < KV_COUNT_OF(container_states); new ++)
            EXPECT_STR(told(&arena, pod_with_one(&arena, false, container_states[old]),
                            pod_with_one(&arena, false, container_states[new])),
                       want[old][new]);
    }
}

TEST(each_pair_of_states_of_a_sandbox_gives_the_events_of_the_table)
{
    static const char *const want[3][3] = {
        { /* ready */ "", "died s1", "died s1, removed s1" },
        { /* not ready */ "started s1", "", "removed s1" },
        { /* absent */ "started s1", "died s1", "" },
    };
    AUTO_ARENA arena = { 0 };
    for (size_t old = 0; old < KV_COUNT_OF(sandbox_states); old++) {
        for (size_t new = 0; new < KV_COUNT_OF(sandbox_states); new ++)
            EXPECT_STR(told(&arena, pod_with_one(&arena, true, sandbox_states[old]),
                            pod_with_one(&arena, true, sandbox_states[new])),
                       want[old][new]);
    }
}

TEST(a_pod_that_is_not_there_is_as_one_without_anything)
{
    expect_told(NULL, NULL, "");
    expect_told(NULL, "", "");
    expect_told("", NULL, "");
    expect_told(NULL, "s1r c2r c3x c4c", "died c3, started s1, started c2");
    expect_told("s1r c2r c3x c4c", NULL,
                "died c2, removed c2, removed c3, died c4, removed c4, died s1, removed s1");
}

TEST(a_restart_is_told_as_an_end_and_then_a_beginning)
{
    expect_told("s1r c2r", "s1r c3r c2x", "died c2, started c3");
    expect_told("s1r c2r", "s5r s1x c6r c2x", "died c2, died s1, started s5, started c6");
    expect_told("s1r c3x c2x", "s1r c4r c3x", "removed c2, started c4");
}

TEST(two_ready_sandboxes_are_two_sandboxes)
{
    expect_told("s1r", "s2r s1r", "started s2");
    expect_told("s2r s1r", "s2r s1x", "died s1");
    expect_told("s2r s1r", "s2r", "died s1, removed s1");
}

TEST(another_order_is_no_change)
{
    expect_told("s1r c2r c3x", "s1r c3x c2r", "");
    expect_told("s1r s2x", "s2x s1r", "");
}

TEST(an_id_that_is_listed_twice_is_one_thing)
{
    expect_told(NULL, "c1r c1r", "started c1");
    expect_told("c1r c1r", "c1x", "died c1");
    expect_told("c1r", "c1r c1r", "");
    expect_told("c1r c1r", NULL, "died c1, removed c1");
}

/* --- histories --- */

/* What a listener knows who has only heard the events: of each container is it running, has it
 * ended. */
enum heard { HEARD_NOTHING, HEARD_RUNNING, HEARD_ENDED, HEARD_REMOVED };

static enum heard hear(enum heard before, enum pod_event_type type)
{
    switch (type) {
    case POD_EVENT_STARTED:
        return HEARD_RUNNING;
    case POD_EVENT_DIED:
        EXPECT_TRUE(before == HEARD_NOTHING || before == HEARD_RUNNING ||
                    before == HEARD_REMOVED); /* never ended twice */
        return HEARD_ENDED;
    case POD_EVENT_REMOVED:
        EXPECT_EQ(before, HEARD_ENDED); /* what was removed had ended */
        return HEARD_REMOVED;
    case POD_EVENT_SYNC:
        break;
    }
    KV_UNREACHABLE();
}

TEST(in_every_history_of_five_listings_the_events_tell_where_a_container_is)
{
    size_t n = KV_COUNT_OF(container_states), histories = n * n * n * n * n;
    for (size_t h = 0; h < histories; h++) {
        AUTO_ARENA arena = { 0 };
        enum heard heard = HEARD_NOTHING;
        uint8_t last = ABSENT;
        bool backwards = false; /* a runtime that loses a state may bring an end twice */
        size_t rest = h;
        const struct runtime_pod *old = NULL;
        for (int step = 0; step < 5 && !backwards; step++, rest /= n) {
            uint8_t now = container_states[rest % n];
            backwards = last == RUNTIME_EXITED && now != RUNTIME_EXITED && now != ABSENT;
            if (backwards)
                break;
            const struct runtime_pod *new = pod_with_one(&arena, false, now);
            struct changes changes = changes_between(&arena, old, new);
            for (uint32_t i = 0; i < changes.count; i++)
                heard = hear(heard, changes.items[i].type);
            old = new;
            last = now;
            if (last == RUNTIME_RUNNING)
                EXPECT_EQ(heard, HEARD_RUNNING);
            if (last == RUNTIME_EXITED)
                EXPECT_EQ(heard, HEARD_ENDED);
            if (last == ABSENT)
                EXPECT_TRUE(heard == HEARD_NOTHING || heard == HEARD_REMOVED);
        }
    }
}

TEST(random_pods_give_the_same_events_as_looking_at_each_id_alone)
{
    uint64_t seed = 20240611;
    printf("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int round = 0; round < 3000; round++) {
        AUTO_ARENA arena = { 0 };
        AUTO_BUF old_text = { 0 };
        AUTO_BUF new_text = { 0 };
        struct buf *texts[2] = { &old_text, &new_text };
        size_t want = 0;
        bool any = false;
        for (char digit = '1'; digit <= '6'; digit++) {
            bool sandbox = rng_below(&rng, 3) == 0;
            uint8_t states[2];
            const struct runtime_pod *alone[2];
            for (int side = 0; side < 2; side++) {
                states[side] = sandbox ? sandbox_states[rng_below(&rng, 3)]
                                       : container_states[rng_below(&rng, 5)];
                alone[side] = pod_with_one(&arena, sandbox, states[side]);
                if (states[side] != ABSENT)
                    buf_addf(texts[side], "%s%c%c%c", texts[side]->len ? " " : "",
                             sandbox ? 's' : 'c', digit, "crxu"[states[side]]);
            }
            struct changes changes = changes_between(&arena, alone[0], alone[1]);
            want += changes.count;
            any = any || changes.any;
        }
        struct changes changes = changes_between(&arena, pod_of(&arena, buf_str(&old_text).p),
                                                 pod_of(&arena, buf_str(&new_text).p));
        EXPECT_EQ(changes.count, want);
        EXPECT_EQ(changes.any, any);
    }
}

/* --- copies, events, records --- */

TEST(a_copy_of_a_pod_outlives_the_listing)
{
    AUTO_FREE struct runtime_pod *copy = NULL;
    {
        AUTO_ARENA arena = { 0 };
        copy = seen_pod_new(pod_of(&arena, "s1r c2x c3c"));
    }
    AUTO_ARENA arena = { 0 };
    EXPECT_TRUE(seen_same(copy, pod_of(&arena, "s1r c2x c3c")));
    EXPECT_STR(copy->uid, "uid-1");
    EXPECT_STR(copy->name, "web-0");
    EXPECT_STR(copy->namespace_, "shop");
    EXPECT_STR(copy->containers.items[0].name, "c");
    EXPECT_STR(copy->containers.items[1].sandbox_id, "s1");
    EXPECT_FALSE(copy->sandboxes.items[0].sandbox_id.p);
    EXPECT_EQ(copy->containers.items[1].created_ns, 3);
}

static struct pod_event event_of(const char *old, const char *new,
                                 const struct runtime_status *maybe_status)
{
    AUTO_ARENA arena = { 0 };
    const struct runtime_pod *pod = pod_of(&arena, new);
    struct changes changes = changes_between(&arena, pod_of(&arena, old), pod);
    EXPECT_EQ(changes.count, 1);
    return change_event(pod, &changes.items[0], maybe_status);
}

TEST(an_event_has_the_names_that_people_use)
{
    struct pod_event event = event_of("s1r c2c", "s1r c2r", NULL);
    EXPECT_EQ(event.type, POD_EVENT_STARTED);
    EXPECT_Z(event.uid, "uid-1");
    EXPECT_Z(event.pod, "web-0");
    EXPECT_Z(event.namespace_, "shop");
    EXPECT_Z(event.container, "c");
    EXPECT_Z(event.id, "c2");
    EXPECT_FALSE(event.sandbox);
    EXPECT_FALSE(event.has_exit_code);
    EXPECT_TRUE(event_of("s1r", "s1x", NULL).sandbox);
}

TEST(the_end_of_a_container_tells_how_it_ended)
{
    AUTO_STATUS status = runtime_made(
        "uid-1", a_sandbox("s1"),
        a_container("c", RUNTIME_EXITED, .id = "c2", .exit_code = 137, .reason = "OOMKilled"));
    struct pod_event event = event_of("s1r c2r", "s1r c2x", status);
    EXPECT_TRUE(event.has_exit_code);
    EXPECT_EQ(event.exit_code, 137);
    EXPECT_Z(event.reason, "OOMKilled");
}

TEST(an_end_that_the_status_does_not_know_of_has_no_exit_code)
{
    AUTO_STATUS running = runtime_made("uid-1", a_container("c", RUNTIME_RUNNING, .id = "c2"));
    AUTO_STATUS other = runtime_made("uid-1", a_container("c", RUNTIME_EXITED, .id = "c9"));
    EXPECT_FALSE(event_of("c2r", "c2x", running).has_exit_code);
    EXPECT_FALSE(event_of("c2r", "c2x", other).has_exit_code);
    EXPECT_FALSE(event_of("c2r", "c2x", NULL).has_exit_code);
}

TEST(texts_that_are_too_long_for_an_event_are_cut_between_characters)
{
    struct runtime_pod pod = { .uid = STR("u"), .name = STR("n"), .namespace_ = STR("") };
    char text[200];
    memset(text, 'x', sizeof text);
    memcpy(text + 62, "\xc3\xa9", 2); /* its second byte would be the 64th */
    struct change change = { .type = POD_EVENT_STARTED,
                             .id = { text, 200 },
                             .name = { text, 200 } };
    struct pod_event event = change_event(&pod, &change, NULL);
    EXPECT_EQ(strlen(event.id), 79);
    EXPECT_EQ(strlen(event.container), 62);
}

TEST(records_are_found_by_uid_and_by_what_is_in_them)
{
    AUTO_ARENA arena = { 0 };
    struct records records = { 0 };
    static const char *const uids[] = { "m", "a", "z", "b", "y" };
    for (size_t i = 0; i < KV_COUNT_OF(uids); i++) {
        size_t at;
        EXPECT_FALSE(records_find(&records, str_of(uids[i]), &at));
        records_insert(&records, at, str_of(uids[i]));
    }
    for (size_t i = 1; i < records.all.count; i++)
        EXPECT_TRUE(str_cmp(records.all.items[i - 1]->uid, records.all.items[i]->uid) < 0);
    struct record *y = records_get(&records, STR("y"));
    y->maybe_seen = seen_pod_new(pod_of(&arena, "s1r c2r"));
    EXPECT_TRUE(records_by_id(&records, STR("c2")) == y);
    EXPECT_TRUE(records_by_id(&records, STR("s1")) == y);
    EXPECT_TRUE(!records_by_id(&records, STR("c3")));
    size_t at;
    EXPECT_TRUE(records_find(&records, STR("b"), &at));
    records_remove(&records, at);
    EXPECT_TRUE(!records_get(&records, STR("b")));
    EXPECT_TRUE(records_get(&records, STR("a")) && records_get(&records, STR("m")));
    records_done(&records);
}
