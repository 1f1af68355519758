/* The pods of bench/pods.h, with numbers for names: a StatefulSet's repeat. */
#include "bench/kube_load.h"

#include "api/kinds.h"
#include "base/clock.h"
#include "base/thread.h"
#include "codec/json.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED 42
#define WORKLOADS 500
#define THREADS 16

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "kube: %s: %s\n", what, err->text);
    exit(1);
}

void load_init(struct load *load, const struct store *store, const char *etcd)
{
    static const char *const namespaces[] = { "shop-prod", "data", "platform", "payments" };
    struct err err = { 0 };

    *load = (struct load){ .store = store, .etcd = etcd_fill_new(etcd) };
    pod_maker_init(&load->maker, SEED, WORKLOADS);
    for (size_t i = 0; i < KV_COUNT_OF(namespaces); i++) {
        char text[80];
        int len = snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", namespaces[i]);
        if (store_create(store, &namespace_kind, STR(""), (struct str){ text, (size_t)len }, NULL,
                         &err) < 0)
            fail("create a namespace", &err);
    }
}

void load_done(struct load *load)
{
    vec_each(&load->pods, struct load_pod, pod) {
        free(pod->namespace_);
        free(pod->name);
        free(pod->maybe_text);
    }
    etcd_fill_free(load->etcd);
    vec_done(&load->pods);
}

/* `fresh`: as who creates it sends it, without what servers and kubelets fill in. */
static struct load_pod *make_pod(struct load *load, bool fresh)
{
    static const char *const filled_in[] = { "managedFields", "uid", "creationTimestamp" };
    AUTO_BUF text = { 0 };
    struct buf body = { 0 };
    struct doc doc = { 0 };
    struct json_build b;
    struct err err = { 0 };
    char name[32];

    pod_maker_next(&load->maker, &text);
    if (json_read_trusted(buf_str(&text), &doc, &err) < 0)
        fail("a pod's text", &err);
    json_build_init(&b);
    json_mut *root = json_copy(&b, doc.root);
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    for (size_t i = 0; fresh && i < KV_COUNT_OF(filled_in); i++)
        json_mut_remove(meta, str_of(filled_in[i]));
    if (fresh)
        json_mut_remove(root, STR("status"));
    json_mut_remove(meta, STR("resourceVersion"));
    json_mut_remove(meta, STR("name"));
    snprintf(name, sizeof name, "pod-%06zu", load->pods.count);
    json_set_str(&b, meta, "name", str_of(name));
    json_write_mut(root, &body);
    vec_push(&load->pods,
             (struct load_pod){
                 .namespace_ = str_dup(json_str(json_path(doc.root, "metadata.namespace"))),
                 .name = str_dup(str_of(name)),
                 .maybe_text = buf_take(&body),
             });
    json_build_done(&b);
    doc_done(&doc);
    return &load->pods.items[load->pods.count - 1];
}

void load_fill(struct load *load, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct load_pod *pod = make_pod(load, false);
        char key[128];
        snprintf(key, sizeof key, "/registry/pods/%s/%s", pod->namespace_, pod->name);
        etcd_fill_put(load->etcd, key, str_of(pod->maybe_text));
        free(take(
            &pod->maybe_text)); /* a process that is started is said to have had this one's memory */
    }
    etcd_fill_flush(load->etcd);
}

struct job {
    struct load *load;
    int (*write)(struct load *load, uint32_t number, struct err *err);
    uint32_t end;
    atomic_uint next;
};

static int create_pod(struct load *load, uint32_t number, struct err *err)
{
    const struct load_pod *pod = &load->pods.items[number];
    return store_create(load->store, &pod_kind, str_of(pod->namespace_), str_of(pod->maybe_text),
                        NULL, err);
}

static int report_pod(struct load *load, uint32_t number, struct err *err)
{
    const struct load_pod *pod = &load->pods.items[number % load->pods.count];
    struct object_ref ref = { &pod_kind, str_of(pod->namespace_), str_of(pod->name) };
    char patch[64];
    int len = snprintf(patch, sizeof patch, "{\"status\":{\"message\":\"report %u\"}}", number);
    return store_patch(load->store, ref,
                       (struct patch_options){ .type = PATCH_MERGE, .status = true },
                       (struct str){ patch, (size_t)len }, NULL, err);
}

static void *job_main(void *arg)
{
    struct job *job = arg;
    struct err err = { 0 };
    for (uint32_t i; (i = atomic_fetch_add(&job->next, 1)) < job->end;) {
        if (job->write(job->load, i, &err) < 0)
            fail("write", &err);
    }
    return NULL;
}

static double run(struct job *job)
{
    pthread_t threads[THREADS];
    struct err err = { 0 };
    int64_t start_ns = clock_mono_ns(clock_real());

    for (size_t i = 0; i < THREADS; i++) {
        if (thread_start(&threads[i], "load", job_main, job, &err) < 0)
            fail("load", &err);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return (double)(clock_mono_ns(clock_real()) - start_ns) / 1e9;
}

double load_create(struct load *load, uint32_t count)
{
    struct job job = { .load = load, .write = create_pod, .next = (uint32_t)load->pods.count };

    for (uint32_t i = 0; i < count; i++)
        make_pod(load, true);
    job.end = (uint32_t)load->pods.count;
    return run(&job);
}

double load_report(struct load *load, uint32_t count)
{
    struct job job = { .load = load, .write = report_pod, .next = load->reported_count };

    load->reported_count += count;
    job.end = load->reported_count;
    return run(&job);
}
