#include "base/rng.h"
#include "node/cri_inner.h"
#include "node/fake_cri_testing.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static struct cri *client_of(struct fake_cri *fake)
{
    struct err err;
    struct cri *cri = NULL;
    EXPECT_OK(
        cri_new((struct cri_options){ .endpoint = fake_cri_endpoint(fake), .clock = clock_real() },
                &cri, &err),
        err);
    return cri;
}

static struct runtime_listing list(struct cri *cri, struct str maybe_uid, struct arena *arena)
{
    struct err err;
    struct runtime_listing listing;
    EXPECT_OK(cri_list(cri, maybe_uid, arena, &listing, &err), err);
    return listing;
}

TEST(a_listing_groups_sandboxes_and_containers_by_pod_newest_first)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    const char *b_old = fake_cri_sandbox(fake, "uid-b", "pod-b", 0);
    const char *a = fake_cri_sandbox(fake, "uid-a", "pod-a", 0);
    const char *b_new = fake_cri_sandbox(fake, "uid-b", "pod-b", 1);
    const char *first = fake_cri_container(fake, b_old, "main", 0);
    const char *second = fake_cri_container(fake, b_new, "main", 3);
    fake_cri_start(fake, second);
    fake_cri_exit(fake, b_old, 0);

    struct runtime_listing listing = list(cri, STR_NONE, &arena);

    EXPECT_EQ(listing.pod_count, 2);
    const struct runtime_pod *pa = &listing.pods[0], *pb = &listing.pods[1];
    EXPECT_STR(pa->uid, "uid-a");
    EXPECT_STR(pa->name, "pod-a");
    EXPECT_STR(pa->namespace_, "default");
    EXPECT_EQ(pa->sandboxes.count, 1);
    EXPECT_STR(pa->sandboxes.items[0].id, a);
    EXPECT_EQ(pa->containers.count, 0);
    EXPECT_STR(pb->uid, "uid-b");
    EXPECT_EQ(pb->sandboxes.count, 2);
    EXPECT_STR(pb->sandboxes.items[0].id, b_new);
    EXPECT_EQ(pb->sandboxes.items[0].attempt, 1);
    EXPECT_EQ(pb->sandboxes.items[0].state, RUNTIME_RUNNING);
    EXPECT_STR(pb->sandboxes.items[0].name, "");
    EXPECT_TRUE(pb->sandboxes.items[0].sandbox_id.p == NULL);
    EXPECT_STR(pb->sandboxes.items[1].id, b_old);
    EXPECT_EQ(pb->sandboxes.items[1].state, RUNTIME_EXITED);
    EXPECT_EQ(pb->containers.count, 2);
    EXPECT_STR(pb->containers.items[0].id, second);
    EXPECT_STR(pb->containers.items[0].name, "main");
    EXPECT_STR(pb->containers.items[0].sandbox_id, b_new);
    EXPECT_EQ(pb->containers.items[0].attempt, 3);
    EXPECT_EQ(pb->containers.items[0].state, RUNTIME_RUNNING);
    EXPECT_STR(pb->containers.items[1].id, first);
    EXPECT_EQ(pb->containers.items[1].state, RUNTIME_CREATED);
    EXPECT_TRUE(pb->containers.items[0].created_ns > pb->containers.items[1].created_ns);
}

TEST(an_empty_runtime_lists_no_pods)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    EXPECT_EQ(list(cri, STR_NONE, &arena).pod_count, 0);
    EXPECT_EQ(list(cri, STR("uid"), &arena).pod_count, 0);
}

TEST(items_of_the_same_moment_are_ordered_by_id)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ .equal_times = true });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    const char *sandbox = fake_cri_sandbox(fake, "uid", "pod", 0);
    for (uint32_t i = 0; i < 20; i++)
        fake_cri_container(fake, sandbox, "main", i);
    struct runtime_listing listing = list(cri, STR_NONE, &arena);
    const struct runtime_pod *pod = &listing.pods[0];
    EXPECT_EQ(pod->containers.count, 20);
    for (uint32_t i = 1; i < 20; i++)
        EXPECT_TRUE(str_cmp(pod->containers.items[i - 1].id, pod->containers.items[i].id) < 0);
}

