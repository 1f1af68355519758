/* Launching: ask the provider for the claim's instance until it has one.
 *
 * The claim's UID is the token, so asking again is always right: after a crash, after an answer
 * that got lost, after a write that failed. That is why nothing is remembered here between passes.
 */
#include "control/lifecycle.h"

#define LAUNCH_MESSAGE_MAX 300 /* bytes of a provider's words in the condition */

/* The claim's own labels count more than what the provider says, its annotations less. */
static int write_metadata(struct life *life, const struct instance *instance, struct err *err)
{
    const struct meta *meta = &life->object->meta;
    const struct object *written = NULL;
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *metadata = json_mut_object(&b, root, STR("metadata"));

    bool labels = life_put_pairs(&b, metadata, "labels", &meta->labels, &instance->labels, false);
    bool annotations = life_put_pairs(&b, metadata, "annotations", &meta->annotations,
                                      &instance->annotations, true);
    if (!labels && !annotations)
        return 0;
    if (control_patch(life->c, life->object, false, false, root, &written, err) < 0)
        return -1;
    life_see(life, written);
    return 0;
}

static struct str shortened(const struct err *err)
{
    struct str text = str_of(err->text);
    return str_sub(text, 0, str_utf8_cut(text, LAUNCH_MESSAGE_MAX));
}

static int on_failure(struct life *life, const struct launch_failure *why, struct err *err)
{
    struct str words = shortened(err);
    switch (why->kind) {
    case LAUNCH_INSUFFICIENT_CAPACITY:
        recorder_say(life->c->recorder, life->object, true, "InsufficientCapacityError",
                     "NodeClaim %.*s event: %.*s", STR_ARG(life->object->meta.name),
                     STR_ARG(words));
        return life_remove(life, "insufficient_capacity", err);
    case LAUNCH_CLASS_NOT_READY:
        return life_remove(life, "nodeclass_not_ready", err);
    case LAUNCH_CREATE_ERROR:
    case LAUNCH_OTHER:
        conditions_set_unknown(life->conditions, CONDITION_LAUNCHED,
                               why->reason[0] ? str_of(why->reason) : REASON_LAUNCH_FAILED, words);
        /* Whatever is missing there, it is trouble, and people are told. */
        err->kind = ERR_UNAVAILABLE;
        return err_wrap(err, "launch");
    }
    KV_UNREACHABLE();
}

int lifecycle_launch(struct life *life, struct err *err)
{
    const struct cloud_provider *provider = life->c->provider;
    struct launch_failure why = { .kind = LAUNCH_OTHER };

    if (conditions_is_true(life->conditions, CONDITION_LAUNCHED))
        return 0;
    struct instance *instance = arena_new(&life->arena, struct instance);
    if (provider->create(provider->ctx, life->claim, &life->arena, instance, &why, err) < 0)
        return on_failure(life, &why, err);
    if (write_metadata(life, instance, err) < 0)
        return -1;
    life->maybe_launched = instance;
    conditions_set_true(life->conditions, CONDITION_LAUNCHED);
    log_info(life->c->log, "launched", LOG_STR("claim", life->object->meta.name),
             LOG_STR("provider-id", instance->provider_id),
             LOG_STR("instance-type", instance->instance_type), LOG_STR("zone", instance->zone),
             LOG_STR("capacity-type", instance->capacity_type));
    return 0;
}
