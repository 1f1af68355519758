/* Lists and watches of an API server that is rude, slow, broken or somebody else. */
#include "store/kube_inner.h"

#include "api/kinds.h"
#include "store/informer.h"
#include "store/kube_testing.h"

#define NODE(name, version)                                                                        \
    "{'kind':'Node','metadata':{'name':'" name "','resourceVersion':'" version "'}}"
#define EVENT(type, name, version) "{'type':'" type "','object':" NODE(name, version) "}\n"
#define BOOKMARK(version)                                                                          \
    "{'type':'BOOKMARK','object':{'kind':'Node','metadata':{'resourceVersion':'" version "'}}}\n"
#define PAGE(more, items)                                                                          \
    "{'kind':'NodeList','metadata':{'resourceVersion':'7'" more "},'items':[" items "]}"

/* --- lists --- */

static int list_nodes(struct rig *r, struct list_options opts, struct object_list *out,
                      struct err *err)
{
    return store_list(r->store, &node_kind, &opts, out, err);
}

TEST(a_whole_list_is_fetched_in_pages)
{
    AUTO(rig) r = rig_new();
    struct object_list out = { 0 };
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", js(PAGE(",'continue':'t+1'", NODE("a", "3"))));
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("b", "4") "," NODE("c", "5"))));
    EXPECT_OK(list_nodes(r, (struct list_options){ .label_selector = STR("x=y") }, &out, &err),
              err);
    EXPECT_EQ(out.count, 3);
    EXPECT_EQ(out.resource_version, 7);
    EXPECT_TRUE(out.continue_ == NULL);
    EXPECT_HAS(kube_server_request(r->server, 0), "?labelSelector=x%3Dy&limit=500 HTTP");
    EXPECT_HAS(kube_server_request(r->server, 1), "&limit=500&continue=t%2B1 HTTP");
    object_list_done(&out);
}

TEST(a_page_is_a_page_for_those_who_ask_for_one)
{
    AUTO(rig) r = rig_new();
    struct object_list out = { 0 };
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", js(PAGE(",'continue':'t'", NODE("a", "3"))));
    EXPECT_OK(list_nodes(r, (struct list_options){ .limit = 1 }, &out, &err), err);
    EXPECT_EQ(out.count, 1);
    EXPECT_Z(out.continue_, "t");
    object_list_done(&out);

    kube_server_reply(r->server, 410, "", js("{'kind':'Status','message':'expired'}"));
    EXPECT_ERR(
        list_nodes(r, (struct list_options){ .limit = 1, .continue_ = STR("t") }, &out, &err), err,
        ERR_GONE);
    kube_server_reply(r->server, 200, "", js(PAGE(",'continue':'t'", NODE("a", "3"))));
    EXPECT_ERR(
        list_nodes(r, (struct list_options){ .limit = 1, .continue_ = STR("t") }, &out, &err), err,
        ERR_INVALID); /* or it would go on for ever */
}

TEST(a_list_whose_pages_expire_is_fetched_at_once)
{
    AUTO(rig) r = rig_new();
    struct object_list out = { 0 };
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", js(PAGE(",'continue':'t'", NODE("a", "3"))));
    kube_server_reply(r->server, 410, "", js("{'kind':'Status','message':'expired'}"));
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("a", "3") "," NODE("b", "8"))));
    EXPECT_OK(list_nodes(r, (struct list_options){ 0 }, &out, &err), err);
    EXPECT_EQ(out.count, 2);
    EXPECT_HAS(kube_server_request(r->server, 2), "GET /api/v1/nodes HTTP");
    object_list_done(&out);
}

#define ODD_NODE "{'metadata':{'name':'odd-one'},'spec':7}"

TEST(an_item_that_cannot_be_read_does_not_hide_the_others_from_who_can_do_without_it)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    for (int i = 0; i < 2; i++) {
        struct object_list out = { 0 };
        kube_server_reply(r->server, 200, "",
                          js(PAGE("", NODE("a", "3") "," ODD_NODE ","
                                                     "{'kind':'Pod','metadata':{'name':'p'}},null,"
                                                     "{'metadata':{'name':'b'}}")));
        EXPECT_OK(list_nodes(r, (struct list_options){ .skip_unreadable = true }, &out, &err), err);
        EXPECT_EQ(out.count, 2);
        EXPECT_STR(out.items[1]->meta.name, "b");
        EXPECT_EQ(out.unreadable_count, 3);
        EXPECT_Z(out.unreadable[0].name, "odd-one");
        EXPECT_Z(out.unreadable[2].name, "");
        object_list_done(&out);
    }
    EXPECT_EQ(rig_log_count(r, "odd-one"), 1);
}