TEST(a_container_whose_sandbox_is_gone_still_makes_a_pod)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    const char *id = fake_cri_container(fake, sandbox, "main", 0);
    fake_cri_forget(fake, sandbox);
    struct str uids[] = { STR_NONE, STR("uid") };
    for (size_t i = 0; i < KV_COUNT_OF(uids); i++) {
        struct runtime_listing listing = list(cri, uids[i], &arena);
        EXPECT_EQ(listing.pod_count, 1);
        EXPECT_STR(listing.pods[0].name, "web");
        EXPECT_STR(listing.pods[0].namespace_, "default");
        EXPECT_EQ(listing.pods[0].sandboxes.count, 0);
        EXPECT_EQ(listing.pods[0].containers.count, 1);
        EXPECT_STR(listing.pods[0].containers.items[0].id, id);
        EXPECT_STR(listing.pods[0].containers.items[0].sandbox_id, sandbox);
    }
}

TEST(a_container_without_the_label_is_of_no_pod)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    const char *id = fake_cri_container(fake, sandbox, "main", 0);
    fake_cri_set_label(fake, id, CRI_LABEL_UID, NULL);
    struct runtime_listing listing = list(cri, STR_NONE, &arena);
    EXPECT_EQ(listing.pod_count, 1);
    EXPECT_EQ(listing.pods[0].containers.count, 0);
}

TEST(with_a_uid_only_that_pod_is_listed)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    fake_cri_flood(fake, 50, 2);
    struct runtime_listing listing = list(cri, STR("flood-000007"), &arena);
    EXPECT_EQ(listing.pod_count, 1);
    EXPECT_STR(listing.pods[0].uid, "flood-000007");
    EXPECT_EQ(listing.pods[0].containers.count, 2);
    EXPECT_EQ(cri_call_count(cri, CRI_LIST_POD_SANDBOX), 1);
    EXPECT_EQ(cri_call_count(cri, CRI_LIST_CONTAINERS), 1);
}

/* Made by hand, with metadata and no labels: both listings must agree, or its pod comes and goes. */
TEST(a_sandbox_without_labels_is_in_the_listing_of_its_pod_too)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    fake_cri_sandbox(fake, "other", "other", 0);
    fake_cri_set_label(fake, sandbox, CRI_LABEL_UID, NULL);
    EXPECT_EQ(list(cri, STR_NONE, &arena).pod_count, 2);
    struct runtime_listing listing = list(cri, STR("uid"), &arena);
    EXPECT_EQ(listing.pod_count, 1);
    EXPECT_STR(listing.pods[0].sandboxes.items[0].id, sandbox);
}

struct listing_thread {
    struct cri *cri;
    struct cri_cancel *maybe_cancel;
    struct arena arena;
    struct runtime_listing listing;
    int rc;
    struct err err;
};

static void *list_in_thread(void *arg)
{
    struct listing_thread *t = arg;
    t->rc =
        cri_list_until(t->cri, STR_NONE, t->maybe_cancel, NULL, &t->arena, &t->listing, &t->err);
    return NULL;
}

TEST(both_lists_are_asked_for_at_the_same_time)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    fake_cri_sandbox(fake, "uid", "web", 0);
    fake_cri_fault(fake, (struct fake_fault){ .method = FAKE_EVERY_METHOD, .hang = true });
    struct listing_thread t = { .cri = cri };
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, list_in_thread, &t), 0);
    while (fake_cri_waiting(fake) < 2)
        sched_yield();
    fake_cri_heal(fake);
    pthread_join(thread, NULL);
    EXPECT_OK(t.rc, t.err);
    EXPECT_EQ(t.listing.pod_count, 1);
    arena_done(&t.arena);
}

TEST(a_listing_fails_when_either_list_does_and_says_which)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct runtime_listing listing;
    static const enum cri_method both[] = { CRI_LIST_POD_SANDBOX, CRI_LIST_CONTAINERS };
    for (size_t i = 0; i < KV_COUNT_OF(both); i++) {
        fake_cri_fault(
            fake, (struct fake_fault){ .method = both[i], .status = GRPC_UNAVAILABLE, .times = 1 });
        EXPECT_ERR(cri_list(cri, STR_NONE, &arena, &listing, &err), err, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(err.text), cri_method_name(both[i]));
        fake_cri_fault(fake, (struct fake_fault){ .method = both[i], .garbage = true, .times = 1 });
        EXPECT_ERR(cri_list(cri, STR_NONE, &arena, &listing, &err), err, ERR_INTERNAL);
        EXPECT_HAS(str_of(err.text), cri_method_name(both[i]));
    }
}

