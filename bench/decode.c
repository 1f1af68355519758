/* Pods from JSON text to typed objects: how long it takes beside yyjson's bare parse of the same
 * bytes, and how much memory the objects hold.
 *
 * Texts are made in batches, as watch events come: each batch is parsed bare and decoded in turn,
 * so that both meet the same machine. Whole rounds are repeated and the fastest of each counts.
 * Objects of a round stay until it ends; the bytes per pod are what they hold then, counted by the
 * allocator (and beside it by the kernel, for the first round). The hash is of the decoded contents.
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
#define BATCH 500
#define PODS_PER_WORKLOAD 333
#define WORKLOADS_MIN 8
#define ROUNDS 5

struct batch {
    struct buf text;
    size_t starts[BATCH + 1]; /* of each pod in text, and the end */
    size_t count;
};

struct result {
    int64_t bare_ns, decode_ns;
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

static void decode(const struct batch *b, struct object_pool *pool, const struct object **out)
{
    for (size_t i = 0; i < b->count; i++) {
        struct doc doc;
        struct err err;
        int rc = json_read_trusted(batch_text(b, i), &doc, &err);
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

static struct result run(size_t pod_count)
{
    struct result r = { 0 };
    struct pod_maker maker;
    struct batch batch = { 0 };
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

    for (size_t done = 0; done < pod_count; done += batch.count) {
        batch_fill(&batch, &maker, pod_count - done < BATCH ? pod_count - done : BATCH);
        r.text_bytes += batch.text.len;
        int64_t start = clock_mono_ns(clock_real());
        parse_bare(&batch);
        int64_t parsed = clock_mono_ns(clock_real());
        decode(&batch, pool, objects + done);
        r.bare_ns += parsed - start;
        r.decode_ns += clock_mono_ns(clock_real()) - parsed;
    }

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

static void report(size_t pod_count, int rounds)
{
    struct result best = run(pod_count);
    for (int i = 1; i < rounds; i++) {
        struct result next = run(pod_count);
        KV_ASSERT(next.hash == best.hash);
        if (next.bare_ns < best.bare_ns)
            best.bare_ns = next.bare_ns;
        if (next.decode_ns < best.decode_ns)
            best.decode_ns = next.decode_ns;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double n = (double)pod_count;
    printf("decode pods=%zu ratio=%.2f bytes_per_pod=%.0f rss_per_pod=%.0f own_per_pod=%.0f "
           "shared_blocks=%" PRIu64 " text_per_pod=%.0f bare_us=%.2f decode_us=%.2f mb_per_s=%.0f "
           "peak_kb=%ld hash=%016" PRIx64 "\n",
           pod_count, (double)best.decode_ns / (double)best.bare_ns, (double)best.heap_bytes / n,
           (double)best.rss_bytes / n, (double)best.own_bytes / n, best.shared.shared_count,
           (double)best.text_bytes / n, (double)best.bare_ns / n / 1e3,
           (double)best.decode_ns / n / 1e3,
           (double)best.text_bytes / ((double)best.decode_ns / 1e9) / 1e6, usage.ru_maxrss,
           best.hash);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    report(1000, ROUNDS);
    if (small)
        return 0;
    report(10000, ROUNDS);
    report(100000, ROUNDS);
    return 0;
}
