/* The image of a container: there already, or pulled, by its policy.
 *
 * A pull that failed is not tried again before its back-off is over; the key is the image, in the
 * worker of its pod. A pull has no time limit and ends when its pod does.
 */
#include "node/workers_inner.h"

static int image_status(struct pod_sync *sync, Cri__ImageSpec *spec, Cri__Image **out,
                        struct err *err)
{
    Cri__ImageStatusRequest request = CRI__IMAGE_STATUS_REQUEST__INIT;
    Cri__ImageStatusResponse *reply;
    request.image = spec;
    if (cri_call(sync->worker->owner->opts.cri, CRI_IMAGE_STATUS, &request, &sync->arena, &reply,
                 err) < 0)
        return -1;
    *out = reply->image;
    return 0;
}

static void take_image(const Cri__Image *image, struct pod_image *out)
{
    out->ref = str_of(image->id);
    out->uid = (struct maybe_int){ .set = image->uid != NULL,
                                   .value = image->uid ? image->uid->value : 0 };
    out->username = str_of(image->username ? image->username : "");
}

static int pull(struct pod_sync *sync, const struct node_container *container, Cri__ImageSpec *spec,
                struct err *err)
{
    struct pod_worker *w = sync->worker;
    const struct workers_options *opts = &w->owner->opts;
    Cri__PullImageRequest request = CRI__PULL_IMAGE_REQUEST__INIT;
    request.image = spec;
    request.sandbox_config = sync->sandbox;
    worker_event(w, sync->pod, false, "Pulling", "Pulling image %s", STR_SHOWN(container->image));
    if (cri_call_within(opts->cri, CRI_PULL_IMAGE, &request, 0, sync->calls, &sync->arena, NULL,
                        err) < 0)
        return -1;
    worker_event(w, sync->pod, false, "Pulled", "Successfully pulled image %s",
                 STR_SHOWN(container->image));
    return 0;
}

/* Why one waits is what people ask: the failure is told along, for as long as its wait is. */
static int say_backoff(struct pod_worker *w, const struct node_container *container,
                       struct err *err)
{
    const struct start_failure *last = str_table_get(&w->failures, container->name);
    if (last && str_eqz(last->reason, "ImagePullBackOff"))
        return err_set(err, ERR_THROTTLED, "%.*s", STR_ARG(last->message));
    err_set(err, ERR_THROTTLED, "Back-off pulling image %s", STR_SHOWN(container->image));
    if (last && str_eqz(last->reason, "ErrImagePull"))
        err_set(err, ERR_THROTTLED, "Back-off pulling image %s: ErrImagePull: %.*s",
                STR_SHOWN(container->image), STR_ARG(last->message));
    return -1;
}

int pod_image_ensure(struct pod_sync *sync, const struct node_container *container,
                     struct pod_image *out, const char **reason, int64_t *retry_ns, struct err *err)
{
    struct pod_worker *w = sync->worker;
    const struct clock *clock = w->owner->opts.clock;
    Cri__ImageSpec spec = CRI__IMAGE_SPEC__INIT;
    spec.image = (char *)arena_str(&sync->arena, container->image).p;
    spec.user_specified_image = spec.image;
    Cri__Image *image = NULL;

    *reason = "ImageInspectError";
    if (image_status(sync, &spec, &image, err) < 0)
        return -1;
    if (image && container->pull_policy != PULL_ALWAYS) {
        take_image(image, out);
        return 0;
    }
    if (container->pull_policy == PULL_NEVER) {
        *reason = "ErrImageNeverPull";
        worker_event(w, sync->pod, true, "ErrImageNeverPull",
                     "Container image %s is not present with pull policy of Never",
                     STR_SHOWN(container->image));
        return err_set(err, ERR_NOT_FOUND,
                       "Container image %s is not present with pull policy of Never",
                       STR_SHOWN(container->image));
    }

    int64_t now = clock_mono_ns(clock);
    int64_t left =
        backoff_left(&w->pulls, container->image, backoff_last(&w->pulls, container->image), now);
    if (left > 0) {
        *reason = "ImagePullBackOff";
        *retry_ns = left;
        return say_backoff(w, container, err);
    }
    *reason = "ErrImagePull";
    if (pull(sync, container, &spec, err) < 0) {
        if (cri_cancelled(sync->calls))
            return -1; /* the pod ends, or the agent: the image is not to blame */
        backoff_next(&w->pulls, container->image, clock_mono_ns(clock));
        worker_event(w, sync->pod, true, "Failed", "Failed to pull image %s: %s",
                     STR_SHOWN(container->image), err->text);
        *retry_ns = backoff_delay(&w->pulls, container->image);
        return -1;
    }
    backoff_reset(&w->pulls, container->image);
    *reason = "ImageInspectError";
    if (image_status(sync, &spec, &image, err) < 0)
        return -1;
    if (!image)
        return err_set(err, ERR_NOT_FOUND, "image %s is not there after its pull",
                       STR_SHOWN(container->image));
    take_image(image, out);
    return 0;
}
