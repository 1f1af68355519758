/* Requests to an API server that is rude, slow, broken or somebody else. */
#include "store/kube_client.h"

#include "api/kinds.h"
#include "base/thread.h"
#include "codec/base64.h"
#include "net/http_peer_testing.h"
#include "store/kube_testing.h"

#define NODE "{'kind':'Node','apiVersion':'v1','metadata':{'name':'a','resourceVersion':'5'}}"

static const char *path_of(const struct kind *kind, const char *namespace_, const char *name,
                           const char *sub)
{
    static char text[300];
    AUTO_BUF path = { 0 };
    struct err err = { 0 };
    if (kube_path(kind, str_of(namespace_), str_of(name), sub, &path, &err) < 0)
        return err_kind_name(err.kind);
    snprintf(text, sizeof text, "%s", path.p);
    return text;
}

TEST(every_object_has_a_path)
{
    EXPECT_Z(path_of(&pod_kind, "", "", NULL), "/api/v1/pods");
    EXPECT_Z(path_of(&pod_kind, "ns", "a", "eviction"), "/api/v1/namespaces/ns/pods/a/eviction");
    EXPECT_Z(path_of(&node_kind, "", "a.b", "status"), "/api/v1/nodes/a.b/status");
    EXPECT_Z(path_of(&node_kind, "ignored", "a", NULL), "/api/v1/nodes/a");
    EXPECT_Z(path_of(&deployment_kind, "ns", "", NULL), "/apis/apps/v1/namespaces/ns/deployments");
    EXPECT_Z(path_of(&nodepool_kind, "", "x", NULL), "/apis/karpenter.sh/v1/nodepools/x");
    EXPECT_Z(path_of(&node_kind, "", "a b?c#\xc3\xa4", NULL), "/api/v1/nodes/a%20b%3Fc%23%C3%A4");
}

TEST(a_name_that_would_lead_elsewhere_has_none)
{
    static const char *const bad[] = { ".", "..", "a/b", "../secrets", "%2e%2e" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        EXPECT_Z(path_of(&node_kind, "", bad[i], NULL), err_kind_name(ERR_INVALID));
        EXPECT_Z(path_of(&pod_kind, bad[i], "a", NULL), err_kind_name(ERR_INVALID));
    }
    EXPECT_Z(path_of(&pod_kind, "", "a", NULL), err_kind_name(ERR_INVALID));
}

TEST(queries_are_encoded)
{
    AUTO_BUF path = { 0 };
    buf_addz(&path, "/p");
    kube_path_query(&path, "labelSelector", STR("a in (b,c),!d=e&f"));
    kube_path_query(&path, "fieldSelector", STR(""));
    kube_path_query(&path, "continue", STR("eyJ2Ijo+/=="));
    EXPECT_STR(buf_str(&path), "/p?labelSelector=a%20in%20%28b%2Cc%29%2C%21d%3De%26f"
                               "&continue=eyJ2Ijo%2B%2F%3D%3D");
}

