/* What the images of pending pods ask of a node: looked up in their registries, as the controller does it, before
 * the plan is made. Nodes and NodeFeatures come from what was read, and a node without NodeFeatures, like a machine
 * that is not there yet, is judged by its instance type.
 */
#include "cmd/image_setup.h"
#include "cmd/plan_inner.h"

#include "codec/duration.h"
#include "control/image_fits.h"

#include <unistd.h>

/* Longer than a silent registry is waited for; then the plan is made with what is known. */
#define LOOK_UP_SECONDS 40
#define NOTED_MAX 5 /* images that a note is about */

struct plan_images {
    struct image_setup setup;
    struct log *log;
    struct image_fits *maybe_fits;
};

static bool is_planned_for(const struct pod *pod)
{
    return !pod_is_scheduled(pod) && !pod_is_terminal(pod) && !pod_is_terminating(pod) &&
           !pod_is_gated(pod);
}

/* --- which pods, and which images --- */

/* A sample is one of the pods that share a spec: the others have its images. */
struct wanted {
    struct bitset pods; /* of the snapshot */
    VEC(const struct pod *) samples;
    struct str_table images;
};

static void wanted_done(struct wanted *w)
{
    vec_done(&w->samples);
    str_table_done(&w->images);
}

static void find_wanted(struct planning *p, struct wanted *w)
{
    const struct snapshot *snap = &p->snapshot;
    const void *last_spec = NULL; /* pods of one workload follow each other */
    w->pods = bitset_new(&p->arena, snap->pod_count);
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        const struct pod *pod = snap->pods[i];
        const struct str *images;
        if (!is_planned_for(pod))
            continue;
        bitset_set(&w->pods, i);
        if (pod->spec == last_spec)
            continue;
        last_spec = pod->spec;
        vec_push(&w->samples, pod);
        uint32_t count = pod_images(pod, &p->arena, &images);
        for (uint32_t k = 0; k < count; k++)
            str_table_put(&w->images, images[k], w);
    }
}

/* --- what is told of them --- */

struct untold {
    const char *words; /* what is the matter with them */
    VEC(struct str) images;
    struct str why; /* of the first */
};

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void note_untold(struct planning *p, struct untold *u)
{
    AUTO_BUF names = { 0 };
    size_t count = u->images.count;
    if (count)
        qsort(u->images.items, count, sizeof *u->images.items, by_text);
    for (size_t i = 0; i < count && i < NOTED_MAX; i++) {
        buf_addz(&names, i ? ", " : "");
        name_format(u->images.items[i], &names);
    }
    if (count > NOTED_MAX)
        buf_addf(&names, " and %zu more", count - NOTED_MAX);
    if (count)
        planning_note(p, "%s: %s%s%.*s", u->words, names.p, u->why.len ? "; " : "",
                      STR_ARG(u->why));
    vec_done(&u->images);
}

static void note_images(struct planning *p, const struct plan_images *images,
                        const struct wanted *w)
{
    struct compat_service *service = images->setup.maybe_service;
    bool ignored = images->setup.settings.on_resolve_error == RESOLVE_IGNORE;
    struct untold failed = { .words = ignored ? "images that could not be looked up ask for nothing"
                                              : "images that could not be looked up fit no node" };
    struct untold unknown = { .words = "images that their registry does not have" };
    struct untold late = { .words = "images that are still being looked up, whose pods wait" };
    str_table_each(&w->images, slot) {
        struct image_answer answer;
        image_cache_get(compat_service_images(service), slot->key, images->setup.maybe_keys,
                        &answer);
        if (answer.state == IMAGE_FAILED) {
            vec_push(&failed.images, slot->key);
            if (failed.images.count == 1)
                failed.why = arena_str(&p->arena, str_of(answer.err.text));
        } else if (answer.state == IMAGE_UNKNOWN) {
            vec_push(&unknown.images, slot->key);
        } else if (answer.state == IMAGE_PENDING) {
            vec_push(&late.images, slot->key);
        }
        image_answer_done(&answer);
    }
    note_untold(p, &failed);
    note_untold(p, &unknown);
    note_untold(p, &late);
}

/* --- looking up --- */

static void observe(const struct planning *p, struct compat_service *service)
{
    const struct plan_objects *o = &p->objects;
    vec_each(&o->nodes, const struct node *, node)
        compat_service_observe(service, NULL, &(*node)->object);
    vec_each(&o->node_features, const struct object *, feature)
        compat_service_observe(service, NULL, *feature);
    vec_each(&o->claims, const struct nodeclaim *, claim)
        compat_service_observe(service, NULL, &(*claim)->object);
}

static void look_up(struct planning *p, struct plan_images *images, const struct wanted *w)
{
    struct compat_service *service = images->setup.maybe_service;
    bool progress = isatty(STDERR_FILENO);
    if (progress)
        fprintf(stderr, "looking up %u images ...", (unsigned)w->images.live_count);
    compat_service_settle(service, w->samples.items, (uint32_t)w->samples.count,
                          clock_mono_ns(clock_real()) + LOOK_UP_SECONDS * DURATION_SECOND);
    if (progress)
        fputs("\r\033[K", stderr);
    images->maybe_fits = image_fits_build(&p->arena, service, &w->pods, &p->snapshot, NULL);
}

static int start(struct plan_images *images, const struct invocation *inv)
{
    struct err err;
    int code = image_setup_read(&images->setup, inv);
    if (code != EXIT_DONE || (code = image_setup_registry(&images->setup, inv, clock_real(), NULL,
                                                          images->log)) != EXIT_DONE)
        return code;
    struct image_service_options options = { .clock = clock_real() };
    if (image_setup_service(&images->setup, options, &err) < 0)
        return print_complaint("plan", EXIT_ENVIRONMENT, "%s", err.text);
    return EXIT_DONE;
}

bool plan_images_wanted(const struct invocation *inv, bool live)
{
    const char *mode = flag_value(inv, "image-compatibility");
    return mode ? strcmp(mode, "off") != 0 : live;
}

int plan_look_at_images(struct planning *p, const struct invocation *inv)
{
    struct plan_images *images = kv_calloc(1, sizeof *images);
    struct wanted w = { 0 };
    p->maybe_images = images;
    images->log = log_new((struct log_options){
        .clock = clock_real(), .fd = STDERR_FILENO, .format = LOG_TEXT, .level = LOG_LEVEL_WARN });
    int code = start(images, inv);
    if (code != EXIT_DONE)
        return code;
    observe(p, images->setup.maybe_service);
    find_wanted(p, &w);
    look_up(p, images, &w);
    note_images(p, images, &w);
    wanted_done(&w);
    return EXIT_DONE;
}

void plan_images_free(struct plan_images *maybe_images)
{
    if (!maybe_images)
        return;
    if (maybe_images->setup.maybe_registry)
        registry_cancel(maybe_images->setup.maybe_registry);
    image_fits_done(maybe_images->maybe_fits);
    image_setup_done(&maybe_images->setup);
    log_free(maybe_images->log);
    free(maybe_images);
}