TEST(an_item_that_cannot_be_read_is_not_taken_for_absent)
{
    AUTO(rig) r = rig_new();
    struct object_list out = { 0 };
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("a", "3") "," ODD_NODE)));
    EXPECT_ERR(list_nodes(r, (struct list_options){ 0 }, &out, &err), err, ERR_INVALID);
    EXPECT_TRUE(strstr(err.text, "odd-one") != NULL);
}

TEST(a_list_that_makes_no_sense_is_an_error)
{
    static const struct {
        const char *body;
        enum err_kind kind;
    } cases[] = {
        { "{'kind':'PodList','metadata':{'resourceVersion':'7'},'items':[]}", ERR_INVALID },
        { "{'kind':'NodeList','metadata':{},'items':[]}", ERR_INVALID },
        { "{'kind':'NodeList','metadata':{'resourceVersion':'x7'},'items':[]}", ERR_INVALID },
        { "{'kind':'NodeList','metadata':{'resourceVersion':'99999999999999999999'}}",
          ERR_INVALID },
        { "{'kind':'NodeList','metadata':{'resourceVersion':'7'},'items':{}}", ERR_INVALID },
        { "[]", ERR_INVALID },
        { "{'kind':'NodeList','items':[{'metadata'", ERR_UNAVAILABLE },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(rig) r = rig_new();
        struct object_list out = { 0 };
        struct err err = { 0 };
        kube_server_reply(r->server, 200, "", js("%s", cases[i].body));
        EXPECT_ERR(list_nodes(r, (struct list_options){ 0 }, &out, &err), err, cases[i].kind);
    }
    AUTO(rig) r = rig_new();
    struct object_list out = { 0 };
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "",
                      js("{'kind':'NodeList','metadata':{'resourceVersion':'7'},'items':null}"));
    EXPECT_OK(list_nodes(r, (struct list_options){ 0 }, &out, &err), err);
    EXPECT_EQ(out.count, 0);
    object_list_done(&out);
}

/* --- watches --- */

static struct watch *watch_nodes(struct rig *r, bool bookmarks)
{
    return watch(r->store, &node_kind,
                 (struct watch_options){ .resource_version = 1, .bookmarks = bookmarks });
}

/* The next event, once there is one. */
static const char *next_text(struct watch *w, uint64_t *version)
{
    int64_t end_ns = clock_mono_ns(clock_real()) + 30 * SECOND_NS;
    const char *text;
    while ((text = event_text(w, version))[0] == '\0' && clock_mono_ns(clock_real()) < end_ns)
        usleep(500);
    return text;
}

TEST(events_come_whole_whatever_the_pieces)
{
    struct str stream = js(EVENT("ADDED", "a", "2") "\n" EVENT("MODIFIED", "a", "3") BOOKMARK("4")
                               EVENT("DELETED", "a", "5"));
    for (size_t piece = 1; piece <= stream.len; piece += piece < 8 ? 1 : 61) {
        AUTO(rig) r = rig_new();
        uint64_t version = 0;
        kube_server_stream(r->server, stream, piece, KUBE_SERVER_HOLD);
        struct watch *w = watch_nodes(r, false);
        EXPECT_Z(next_text(w, NULL), "ADDED a");
        EXPECT_Z(next_text(w, NULL), "MODIFIED a");
        EXPECT_Z(next_text(w, &version), "DELETED a");
        EXPECT_EQ(version, 5);
        EXPECT_Z(event_text(w, NULL), "");
        watch_close(w);
    }
}

TEST(a_watch_asks_for_bookmarks_and_an_end)
{
    AUTO(rig) r = rig_new();
    kube_server_stream(r->server, js(BOOKMARK("4")), 9, KUBE_SERVER_HOLD);
    struct watch *w = watch_nodes(r, true);
    uint64_t version = 0;
    EXPECT_Z(next_text(w, &version), "BOOKMARK");
    EXPECT_EQ(version, 4);
    struct str asked = kube_server_request(r->server, 0);
    EXPECT_HAS(asked, "GET /api/v1/nodes?watch=true&resourceVersion=1&allowWatchBookmarks=true&"
                      "timeoutSeconds=");
    watch_close(w);
}