TEST(a_refusal_says_what_kind_it_is_and_why)
{
    static const struct {
        int code;
        const char *body;
        enum err_kind kind;
        const char *text;
    } cases[] = {
        { 404,
          "{'kind':'Status','message':'nodepools.karpenter.sh x not found','reason':'NotFound'}",
          ERR_NOT_FOUND, "nodepools.karpenter.sh x not found" },
        { 409, "{'kind':'Status','message':'m','reason':'AlreadyExists','code':409}", ERR_EXISTS,
          "m" },
        { 409, "{'kind':'Status','message':'m','reason':'Conflict'}", ERR_CONFLICT, "m" },
        { 410, "{'kind':'Status','message':'m','reason':'Expired'}", ERR_GONE, "m" },
        { 401, "{'kind':'Status','message':'Unauthorized'}", ERR_DENIED, "Unauthorized" },
        { 403, "{'kind':'Status','message':'m'}", ERR_DENIED, "m" },
        { 400, "{'kind':'Status','message':'m'}", ERR_INVALID, "m" },
        { 415, "", ERR_INVALID, "the server answered with 415" },
        { 422, "{'kind':'Status','message':'m'}", ERR_INVALID, "m" },
        { 429, "Too many requests", ERR_THROTTLED,
          "the server answered with 429: Too many requests" },
        { 429,
          "{'kind':'Status','message':'Cannot evict.','details':{'causes':"
          "[{'message':'The budget needs 2'},{'message':'evict'},{'message':7},7]}}",
          ERR_THROTTLED, "Cannot evict.: The budget needs 2" },
        { 500, "{'kind':'Status','message':'m','reason':'InternalError'}", ERR_INTERNAL, "m" },
        { 500, "{'kind':'Status','message':'m','reason':'ServerTimeout'}", ERR_UNAVAILABLE, "m" },
        { 502, "<html>\n<b>Bad</b>\x1b[31m\xff", ERR_UNAVAILABLE,
          "the server answered with 502: <html> <b>Bad</b> [31m\xef\xbf\xbd" },
        { 503, "", ERR_UNAVAILABLE, "the server answered with 503" },
        { 504,
          "{'kind':'Status','message':'Too large resource version','details':{'causes':"
          "[{'reason':'ResourceVersionTooLarge'}]}}",
          ERR_GONE, "Too large resource version" },
        { 418, "[]", ERR_INVALID, "the server answered with 418: []" },
        { 400, "{'kind':'Status'}", ERR_INVALID, "the server answered with 400 and no message" },
        { 400, "{'kind':'Status','message':[],'details':{'causes':{}},'reason':'Odd'}", ERR_INVALID,
          "the server answered with 400 \"Odd\"" },
        { 100, "", ERR_INTERNAL, "the server answered with 100" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        EXPECT_ERR(kube_refusal(cases[i].code, js("%s", cases[i].body), NULL, &err), err,
                   cases[i].kind);
        EXPECT_Z(err.text, cases[i].text);
    }
}

TEST(a_long_page_of_a_proxy_is_cut)
{
    char page[5000];
    struct err err = { 0 };
    memset(page, 'x', sizeof page);
    EXPECT_ERR(kube_refusal(502, (struct str){ page, sizeof page }, NULL, &err), err,
               ERR_UNAVAILABLE);
    EXPECT_TRUE(strlen(err.text) < 400);
    EXPECT_HAS(str_of(err.text), "xxx...");
}

/* --- again? --- */

static int get_node(struct rig *r, struct err *err)
{
    return store_get(r->store, at(&node_kind, "a"), NULL, err);
}

static int make_a_node(struct rig *r, struct err *err)
{
    return store_create(r->store, &node_kind, STR(""), js("{'metadata':{'name':'a'}}"), NULL, err);
}

TEST(a_read_is_tried_again_when_the_server_is_in_trouble)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    kube_server_reply(r->server, 503, "", STR("starting"));
    kube_server_reply(r->server, 500, "", STR(""));
    kube_server_raw(r->server, STR("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
                    KUBE_SERVER_CLOSE);
    kube_server_reply(r->server, 200, "", js(NODE));
    EXPECT_OK(get_node(r, &err), err);
    EXPECT_EQ(kube_server_requests(r->server), 4);

    AUTO_BUF text = { 0 };
    metrics_write(r->metrics, &text);
    EXPECT_HAS(buf_str(&text), "rest_client_requests_total{code=\"503\",host=\"127.0.0.1:");
    EXPECT_HAS(buf_str(&text), "rest_client_requests_total{code=\"<error>\"");
    EXPECT_HAS(buf_str(&text), "method=\"GET\"} 1");
}

TEST(a_read_is_given_up_after_a_few_attempts)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    for (int i = 0; i < 9; i++)
        kube_server_reply(r->server, 502, "", STR("down"));
    EXPECT_ERR(get_node(r, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(kube_server_requests(r->server), 4);
}

TEST(a_refusal_is_not_tried_again)
{
    static const int codes[] = { 400, 403, 404, 409, 410, 422 };
    for (size_t i = 0; i < KV_COUNT_OF(codes); i++) {
        AUTO(rig) r = rig_new();
        struct err err = { 0 };
        kube_server_reply(r->server, codes[i], "Retry-After: 1\r\n", STR(""));
        EXPECT_TRUE(get_node(r, &err) < 0);
        EXPECT_EQ(kube_server_requests(r->server), 1);
    }
}

TEST(a_write_that_may_have_been_carried_out_is_not_sent_again)
{
    static const int codes[] = { 500, 502, 503, 504 };
    for (size_t i = 0; i < KV_COUNT_OF(codes); i++) {
        AUTO(rig) r = rig_new();
        struct err err = { 0 };
        kube_server_reply(r->server, codes[i], "", STR(""));
        EXPECT_ERR(make_a_node(r, &err), err, codes[i] == 500 ? ERR_INTERNAL : ERR_UNAVAILABLE);
        EXPECT_EQ(kube_server_requests(r->server), 1);
    }
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    kube_server_raw(r->server, STR("HTTP/1.1 201 Cre"), KUBE_SERVER_CLOSE);
    EXPECT_ERR(make_a_node(r, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(kube_server_requests(r->server), 1);
}

TEST(a_write_that_was_turned_away_at_the_door_waits_as_long_as_it_is_told)
{
    static const int codes[] = { 429, 503 };
    for (size_t i = 0; i < KV_COUNT_OF(codes); i++) {
        AUTO(rig) r = rig_new();
        struct err err = { 0 };
        atomic_store(&last_wait_ns, 0);
        kube_server_reply(r->server, codes[i], "Retry-After: 7\r\n", STR("busy"));
        kube_server_reply(r->server, 201, "", js(NODE));
        EXPECT_OK(make_a_node(r, &err), err);
        EXPECT_EQ(kube_server_requests(r->server), 2);
        EXPECT_EQ(atomic_load(&last_wait_ns) / SECOND_NS, 7);
    }
}

static bool may_write_twice(void *ctx)
{
    return ++*(int *)ctx <= 2;
}

TEST(a_write_that_is_about_to_be_sent_asks_whether_it_still_may_and_a_read_does_not)
{
    int asked = 0;
    AUTO(rig) r = rig_at(
        (struct kube_options){ .may_write = may_write_twice, .may_write_ctx = &asked }, NULL);
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", js(NODE));
    EXPECT_OK(get_node(r, &err), err);
    EXPECT_EQ(asked, 0);
    /* Two attempts may, and what happens meanwhile to the one that waits for the third ends it. */
    kube_server_reply(r->server, 429, "Retry-After: 1\r\n", STR("busy"));
    kube_server_reply(r->server, 429, "Retry-After: 1\r\n", STR("busy"));
    kube_server_reply(r->server, 201, "", js(NODE));
    EXPECT_ERR(make_a_node(r, &err), err, ERR_CANCELLED);
    EXPECT_EQ(kube_server_requests(r->server), 3);
}

TEST(nobody_waits_for_more_than_a_minute)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    for (int i = 0; i < 9; i++)
        kube_server_reply(r->server, 429, "Retry-After: 25\r\n", STR("busy"));
    EXPECT_ERR(get_node(r, &err), err, ERR_THROTTLED);
    EXPECT_EQ(kube_server_requests(r->server), 3); /* at 0, 25 and 50 seconds */
}

TEST(a_request_that_cannot_be_sent_is_tried_again_whatever_it_is)
{
    AUTO(kube_server) gone = kube_server_new();
    AUTO_BUF cluster = { 0 };
    buf_addf(&cluster, "server: 'http://127.0.0.1:%u'", kube_server_port(gone));
    kube_server_free(take(&gone));
    AUTO(rig) r = rig_at((struct kube_options){ 0 }, cluster.p);
    struct err err = { 0 };
    int64_t before_ns = atomic_load(&skipped_ns);
    EXPECT_ERR(make_a_node(r, &err), err, ERR_UNAVAILABLE);
    EXPECT_TRUE(atomic_load(&skipped_ns) > before_ns);
    AUTO_BUF text = { 0 };
    metrics_write(r->metrics, &text);
    EXPECT_HAS(buf_str(&text), "method=\"POST\"} 4");
}

TEST(what_is_asked_first_fails_at_once)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    AUTO_BUF version = { 0 };
    kube_server_reply(r->server, 503, "", STR("no"));
    kube_server_reply(r->server, 200, "", STR("<html>login</html>"));
    kube_server_reply(r->server, 200, "", js("{'gitVersion':'v1.34.3'}"));
    EXPECT_ERR(kube_server_version(r->kube, &version, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(kube_server_requests(r->server), 1);
    EXPECT_ERR(kube_server_version(r->kube, &version, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "<html>login");
    EXPECT_OK(kube_server_version(r->kube, &version, &err), err);
    EXPECT_STR(buf_str(&version), "v1.34.3");
}

TEST(an_eviction_that_a_budget_refuses_is_not_tried_again)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    kube_server_reply(r->server, 429, "Retry-After: 10\r\n",
                      js("{'kind':'Status','message':'Cannot evict pod','reason':'TooManyRequests',"
                         "'details':{'causes':[{'reason':'DisruptionBudget',"
                         "'message':'The budget web needs 2 healthy pods'}]},'code':429}"));
    kube_server_reply(r->server, 429, "Retry-After: 1\r\n", STR("Too many requests"));
    kube_server_reply(r->server, 201, "", js("{'kind':'Status','status':'Success'}"));
    EXPECT_ERR(evict(r->store, "a", &err), err, ERR_THROTTLED);
    EXPECT_Z(err.text, "Cannot evict pod: The budget web needs 2 healthy pods");
    EXPECT_EQ(kube_server_requests(r->server), 1);
    EXPECT_OK(evict(r->store, "a", &err), err);
    EXPECT_EQ(kube_server_requests(r->server), 3);
}

TEST(a_credential_that_is_refused_is_renewed_once)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", js(NODE));
    EXPECT_OK(get_node(r, &err), err);
    EXPECT_HAS(kube_server_request(r->server, 0), "\r\nAuthorization: Bearer first\r\n");

    write_text(r->folder, "token", "second");
    kube_server_reply(r->server, 401, "", js("{'kind':'Status','message':'Unauthorized'}"));
    kube_server_reply(r->server, 201, "", js(NODE));
    EXPECT_OK(make_a_node(r, &err), err);
    EXPECT_HAS(kube_server_request(r->server, 2), "\r\nAuthorization: Bearer second\r\n");

    for (int i = 0; i < 3; i++)
        kube_server_reply(r->server, 401, "", js("{'kind':'Status','message':'Unauthorized'}"));
    EXPECT_ERR(get_node(r, &err), err, ERR_DENIED);
    EXPECT_EQ(kube_server_requests(r->server), 5);
}

TEST(a_server_with_a_wrong_certificate_hears_nothing)
{
    AUTO(cert) right = cert_new((struct cert_options){ .name = "right", .authority = true });
    AUTO(cert) wrong = cert_new((struct cert_options){ .name = "wrong", .loopback = true });
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ .cert = wrong });
    AUTO_BUF ca = { 0 }, cluster = { 0 };
    struct err err = { 0 };
    base64_encode(right->cert_pem, &ca);
    buf_addf(&cluster, "server: 'https://127.0.0.1:%u', certificate-authority-data: %s",
             http_peer_port(peer), ca.p);
    AUTO(rig) r = rig_at((struct kube_options){ 0 }, cluster.p);
    EXPECT_ERR(get_node(r, &err), err, ERR_DENIED);
    EXPECT_HAS(str_of(err.text), "certificate");
    EXPECT_EQ(http_peer_requests(peer), 0);
}

TEST(a_redirect_is_an_error_that_names_where_it_leads)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    kube_server_reply(r->server, 302, "Location: https://login.example/\r\n", STR(""));
    EXPECT_ERR(get_node(r, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "https://login.example/");
}

TEST(an_answer_that_makes_no_sense_is_an_error)
{
    static const struct {
        const char *body;
        enum err_kind kind;
    } cases[] = {
        { "", ERR_UNAVAILABLE },
        { "<html>hello</html>", ERR_UNAVAILABLE },
        { "{'kind':'Node','metadata':{'name':'a'", ERR_UNAVAILABLE },
        { "[]", ERR_INVALID },
        { "null", ERR_INVALID },
        { "{}", ERR_INVALID },
        { "{'kind':'Pod','metadata':{'name':'a'}}", ERR_INVALID },
        { "{'kind':'Node','metadata':{}}", ERR_INVALID },
        { "{'kind':'Node','metadata':{'name':7}}", ERR_INVALID },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(rig) r = rig_new();
        struct err err = { 0 };
        kube_server_reply(r->server, 200, "Content-Type: text/html\r\n", js("%s", cases[i].body));
        EXPECT_ERR(get_node(r, &err), err, cases[i].kind);
    }
    AUTO_BUF deep = { 0 };
    for (int i = 0; i < 100000; i++)
        buf_addz(&deep, "[");
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    kube_server_reply(r->server, 200, "", buf_str(&deep));
    EXPECT_ERR(get_node(r, &err), err, ERR_UNAVAILABLE);
}

TEST(a_warning_is_passed_on_once)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    for (int i = 0; i < 2; i++) {
        kube_server_reply(r->server, 200, "Warning: 299 - \"v1 is old\"\r\n", js(NODE));
        EXPECT_OK(get_node(r, &err), err);
    }
    EXPECT_EQ(rig_log_count(r, "v1 is old"), 1);
}