TEST(a_listing_that_hangs_is_cancelled)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO(cri_cancel) cancel = cri_cancel_new();
    fake_cri_fault(fake, (struct fake_fault){ .method = FAKE_EVERY_METHOD, .hang = true });
    struct listing_thread t = { .cri = cri, .maybe_cancel = cancel };
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, list_in_thread, &t), 0);
    while (fake_cri_waiting(fake) < 2)
        sched_yield();
    cri_cancel(cancel);
    pthread_join(thread, NULL);
    EXPECT_ERR(t.rc, t.err, ERR_CANCELLED);
    arena_done(&t.arena);
}

TEST(the_timestamp_is_of_before_the_first_call)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(virtual_clock) time = virtual_clock_new(0);
    AUTO(cri) cri = NULL;
    struct err err;
    EXPECT_OK(cri_new((struct cri_options){ .endpoint = fake_cri_endpoint(fake),
                                            .clock = virtual_clock_port(time) },
                      &cri, &err),
              err);
    fake_cri_fault(fake, (struct fake_fault){ .method = FAKE_EVERY_METHOD, .hang = true });
    virtual_clock_advance(time, 1000);
    struct listing_thread t = { .cri = cri };
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, list_in_thread, &t), 0);
    while (fake_cri_waiting(fake) < 2)
        sched_yield();
    virtual_clock_advance(time, 5000);
    fake_cri_heal(fake);
    pthread_join(thread, NULL);
    EXPECT_OK(t.rc, t.err);
    EXPECT_EQ(t.listing.timestamp_ns, 1000);
    arena_done(&t.arena);
}

TEST(ten_thousand_containers_are_listed)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    fake_cri_flood(fake, 2000, 5);
    struct runtime_listing listing = list(cri, STR_NONE, &arena);
    EXPECT_EQ(listing.pod_count, 2000);
    for (uint32_t i = 0; i < 2000; i++) {
        char uid[32];
        snprintf(uid, sizeof uid, "flood-%06u", i);
        EXPECT_STR(listing.pods[i].uid, uid);
        EXPECT_EQ(listing.pods[i].containers.count, 5);
    }
}

/* --- from bytes --- */

TEST(a_listing_of_too_many_items_is_refused)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF many = { 0 };
    struct err err;
    struct runtime_listing listing;
    for (int i = 0; i <= CRI_LISTED_MAX; i++)
        buf_add(&many, STR("\x0a\x00"));
    EXPECT_ERR(cri_listing_build(buf_str(&many), STR(""), STR_NONE, &arena, &listing, &err), err,
               ERR_CAPACITY);
    EXPECT_ERR(cri_listing_build(STR(""), buf_str(&many), STR_NONE, &arena, &listing, &err), err,
               ERR_CAPACITY);
}

TEST(what_is_not_a_message_is_an_error)
{
    static const struct str bad[] = {
        STR("\x0a"),                                         /* a length is missing */
        STR("\x0a\x02\x08"),                                 /* cut short */
        STR("\x0a\x01\x0a"),                                 /* the item is cut short */
        STR("\x0b"),                                         /* a group */
        STR("\x02\x00"),                                     /* field 0 */
        STR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* longer than there is memory */
        STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), /* a number that does not end */
        STR("\x09\x00\x00"),                                 /* a fixed64 of two bytes */
        STR("\x0d\x00\x00\x00"),                             /* a fixed32 of three */
    };
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct runtime_listing listing;
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        EXPECT_ERR(cri_listing_build(bad[i], STR(""), STR_NONE, &arena, &listing, &err), err,
                   ERR_INTERNAL);
        EXPECT_HAS(str_of(err.text), "ListPodSandbox");
        EXPECT_ERR(cri_listing_build(STR(""), bad[i], STR_NONE, &arena, &listing, &err), err,
                   ERR_INTERNAL);
        EXPECT_HAS(str_of(err.text), "ListContainers");
    }
}

