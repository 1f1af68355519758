/* Pods from JSON text to typed objects: how long it takes beside yyjson's bare parse of the same
 * bytes, and how much memory the objects hold.
 *
 * Texts are made in small batches, as watch events come: each batch is parsed bare and decoded in
 * turn, so that both meet the same machine. Whole rounds are repeated, and of each batch the fastest
 * bare parse and the fastest decoding count: an interrupted batch does not spoil the sum. Objects of
 * a round stay until it ends; the bytes per pod are what they hold then, counted by the allocator
 * (and beside it by the kernel, for the first round). The hash is of the decoded contents.
 */
#include "api/kinds.h"
#include "base/clock.h"
#include "base/vec.h"
#include "bench/pods.h"
#include "codec/json.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define SEED 42
#define BATCH 100
#define PODS_PER_WORKLOAD 333
#define WORKLOADS_MIN 8
#define ROUNDS 5

struct batch {
    struct buf text;
    size_t starts[BATCH + 1]; /* of each pod in text, and the end */
    size_t count;
};

struct timing {
    int64_t bare_ns, decode_ns;
};

struct result {
    size_t text_bytes, heap_bytes, own_bytes;
    int64_t rss_bytes;
    struct object_pool_stats shared;
    uint64_t hash;
};

static struct str batch_text(const struct batch *b, size_t i)
{
    return (struct str){ b->text.p + b->starts[i], b->starts[i + 1] - b->starts[i] };
}

static void batch_fill(struct batch *b, struct pod_maker *maker, size_t count)
{
    buf_clear(&b->text);
    b->count = count;
    for (size_t i = 0; i < count; i++) {
        b->starts[i] = b->text.len;
        pod_maker_next(maker, &b->text);
    }
    b->starts[count] = b->text.len;
}

static void parse_bare(const struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct str text = batch_text(b, i);
        yyjson_doc *doc = yyjson_read(text.p, text.len, 0);
        KV_ASSERT(doc != NULL);
        yyjson_doc_free(doc);
    }
}

static void decode(const struct batch *b, struct json_reader *reader, struct object_pool *pool,
                   const struct object **out)
{
    for (size_t i = 0; i < b->count; i++) {
        struct doc doc;
        struct err err;
        int rc = json_reader_read(reader, batch_text(b, i), &doc, &err);
        if (rc == 0) {
            rc = object_decode(pool, &pod_kind, doc.root, &out[i], &err);
            doc_done(&doc);
        }
        if (rc < 0) {
            fprintf(stderr, "decode: pod %zu: %s\n", i, err.text);
            exit(1);
        }
    }
}

static size_t heap_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static int64_t resident_bytes(void)
{
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

/* One round. `best` has a place for each batch: the fastest so far. */
static struct result run(size_t pod_count, struct timing *best)
{
    struct result r = { 0 };
    struct pod_maker maker;
    struct batch batch = { 0 };
    struct json_reader reader = { 0 };
    const struct object **objects = kv_calloc(pod_count, sizeof *objects);
    uint32_t workloads = (uint32_t)(pod_count / PODS_PER_WORKLOAD);
    if (workloads < WORKLOADS_MIN)
        workloads = WORKLOADS_MIN;

    /* Before measuring: the batch's buffer has its size and the list its pages. */
    memset(objects, 1, pod_count * sizeof *objects);
    pod_maker_init(&maker, SEED, workloads);
    batch_fill(&batch, &maker, pod_count < BATCH ? pod_count : BATCH);
    pod_maker_init(&maker, SEED, workloads);
    malloc_trim(0);
    size_t heap_before = heap_in_use();
    int64_t rss_before = resident_bytes();
    struct object_pool *pool = object_pool_new();

    for (size_t done = 0; done < pod_count; done += batch.count, best++) {
        batch_fill(&batch, &maker, pod_count - done < BATCH ? pod_count - done : BATCH);
        r.text_bytes += batch.text.len;
        int64_t start = clock_mono_ns(clock_real());
        parse_bare(&batch);
        int64_t parsed = clock_mono_ns(clock_real());
        decode(&batch, &reader, pool, objects + done);
        int64_t decoded = clock_mono_ns(clock_real());
        if (parsed - start < best->bare_ns)
            best->bare_ns = parsed - start;
        if (decoded - parsed < best->decode_ns)
            best->decode_ns = decoded - parsed;
    }

    json_reader_done(&reader);
    malloc_trim(0);
    r.heap_bytes = heap_in_use() - heap_before;
    r.rss_bytes = resident_bytes() - rss_before;
    r.shared = object_pool_stats(pool);
    for (size_t i = 0; i < pod_count; i++) {
        r.own_bytes += object_bytes(objects[i]);
        r.hash = kv_mix64(r.hash ^ schema_hash(pod_kind.schema, objects[i]));
    }
    for (size_t i = 0; i < pod_count; i++)
        object_unref(objects[i]);
    object_pool_free(pool);
    free(objects);
    buf_done(&batch.text);
    return r;
}

static void report(size_t pod_count)
{
    size_t batch_count = (pod_count + BATCH - 1) / BATCH;
    struct timing *best = kv_calloc(batch_count, sizeof *best);
    for (size_t i = 0; i < batch_count; i++)
        best[i] = (struct timing){ INT64_MAX, INT64_MAX };
    struct result r = run(pod_count, best);
    for (int i = 1; i < ROUNDS; i++) {
        struct result next = run(pod_count, best);
        KV_ASSERT(next.hash == r.hash);
    }
    struct timing sum = { 0 };
    for (size_t i = 0; i < batch_count; i++) {
        sum.bare_ns += best[i].bare_ns;
        sum.decode_ns += best[i].decode_ns;
    }
    free(best);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double n = (double)pod_count;
    printf("decode pods=%zu ratio=%.2f bytes_per_pod=%.0f rss_per_pod=%.0f own_per_pod=%.0f "
           "shared_blocks=%" PRIu64 " text_per_pod=%.0f bare_us=%.2f decode_us=%.2f mb_per_s=%.0f "
           "peak_kb=%ld hash=%016" PRIx64 "\n",
           pod_count, (double)sum.decode_ns / (double)sum.bare_ns, (double)r.heap_bytes / n,
           (double)r.rss_bytes / n, (double)r.own_bytes / n, r.shared.shared_count,
           (double)r.text_bytes / n, (double)sum.bare_ns / n / 1e3, (double)sum.decode_ns / n / 1e3,
           (double)r.text_bytes / ((double)sum.decode_ns / 1e9) / 1e6, usage.ru_maxrss, r.hash);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    report(1000);
    if (small)
        return 0;
    report(10000);
    report(100000);
    return 0;
}