static void *cancel_soon(void *arg)
{
    struct rig *r = arg;
    while (kube_server_requests(r->server) == 0)
        usleep(1000);
    kube_cancel(r->kube);
    return NULL;
}

TEST(cancelling_ends_what_waits_and_what_comes_after)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    pthread_t thread;
    kube_server_raw(r->server, STR(""), KUBE_SERVER_HOLD);
    EXPECT_OK(thread_start(&thread, "cancel", cancel_soon, r, &err), err);
    EXPECT_ERR(get_node(r, &err), err, ERR_CANCELLED);
    pthread_join(thread, NULL);
    size_t requests = kube_server_requests(r->server);
    EXPECT_ERR(get_node(r, &err), err, ERR_CANCELLED);
    EXPECT_EQ(kube_server_requests(r->server), requests);
}

/* --- what is sent --- */

static struct str sent(struct rig *r)
{
    return kube_server_request(r->server, kube_server_requests(r->server) - 1);
}

TEST(a_write_is_done_even_if_its_answer_cannot_be_read_by_who_does_not_want_it)
{
    AUTO(rig) r = rig_new();
    AUTO_OBJECT made = NULL;
    struct err err = { 0 };
    struct object_ref ref = { &node_kind, STR(""), STR("a") };
    for (int i = 0; i < 3; i++)
        kube_server_reply(r->server, 200, "", js("{'metadata':{'name':'a'},'spec':7}"));
    EXPECT_OK(
        store_create(r->store, &node_kind, STR(""), js("{'metadata':{'name':'a'}}"), NULL, &err),
        err);
    EXPECT_OK(store_patch(r->store, ref, (struct patch_options){ 0 }, js("{}"), NULL, &err), err);
    EXPECT_ERR(store_patch(r->store, ref, (struct patch_options){ 0 }, js("{}"), &made, &err), err,
               ERR_INVALID);
}