TEST(a_version_that_is_too_old_is_gone_however_the_server_says_it)
{
    static const char status[] = "{'kind':'Status','status':'Failure','message':'too old resource "
                                 "version: 1 (9)','reason':'Expired','code':410}";
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    struct watch *w = NULL;
    struct watch_options opts = { .resource_version = 1 };
    kube_server_reply(r->server, 410, "", js("%s", status));
    EXPECT_ERR(store_watch(r->store, &node_kind, &opts, &w, &err), err, ERR_GONE);
    EXPECT_HAS(str_of(err.text), "too old resource version: 1 (9)");

    struct str event = js("{'type':'ERROR','object':%s}\n", status);
    kube_server_stream(r->server, event, 1000, KUBE_SERVER_HOLD);
    w = watch_nodes(r, false);
    EXPECT_Z(next_text(w, NULL), "error gone");
    EXPECT_Z(next_text(w, NULL), "error gone"); /* and stays so */
    watch_close(w);

    kube_server_stream(r->server, js(EVENT("ADDED", "a", "2") "%.*s", STR_ARG(event)), 1000,
                       KUBE_SERVER_HOLD);
    w = watch_nodes(r, false);
    EXPECT_Z(next_text(w, NULL), "ADDED a");
    EXPECT_Z(next_text(w, NULL), "error gone");
    watch_close(w);
}

TEST(a_watch_that_is_refused_says_why)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    struct watch *w = NULL;
    struct watch_options opts = { .resource_version = 1 };
    kube_server_reply(r->server, 403, "", js("{'kind':'Status','message':'nodes is forbidden'}"));
    EXPECT_ERR(store_watch(r->store, &node_kind, &opts, &w, &err), err, ERR_DENIED);
    EXPECT_Z(err.text, "watch nodes: nodes is forbidden");
    write_text(r->folder, "token", "second");
    kube_server_reply(r->server, 401, "", STR(""));
    kube_server_stream(r->server, js(EVENT("ADDED", "a", "2")), 9, KUBE_SERVER_HOLD);
    EXPECT_OK(store_watch(r->store, &node_kind, &opts, &w, &err), err);
    EXPECT_HAS(kube_server_request(r->server, 2), "Authorization: Bearer second");
    EXPECT_Z(next_text(w, NULL), "ADDED a");
    watch_close(w);
}

TEST(what_ends_a_stream_asks_to_open_it_again)
{
    static const struct {
        const char *last;
        enum kube_server_then then;
    } cases[] = {
        { "", KUBE_SERVER_NEXT },                     /* as the server was asked to */
        { "", KUBE_SERVER_CLOSE },                    /* cut */
        { "{'type':'ADDED','obj", KUBE_SERVER_NEXT }, /* in the middle of an event */
        { "{'type':'ADDED','obj", KUBE_SERVER_CLOSE },
        { "garbage\n", KUBE_SERVER_HOLD },
        { "{'type':'ADDED'}}\n", KUBE_SERVER_HOLD },
        { "[]\n", KUBE_SERVER_HOLD },
        { "{'type':'NEWS','object':{}}\n", KUBE_SERVER_HOLD },
        { "{'type':'BOOKMARK','object':{}}\n", KUBE_SERVER_HOLD },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(rig) r = rig_new();
        kube_server_stream(r->server, js(EVENT("ADDED", "a", "2") "%s", cases[i].last), 50,
                           cases[i].then);
        struct watch *w = watch_nodes(r, false);
        EXPECT_Z(next_text(w, NULL), "ADDED a");
        EXPECT_Z(next_text(w, NULL), "error unavailable");
        watch_close(w);
    }
}

TEST(an_event_that_cannot_be_read_is_left_out_unless_it_is_a_deletion)
{
#define ODD(type) "{'type':'" type "','object':" ODD_NODE "}\n"
    AUTO(rig) r = rig_new();
    kube_server_stream(r->server,
                       js(ODD("ADDED") ODD("MODIFIED") EVENT("ADDED", "a", "2") ODD("DELETED")),
                       1000, KUBE_SERVER_HOLD);
    struct watch *w = watch_nodes(r, false);
    EXPECT_Z(next_text(w, NULL), "ADDED a");
    EXPECT_Z(next_text(w, NULL), "error gone");
    EXPECT_EQ(rig_log_count(r, "odd-one"), 1);
    watch_close(w);
}

