#include "kube/etcd_fill.h"

#include "support/test.h"

#include "codec/base64.h"
#include "net/http.h"

#include <stdlib.h>

#define PUTS_AT_ONCE 100 /* etcd takes up to 128 in a transaction */
#define TIMEOUT_NS ((int64_t)60 * 1000 * 1000 * 1000)

struct etcd_fill {
    struct http *http;
    struct buf url, puts;
    uint32_t count; /* of puts that wait */
};

struct etcd_fill *etcd_fill_new(const char *url)
{
    struct etcd_fill *fill = kv_calloc(1, sizeof *fill);
    struct err err;
    EXPECT_OK(http_new((struct http_options){ .proxy = "" }, &fill->http, &err), err);
    buf_addf(&fill->url, "%s/v3/kv/txn", url);
    return fill;
}

void etcd_fill_free(struct etcd_fill *fill)
{
    if (!fill)
        return;
    etcd_fill_flush(fill);
    http_free(fill->http);
    buf_done(&fill->url);
    buf_done(&fill->puts);
    free(fill);
}

void etcd_fill_put(struct etcd_fill *fill, const char *key, struct str text)
{
    buf_addz(&fill->puts, fill->count ? "," : "{\"success\":[");
    buf_addz(&fill->puts, "{\"requestPut\":{\"key\":\"");
    base64_encode(str_of(key), &fill->puts);
    buf_addz(&fill->puts, "\",\"value\":\"");
    base64_encode(text, &fill->puts);
    buf_addz(&fill->puts, "\"}}");
    if (++fill->count == PUTS_AT_ONCE)
        etcd_fill_flush(fill);
}

void etcd_fill_flush(struct etcd_fill *fill)
{
    AUTO_BUF said = { 0 };
    struct err err;
    int status = 0;
    if (fill->count == 0)
        return;
    buf_addz(&fill->puts, "]}");
    struct http_request request = { .method = "POST",
                                    .url = buf_str(&fill->url),
                                    .body = buf_str(&fill->puts),
                                    .timeout_ns = TIMEOUT_NS };
    EXPECT_OK(http_do(fill->http, &request, &status, &said, &err), err);
    EXPECT_EQ(status, 200);
    buf_clear(&fill->puts);
    fill->count = 0;
}