TEST(a_new_object_is_sent_with_its_type_and_to_its_namespace)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    for (int i = 0; i < 3; i++)
        kube_server_reply(r->server, 201, "",
                          js("{'kind':'Lease','metadata':{'name':'a','namespace':'x'}}"));
    EXPECT_OK(
        store_create(r->store, &lease_kind, STR(""), js("{'metadata':{'name':'a'}}"), NULL, &err),
        err);
    EXPECT_HAS(sent(r), "POST /apis/coordination.k8s.io/v1/namespaces/default/leases HTTP/1.1\r\n");
    EXPECT_HAS(sent(r), "\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\"");
    EXPECT_HAS(sent(r), "\r\nContent-Type: application/json\r\n");
    EXPECT_HAS(sent(r), "\r\nUser-Agent: karve\r\n");
    EXPECT_OK(store_create(r->store, &lease_kind, STR(""),
                           js("{'metadata':{'name':'a','namespace':'x'}}"), NULL, &err),
              err);
    EXPECT_HAS(sent(r), "/namespaces/x/leases HTTP");
    EXPECT_OK(store_create(r->store, &lease_kind, STR("y"),
                           js("{'kind':'Other','metadata':{'generateName':'a-'}}"), NULL, &err),
              err);
    EXPECT_HAS(sent(r), "/namespaces/y/leases HTTP");
    EXPECT_HAS(sent(r), "\"kind\":\"Other\"");
}