TEST(fields_of_a_newer_interface_are_stepped_over)
{
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct runtime_listing listing;
    struct str sandbox = STR("\x0a\x1d"                                 /* an item */
                             "\x0a\x01i"                                /* id */
                             "\x12\x05\x12\x03uid"                      /* metadata with the uid */
                             "\xf8\x3f\x05"                             /* field 1023, a number */
                             "\xf9\x3f\x01\x02\x03\x04\x05\x06\x07\x08" /* a fixed64 */
                             "\xfa\x3f\x01z"                            /* bytes */
                             "\x12\x00" /* metadata again: adds nothing, takes nothing away */
    );
    EXPECT_EQ(sandbox.len, 31);
    EXPECT_OK(cri_listing_build(sandbox, STR(""), STR_NONE, &arena, &listing, &err), err);
    EXPECT_EQ(listing.pod_count, 1);
    EXPECT_STR(listing.pods[0].uid, "uid");
    EXPECT_STR(listing.pods[0].sandboxes.items[0].id, "i");
}

TEST(states_that_nobody_knows_are_unknown_or_not_ready)
{
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct runtime_listing listing;
    for (uint8_t said = 0; said < 100; said++) {
        char sandbox[] = "\x0a\x0c"
                         "\x0a\x01i"
                         "\x12\x05\x12\x03uid"
                         "\x18\x00";
        sandbox[sizeof sandbox - 2] = (char)said;
        EXPECT_OK(cri_listing_build((struct str){ sandbox, sizeof sandbox - 1 }, STR(""), STR_NONE,
                                    &arena, &listing, &err),
                  err);
        EXPECT_EQ(listing.pods[0].sandboxes.items[0].state,
                  said == 0 ? RUNTIME_RUNNING : RUNTIME_EXITED);
        uint8_t known[] = { RUNTIME_CREATED, RUNTIME_RUNNING, RUNTIME_EXITED };
        EXPECT_EQ(cri_container_state(said), said < 3 ? known[said] : RUNTIME_UNKNOWN);
    }
}

/* The slow and obvious way, over the generated decoder. */
struct reference {
    struct {
        struct str uid, id;
        int64_t created_ns;
        uint8_t state;
        bool container;
    } items[200];
    uint32_t count;
};

static void reference_read(struct reference *r, struct str sandboxes, struct str containers,
                           struct arena *arena)
{
    Cri__ListPodSandboxResponse *s = cri_decode(CRI_LIST_POD_SANDBOX, sandboxes, arena);
    Cri__ListContainersResponse *c = cri_decode(CRI_LIST_CONTAINERS, containers, arena);
    for (size_t i = 0; i < s->n_items; i++) {
        const Cri__PodSandbox *item = s->items[i];
        if (!item->metadata || !item->metadata->uid[0] || !item->id[0])
            continue;
        r->items[r->count].uid = str_of(item->metadata->uid);
        r->items[r->count].id = str_of(item->id);
        r->items[r->count].created_ns = item->created_at;
        r->items[r->count++].state = item->state == 0 ? RUNTIME_RUNNING : RUNTIME_EXITED;
    }
    for (size_t i = 0; i < c->n_containers; i++) {
        const Cri__Container *item = c->containers[i];
        const char *uid = "";
        for (size_t k = 0; k < item->n_labels; k++) {
            if (strcmp(item->labels[k]->key, CRI_LABEL_UID) == 0)
                uid = item->labels[k]->value;
        }
        if (!uid[0] || !item->id[0])
            continue;
        r->items[r->count].uid = str_of(uid);
        r->items[r->count].id = str_of(item->id);
        r->items[r->count].created_ns = item->created_at;
        r->items[r->count].container = true;
        r->items[r->count++].state = (uint8_t)item->state;
    }
}

/* Is exactly what the reference has in the listing, each in its pod and in order? */
static void expect_same(const struct reference *r, const struct runtime_listing *listing)
{
    uint32_t total = 0;
    for (uint32_t p = 0; p < listing->pod_count; p++) {
        const struct runtime_pod *pod = &listing->pods[p];
        if (p > 0)
            EXPECT_TRUE(str_cmp(listing->pods[p - 1].uid, pod->uid) < 0);
        for (int kind = 0; kind < 2; kind++) {
            const struct listed *items = kind ? pod->containers.items : pod->sandboxes.items;
            uint32_t count = kind ? pod->containers.count : pod->sandboxes.count;
            total += count;
            for (uint32_t i = 0; i < count; i++) {
                if (i > 0)
                    EXPECT_TRUE(items[i - 1].created_ns > items[i].created_ns ||
                                (items[i - 1].created_ns == items[i].created_ns &&
                                 str_cmp(items[i - 1].id, items[i].id) <= 0));
                bool found = false;
                for (uint32_t k = 0; k < r->count && !found; k++)
                    found = r->items[k].container == (kind == 1) &&
                            str_eq(r->items[k].uid, pod->uid) &&
                            str_eq(r->items[k].id, items[i].id) &&
                            r->items[k].created_ns == items[i].created_ns &&
                            r->items[k].state == items[i].state;
                EXPECT_TRUE(found);
            }
        }
    }
    EXPECT_EQ(total, r->count);
}

