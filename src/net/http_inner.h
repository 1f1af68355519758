/* net/http_inner.h - what the files of the HTTP client share. */
#pragma once

#include "base/clock.h"
#include "base/rc.h"
#include "net/curl_load.h"
#include "net/http.h"

#define HTTP_NEVER INT64_MAX

/* --- texts (http_text.c) --- */

/* Method, URL and headers hold nothing that would end their line early, or that we set ourselves. */
int http_request_check(const struct http_request *request, struct err *err);
/* The value of the `ix`th of that name, trimmed; or STR_NONE. */
struct str http_head_find_at(struct str head, struct str name, uint32_t ix);
static inline struct str http_head_find(struct str head, struct str name)
{
    return http_head_find_at(head, name, 0);
}
int64_t http_retry_after_parse(struct str value, int64_t wall_us); /* ns; -1: neither form */

/* --- who the server is and who we are (http_tls.c); immutable --- */

struct http_trust {
    struct rc rc;
    struct str ca_pem, cert_pem, key_pem, server_name; /* owned; absent: not given */
    bool insecure;
};
int http_trust_new(struct http_tls tls, struct http_trust **out, struct err *err);
struct http_trust *http_trust_ref(struct http_trust *trust);
void http_trust_unref(struct http_trust *trust); /* NULL is fine */

/* --- the client --- */

/* A transfer of libcurl's, kept for the next call: what is the same for all is set once. */
struct http_slot {
    CURL *easy;
    struct http_call *call;   /* whose it is now */
    struct http_trust *trust; /* set in it; its bytes are borrowed by `easy` */
    struct http_slot *next;   /* in the list of those that wait */
    char error[CURL_ERROR_SIZE];
};

struct http {
    char *user_agent, *maybe_proxy;
    bool http1;
    bool (*may_connect)(void *ctx, struct str host, const struct sockaddr *address);
    void *may_connect_ctx;
    struct log *log;
    CURLM *multi; /* the I/O thread's; others only wake it */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows; nothing else is locked with it held */
    struct http_trust *trust;
    struct http_call *post_first, *post_last; /* new or unwanted: for the I/O thread to see to */
    bool nudged;                              /* it has been woken and has not looked yet */
    bool stopping;

    /* The I/O thread's own. */
    struct http_call *active; /* in the multi handle */
    struct http_call *told_first, *told_last;
    struct http_slot *slots; /* without a call */
    uint32_t slot_count;
    int64_t now_ns;      /* as of this turn of the loop */
    int64_t earliest_ns; /* no deadline is before it */
};

/* Two own it: who started it, and the I/O thread until it has ended; and a post, for as long as it is
 * one. */
struct http_call {
    struct http *http;
    struct rc rc;

    /* Fixed by http_start. */
    struct http_trust *trust;
    char *method;
    char *url;           /* as asked for */
    char *maybe_renamed; /* the URL with the name to verify instead of its host */
    struct str body;     /* absent: none */
    struct curl_slist *headers;
    struct curl_slist *connect_to; /* what the renamed host stands for */
    int64_t timeout_ns, idle_timeout_ns;
    size_t body_bytes_max, stream_bytes_max;
    bool stream;
    bool tls;
    void (*wake)(void *ctx);
    void *ctx;

    /* The I/O thread's own. */
    struct http_slot *slot;
    struct http_call *previous, *next; /* among the active */
    struct http_call *told_next;
    struct err *maybe_failure; /* what a callback found wrong */
    int64_t deadline_ns;
    size_t head_bytes; /* with those of interim replies */
    uint32_t send_count;
    bool started, told, finished;
    bool address_refused; /* `may_connect` said no to one */

    /* Guarded by http->lock. */
    struct http_call *post_next;
    bool posted;

    pthread_mutex_t lock; /* guards what follows; nothing else is locked with it held */
    pthread_cond_t moved;
    int status;
    struct buf head;    /* complete once `head_done`, and constant from then on */
    struct buf body_in; /* of a whole reply: the I/O thread's until it has ended. Of a stream: what
                         * waits to be taken */
    bool head_done;
    bool ended;
    const struct err *maybe_error; /* `maybe_failure`, once it has ended */
    bool cancelled;
    bool disowned; /* nobody will look at it again: no more wakes */
    bool waking;   /* `wake` is running */
    bool hungry;   /* http_take said that there is nothing: the next bytes are told */

    struct buf spare; /* the taker's: memory for the bytes to come */
};

void http_post(struct http_call *call); /* the I/O thread looks at it */
void http_call_unref(struct http_call *call);
void *http_io_main(void *arg);
void http_slot_free(struct http_slot *slot);
/* Only the first counts. */
void http_call_fail(struct http_call *call, enum err_kind kind, const char *fmt, ...)
    KV_PRINTF(3, 4);

/* --- what libcurl's failures mean (http_error.c) --- */

/* Both are http_call_fail, with what the slot knows. CURLE_OK: no head came all the same. */
void http_call_explain(struct http_call *call, CURLcode code);
void http_call_explain_late(struct http_call *call); /* its deadline has passed */