TEST(a_patch_says_what_it_is_and_which_version_it_is_for)
{
    static const struct {
        struct patch_options opts;
        const char *patch, *type, *body;
    } cases[] = {
        { { .type = PATCH_MERGE }, "{ 'a' : 1 }", "merge-patch", "{ \"a\" : 1 }" },
        { { .type = PATCH_MERGE, .resource_version = 7 },
          "{'a':1}",
          "merge-patch",
          "{\"a\":1,\"metadata\":{\"resourceVersion\":\"7\"}}" },
        { { .type = PATCH_STRATEGIC, .resource_version = 7 },
          "{'metadata':{'labels':null}}",
          "strategic-merge-patch",
          "{\"metadata\":{\"labels\":null,\"resourceVersion\":\"7\"}}" },
        { { .type = PATCH_JSON, .resource_version = 7 },
          "[{'op':'remove','path':'/a'}]",
          "json-patch",
          "[{\"op\":\"add\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"},"
          "{\"op\":\"remove\",\"path\":\"/a\"}]" },
    };
    AUTO(rig) r = rig_new();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        AUTO_BUF type = { 0 }, body = { 0 };
        kube_server_reply(r->server, 200, "", js(NODE));
        EXPECT_OK(store_patch(r->store, at(&node_kind, "a"), cases[i].opts,
                              js("%s", cases[i].patch), NULL, &err),
                  err);
        buf_addf(&type, "\r\nContent-Type: application/%s+json\r\n", cases[i].type);
        buf_addf(&body, "\r\n\r\n%s", cases[i].body);
        EXPECT_HAS(sent(r), type.p);
        EXPECT_TRUE(str_ends(sent(r), buf_str(&body)));
    }
    struct err err = { 0 };
    struct patch_options opts = { .status = true };
    kube_server_reply(r->server, 200, "", js(NODE));
    EXPECT_OK(store_patch(r->store, at(&node_kind, "a"), opts, STR("{}"), NULL, &err), err);
    EXPECT_HAS(sent(r), "PATCH /api/v1/nodes/a/status HTTP");
}