static struct str pack(struct arena *arena, const void *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    char *p = arena_alloc(arena, bytes + 1);
    protobuf_c_message_pack(message, (uint8_t *)p);
    return (struct str){ p, bytes };
}

static char *random_text(struct rng *rng, struct arena *arena, const char *stem, uint64_t kinds)
{
    uint64_t kind = rng_below(rng, kinds + 1);
    return (char *)(kind == 0 ? STR("") : arena_strf(arena, "%s%ju", stem, (uintmax_t)kind)).p;
}

static void random_listings(struct rng *rng, struct arena *arena, struct str *sandboxes,
                            struct str *containers)
{
    Cri__ListPodSandboxResponse s = CRI__LIST_POD_SANDBOX_RESPONSE__INIT;
    Cri__ListContainersResponse c = CRI__LIST_CONTAINERS_RESPONSE__INIT;
    s.n_items = rng_below(rng, 30);
    c.n_containers = rng_below(rng, 60);
    s.items = arena_array(arena, Cri__PodSandbox *, s.n_items);
    c.containers = arena_array(arena, Cri__Container *, c.n_containers);
    for (size_t i = 0; i < s.n_items; i++) {
        Cri__PodSandbox *item = s.items[i] = arena_new(arena, Cri__PodSandbox);
        cri__pod_sandbox__init(item);
        item->id = random_text(rng, arena, "s", 40);
        item->created_at = (int64_t)rng_below(rng, 5) - 1;
        item->state = (Cri__PodSandboxState)rng_below(rng, 3);
        if (rng_below(rng, 10) == 0)
            continue;
        item->metadata = arena_new(arena, Cri__PodSandboxMetadata);
        cri__pod_sandbox_metadata__init(item->metadata);
        item->metadata->uid = random_text(rng, arena, "uid-", 12);
        item->metadata->name = random_text(rng, arena, "pod-", 12);
        item->metadata->attempt = (uint32_t)rng_next(rng);
    }
    for (size_t i = 0; i < c.n_containers; i++) {
        Cri__Container *item = c.containers[i] = arena_new(arena, Cri__Container);
        cri__container__init(item);
        item->id = random_text(rng, arena, "c", 40);
        item->pod_sandbox_id = random_text(rng, arena, "s", 40);
        item->created_at = (int64_t)rng_below(rng, 5) - 1;
        item->state = (Cri__ContainerState)rng_below(rng, 4);
        item->n_labels = rng_below(rng, 4);
        item->labels = arena_array(arena, Cri__Entry *, item->n_labels);
        for (size_t k = 0; k < item->n_labels; k++) {
            Cri__Entry *label = item->labels[k] = arena_new(arena, Cri__Entry);
            cri__entry__init(label);
            label->key = (char *)(rng_below(rng, 2) ? CRI_LABEL_UID : "io.kubernetes.pod.name");
            label->value = random_text(rng, arena, "uid-", 12);
        }
    }
    *sandboxes = pack(arena, &s);
    *containers = pack(arena, &c);
}

TEST(a_listing_is_what_the_generated_decoder_reads)
{
    const uint64_t seed = 20260731;
    printf("# seed %ju\n", (uintmax_t)seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int round = 0; round < 500; round++) {
        AUTO_ARENA arena = { 0 };
        struct err err;
        struct str sandboxes, containers;
        struct runtime_listing listing;
        struct reference reference = { 0 };
        random_listings(&rng, &arena, &sandboxes, &containers);
        reference_read(&reference, sandboxes, containers, &arena);
        EXPECT_OK(cri_listing_build(sandboxes, containers, STR_NONE, &arena, &listing, &err), err);
        expect_same(&reference, &listing);
    }
}

