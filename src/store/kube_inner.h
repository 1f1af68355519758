/* store/kube_inner.h - what the files of the kube store share. */
#pragma once

#include "store/kube.h"
#include "store/kube_client.h"
#include "store/kube_told.h"

#define KUBE_LINE_BYTES_MAX ((size_t)16 << 20) /* one event; etcd holds objects of 1.5 MiB */

#define AUTO_DOC __attribute__((cleanup(doc_done))) struct doc

/* --- from the server's texts to objects (kube_decode.c); thread safe --- */

struct kube_decoder {
    struct object_pool *pool;
    struct log *maybe_log;
    struct told skipped; /* objects that cannot be read, by kind and name */
};

/* ERR_INVALID: it is of another kind, or has a field that cannot be. */
int kube_decode(struct kube_decoder *d, const struct kind *kind, const json_val *v,
                const struct object **out, struct err *err);
/* The same of a text. One that is no JSON is ERR_UNAVAILABLE: somebody else answered, or the answer
 * was spoilt on its way. */
int kube_decode_text(struct kube_decoder *d, const struct kind *kind, struct str text,
                     const struct object **out, struct err *err);
/* A page of a list: its objects are added to `out`, its version and token replace those in there.
 * An item that cannot be read is ERR_INVALID, or left out, named and logged once. */
int kube_decode_page(struct kube_decoder *d, const struct kind *kind, struct str text,
                     bool skip_unreadable, struct object_list *out, struct err *err);
void kube_skip(struct kube_decoder *d, const struct kind *kind, const json_val *v,
               const struct err *why);
bool kube_version_parse(const json_val *v, uint64_t *out); /* a resourceVersion */

/* --- from a stream's bytes to events (kube_events.c) --- */

struct kube_events {
    struct kube_decoder *decoder;
    const struct kind *kind;
    struct buf
        bytes; /* lines that are read up to `at`, and up to `searched` without a line's end */
    size_t at, searched;
    struct json_reader reader;
    bool bookmarks;      /* the reader wants them */
    uint64_t seen_count; /* events and bookmarks */
};

void kube_events_done(struct kube_events *e);
/* Where the stream's next bytes go: at the end. What was read is thrown away first. */
struct buf *kube_events_room(struct kube_events *e);
bool kube_events_has_line(struct kube_events *e);
/* As watch_next, of the bytes that are there. */
int kube_events_next(struct kube_events *e, struct watch_event *out, struct err *err);

/* --- the store --- */

struct kube {
    struct store store;
    struct kube_client *client;
    struct kube_decoder decoder;
    const struct clock *clock;
    int64_t idle_timeout_ns;
};

int kube_list(struct kube *kube, const struct kind *kind, const struct list_options *opts,
              struct object_list *out, struct err *err);
int kube_watch(struct kube *kube, const struct kind *kind, const struct watch_options *opts,
               struct watch **out, struct err *err);