TEST(a_patch_that_contradicts_its_own_lock_is_not_sent)
{
    static const struct {
        enum patch_type type;
        const char *patch;
        enum err_kind kind;
    } cases[] = {
        { PATCH_MERGE, "{'metadata':{'resourceVersion':'8'}}", ERR_CONFLICT },
        { PATCH_MERGE, "{'metadata':null}", ERR_INVALID },
        { PATCH_MERGE, "[]", ERR_INVALID },
        { PATCH_MERGE, "{", ERR_INVALID },
        { PATCH_JSON, "{}", ERR_INVALID },
    };
    AUTO(rig) r = rig_new();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct patch_options opts = { .type = cases[i].type, .resource_version = 7 };
        EXPECT_ERR(
            store_patch(r->store, at(&node_kind, "a"), opts, js("%s", cases[i].patch), NULL, &err),
            err, cases[i].kind);
    }
    EXPECT_EQ(kube_server_requests(r->server), 0);
}

TEST(a_json_patch_that_does_not_fit_because_its_object_has_moved_is_a_conflict)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    struct patch_options opts = { .type = PATCH_JSON, .resource_version = 4 };
    struct str patch = js("[{'op':'remove','path':'/metadata/finalizers/0'}]");
    for (int i = 0; i < 2; i++) {
        kube_server_reply(r->server, 422, "", js("{'kind':'Status','message':'no'}"));
        kube_server_reply(r->server, 200, "", js(NODE)); /* whose version is 5 */
    }
    EXPECT_ERR(store_patch(r->store, at(&node_kind, "a"), opts, patch, NULL, &err), err,
               ERR_CONFLICT);
    opts.resource_version = 5;
    EXPECT_ERR(store_patch(r->store, at(&node_kind, "a"), opts, patch, NULL, &err), err,
               ERR_INVALID);
}

TEST(deletions_and_evictions_carry_their_conditions)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    struct delete_options opts = { .uid = STR("u-1"),
                                   .resource_version = 9,
                                   .grace_s = { 0, true },
                                   .propagation = PROPAGATE_FOREGROUND };
    for (int i = 0; i < 3; i++)
        kube_server_reply(r->server, 200, "", js("{'kind':'Status','status':'Success'}"));
    EXPECT_OK(store_remove(r->store, at(&pod_kind, "a"), &opts, &err), err);
    EXPECT_HAS(sent(r), "DELETE /api/v1/namespaces/default/pods/a HTTP");
    EXPECT_HAS(sent(r), "\"propagationPolicy\":\"Foreground\",\"gracePeriodSeconds\":0,"
                        "\"preconditions\":{\"uid\":\"u-1\",\"resourceVersion\":\"9\"}}");
    EXPECT_OK(store_evict(r->store, STR("default"), STR("a"), &opts, &err), err);
    EXPECT_HAS(sent(r), "POST /api/v1/namespaces/default/pods/a/eviction HTTP");
    EXPECT_HAS(sent(r), "\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\"");
    EXPECT_HAS(sent(r), "\"deleteOptions\":{\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\"");
    EXPECT_OK(store_bind(r->store, STR("default"), STR("a"), STR("n"), &err), err);
    EXPECT_HAS(sent(r), "/pods/a/binding HTTP");
    EXPECT_HAS(sent(r), "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\"}");
}

TEST(an_object_without_a_name_is_not_taken_for_all_of_them)
{
    AUTO(rig) r = rig_new();
    struct err err = { 0 };
    EXPECT_ERR(store_remove(r->store, at(&node_kind, ""), NULL, &err), err, ERR_INVALID);
    EXPECT_ERR(store_get(r->store, at(&node_kind, ""), NULL, &err), err, ERR_INVALID);
    EXPECT_EQ(kube_server_requests(r->server), 0);
}