TEST(a_listing_that_is_cut_anywhere_is_an_error_or_shorter)
{
    struct rng rng;
    rng_init(&rng, 7);
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct str sandboxes, containers;
    struct runtime_listing whole, cut;
    random_listings(&rng, &arena, &sandboxes, &containers);
    EXPECT_OK(cri_listing_build(sandboxes, containers, STR_NONE, &arena, &whole, &err), err);
    for (size_t len = 0; len < containers.len; len++) {
        AUTO_FREE char *copy = str_dup(str_sub(containers, 0, len)); /* so that asan sees the end */
        if (cri_listing_build(sandboxes, (struct str){ copy, len }, STR_NONE, &arena, &cut, &err) <
            0)
            EXPECT_EQ(err.kind, ERR_INTERNAL);
        else
            EXPECT_TRUE(cut.pod_count <= whole.pod_count);
    }
}

/* --- the digest --- */

/* One listing after another is both in one. */
static uint64_t digest_of_both(const struct str *sandboxes, const struct str *containers, int first)
{
    AUTO_BUF s = { 0 };
    AUTO_BUF c = { 0 };
    buf_add(&s, sandboxes[first]);
    buf_add(&s, sandboxes[!first]);
    buf_add(&c, containers[!first]);
    buf_add(&c, containers[first]);
    return cri_listing_digest(buf_str(&s), buf_str(&c));
}

static struct str pack_two(struct arena *arena, int32_t first_state, const char *second_id)
{
    Cri__ListContainersResponse list = CRI__LIST_CONTAINERS_RESPONSE__INIT;
    Cri__Container first = CRI__CONTAINER__INIT, second = CRI__CONTAINER__INIT;
    first.id = (char *)"one";
    first.state = (Cri__ContainerState)first_state;
    second.id = (char *)second_id;
    list.containers = (Cri__Container *[]){ &first, &second };
    list.n_containers = 2;
    return pack(arena, &list);
}

TEST(the_digest_of_a_listing_is_the_same_in_any_order)
{
    struct rng rng;
    rng_init(&rng, 11);
    for (int round = 0; round < 100; round++) {
        AUTO_ARENA arena = { 0 };
        struct str s[2], c[2];
        random_listings(&rng, &arena, &s[0], &c[0]);
        random_listings(&rng, &arena, &s[1], &c[1]);
        EXPECT_TRUE(digest_of_both(s, c, 0) == digest_of_both(s, c, 1));
    }
}

TEST(the_digest_of_a_listing_changes_with_every_id_and_state)
{
    AUTO_ARENA arena = { 0 };
    struct str none = STR("");
    struct str listings[] = {
        pack_two(&arena, 0, "two"),
        pack_two(&arena, 1, "two"),
        pack_two(&arena, 2, "two"),
        pack_two(&arena, 0, "too"),
        pack_two(&arena, 0, ""),
        pack_two(&arena, 0, "one"),
        none,
    };
    for (size_t i = 0; i < KV_COUNT_OF(listings); i++) {
        uint64_t digest = cri_listing_digest(none, listings[i]);
        EXPECT_TRUE(digest != 0);
        EXPECT_TRUE(digest == cri_listing_digest(none, listings[i]));
        for (size_t k = 0; k < i; k++)
            EXPECT_TRUE(digest != cri_listing_digest(none, listings[k]));
        if (listings[i].len) /* sandboxes are not containers */
            EXPECT_TRUE(digest != cri_listing_digest(listings[i], none));
    }
    EXPECT_TRUE(cri_listing_digest(STR("\x0a\x05"), none) == 0);
    EXPECT_TRUE(cri_listing_digest(none, STR("\x0a\x02\x0a\x05")) == 0);
}

TEST(a_listing_that_is_known_is_not_built)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct runtime_listing listing;
    struct err err;
    uint64_t digest = 0;
    const char *sandbox = fake_cri_sandbox(fake, "uid-web", "web", 0);

    EXPECT_EQ(cri_list_until(cri, STR_NONE, NULL, &digest, &arena, &listing, &err), 0);
    EXPECT_EQ(listing.pod_count, 1);
    EXPECT_EQ(cri_list_until(cri, STR_NONE, NULL, &digest, &arena, &listing, &err), 1);
    EXPECT_EQ(listing.pod_count, 0);
    EXPECT_TRUE(listing.timestamp_ns > 0);
    fake_cri_exit(fake, sandbox, 0);
    EXPECT_EQ(cri_list_until(cri, STR_NONE, NULL, &digest, &arena, &listing, &err), 0);
    EXPECT_EQ(listing.pods[0].sandboxes.items[0].state, RUNTIME_EXITED);
}