TEST(a_line_without_an_end_is_given_up)
{
    struct object_pool *pool = object_pool_new();
    struct kube_decoder decoder = { .pool = pool };
    struct kube_events events = { .decoder = &decoder, .kind = &node_kind };
    struct watch_event event;
    struct err err = { 0 };
    char piece[4096];

    memset(piece, 'x', sizeof piece);
    size_t total = 0;
    for (; total <= KUBE_LINE_BYTES_MAX - sizeof piece; total += sizeof piece) {
        buf_add(kube_events_room(&events), (struct str){ piece, sizeof piece });
        EXPECT_EQ(kube_events_next(&events, &event, &err), 0);
    }
    buf_add(kube_events_room(&events), (struct str){ piece, sizeof piece });
    EXPECT_ERR(kube_events_next(&events, &event, &err), err, ERR_UNAVAILABLE);
    kube_events_done(&events);
    object_pool_free(pool);
}

static void count_wake(void *ctx)
{
    if (ctx)
        atomic_fetch_add((atomic_int *)ctx, 1);
}

/* A watch on which "ADDED a" has come, and then nothing comes. On a busy machine even that may take longer
 * than the silence that ends it: then it is begun again, with more patience. */
static struct watch *watch_that_spoke(struct rig **r, int64_t idle_ns, atomic_int *maybe_wakes)
{
    for (;; idle_ns *= 2) {
        *r = rig_at(
            (struct kube_options){ .clock = clock_real(), .watch_idle_timeout_ns = idle_ns }, NULL);
        kube_server_stream((*r)->server, js(EVENT("ADDED", "a", "2")), 1000, KUBE_SERVER_HOLD);
        struct watch *w =
            watch((*r)->store, &node_kind,
                  (struct watch_options){
                      .resource_version = 1, .wake = count_wake, .wake_ctx = maybe_wakes });
        const char *text = next_text(w, NULL);
        if (strcmp(text, "ADDED a") == 0)
            return w;
        EXPECT_TRUE(str_starts(str_of(text), STR("error ")));
        EXPECT_TRUE(idle_ns < 30 * SECOND_NS);
        watch_close(w);
        rig_free(*r);
    }
}

TEST(a_silent_stream_is_dead_and_one_that_never_spoke_may_be_of_another_life)
{
    AUTO(rig) r = NULL;
    struct watch *w = watch_that_spoke(&r, SECOND_NS / 5, NULL);
    EXPECT_Z(next_text(w, NULL), "error unavailable");
    watch_close(w);

    kube_server_stream(r->server, STR(""), 1000, KUBE_SERVER_HOLD);
    w = watch_nodes(r, false);
    EXPECT_Z(next_text(w, NULL), "error gone");
    watch_close(w);
}

TEST(a_watch_from_version_0_lists_first)
{
    AUTO(rig) r = rig_new();
    uint64_t version = 0;
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("a", "3") "," NODE("b", "2"))));
    kube_server_stream(r->server, js(EVENT("MODIFIED", "a", "8")), 7, KUBE_SERVER_HOLD);
    struct watch *w = watch(r->store, &node_kind, (struct watch_options){ .bookmarks = true });
    EXPECT_FALSE(watch_quiet(w));
    EXPECT_Z(next_text(w, NULL), "ADDED a");
    EXPECT_Z(next_text(w, NULL), "ADDED b");
    EXPECT_Z(next_text(w, &version), "BOOKMARK");
    EXPECT_EQ(version, 7);
    EXPECT_Z(next_text(w, NULL), "MODIFIED a");
    EXPECT_HAS(kube_server_request(r->server, 1), "&resourceVersion=7&");
    watch_close(w);
}

TEST(a_reader_that_found_nothing_is_woken_and_quiet_until_then)
{
    AUTO(rig) r = NULL;
    atomic_int wakes = 0;
    struct watch *w = watch_that_spoke(&r, SECOND_NS, &wakes);
    int64_t end_ns = clock_mono_ns(clock_real()) + 60 * SECOND_NS;
    EXPECT_FALSE(watch_quiet(w)); /* for all it knows */

    /* Until it is found dead. A wake for what has been read meanwhile may come late. */
    const char *text;
    int before;
    while (before = atomic_load(&wakes), (text = event_text(w, NULL))[0] == '\0') {
        EXPECT_TRUE(watch_quiet(w) || atomic_load(&wakes) > before);
        while (atomic_load(&wakes) == before && clock_mono_ns(clock_real()) < end_ns)
            usleep(1000);
        EXPECT_TRUE(atomic_load(&wakes) > before);
        EXPECT_FALSE(watch_quiet(w));
    }
    EXPECT_Z(text, "error unavailable");
    EXPECT_TRUE(atomic_load(&wakes) > 0);
    EXPECT_FALSE(watch_quiet(w));
    watch_close(w);
}

TEST(closing_does_not_wait_for_a_server_that_says_nothing)
{
    AUTO(rig) r = rig_new();
    kube_server_stream(r->server, STR(""), 1, KUBE_SERVER_HOLD);
    struct watch *w = watch_nodes(r, false);
    EXPECT_Z(event_text(w, NULL), "");
    watch_close(w);
}

TEST(cancelling_ends_a_watch)
{
    AUTO(rig) r = rig_new();
    kube_server_stream(r->server, js(EVENT("ADDED", "a", "2")), 99, KUBE_SERVER_HOLD);
    struct watch *w = watch_nodes(r, false);
    EXPECT_Z(next_text(w, NULL), "ADDED a");
    kube_cancel(r->kube);
    EXPECT_Z(next_text(w, NULL), "error cancelled");
    watch_close(w);
}

TEST(an_informer_goes_on_from_its_last_version_at_once_and_quietly)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    AUTO(informer) inf = informer_new(
        (struct informer_options){ .store = r->store, .kind = &node_kind, .clock = clock_real() });
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("a", "3"))));
    kube_server_stream(r->server, js(EVENT("ADDED", "b", "8") BOOKMARK("12")), 9,
                       KUBE_SERVER_NEXT); /* an ordinary end */
    kube_server_stream(r->server, js(EVENT("DELETED", "a", "13")), 9, KUBE_SERVER_HOLD);
    int64_t end_ns = clock_mono_ns(clock_real()) + 30 * SECOND_NS;
    while (informer_version(inf) < 13 && clock_mono_ns(clock_real()) < end_ns) {
        informer_pump(inf);
        EXPECT_FALSE(informer_trouble(inf, &err));
        usleep(500);
    }
    EXPECT_EQ(informer_count(inf), 1);
    EXPECT_EQ(kube_server_requests(r->server), 3);
    EXPECT_HAS(kube_server_request(r->server, 2), "&resourceVersion=12&");
    EXPECT_EQ(rig_log_count(r, "WARN"), 0);
}

static void add_change(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    buf_addf(ctx, " %c%.*s",
             !maybe_old  ? '+'
             : maybe_new ? '~'
                         : '-',
             STR_ARG((maybe_new ? maybe_new : maybe_old)->meta.name));
}

/* A claim that is taken for deleted would cost its machine. */
TEST(an_informer_keeps_what_can_no_longer_be_read_as_it_was)
{
#define GONE "{'type':'ERROR','object':{'kind':'Status','code':410}}\n"
    AUTO_BUF told = { 0 };
    AUTO(rig) r = rig_new();
    AUTO(informer) inf = informer_new((struct informer_options){
        .store = r->store, .kind = &node_kind, .clock = &skipping_clock });
    informer_on_change(inf, add_change, &told);
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("b", "4") "," NODE("odd-one", "3"))));
    kube_server_stream(r->server, js(ODD("MODIFIED") GONE), 1000, KUBE_SERVER_NEXT);
    kube_server_reply(r->server, 200, "", js(PAGE("", ODD_NODE)));
    kube_server_stream(r->server, js(EVENT("MODIFIED", "odd-one", "9") ODD("DELETED")), 1000,
                       KUBE_SERVER_NEXT);
    kube_server_reply(r->server, 200, "", js(PAGE("", NODE("c", "12"))));
    kube_server_stream(r->server, js(BOOKMARK("20")), 1000, KUBE_SERVER_HOLD);
    int64_t end_ns = clock_mono_ns(clock_real()) + 30 * SECOND_NS;
    while (informer_version(inf) < 20 && clock_mono_ns(clock_real()) < end_ns) {
        informer_pump(inf);
        atomic_fetch_add(&skipped_ns, SECOND_NS);
        usleep(500);
    }
    EXPECT_Z(told.p, " +b +odd-one -b ~odd-one -odd-one +c");
}
