/* node/actions_testing.h - probes and actions, for tests, as words. */
#pragma once

#include "node/actions.h"

/* What a test's probes say: of one container id something else than of all others. Of a container
 * that has no such probe they say success, as the prober does. */
struct probe_words {
    const char *id; /* NULL: `probes` is of all */
    struct container_probes probes;
};

static inline struct container_probes probe_words_get(void *ctx, struct str id,
                                                      const struct node_container *spec)
{
    const struct probe_words *words = ctx;
    (void)spec;
    if (words && (!words->id || str_eqz(id, words->id)))
        return words->probes;
    return (struct container_probes){ PROBE_SUCCESS, PROBE_SUCCESS, PROBE_SUCCESS };
}

/* NULL: all is well. */
static inline struct probe_source probes_say(struct probe_words *maybe_words)
{
    return (struct probe_source){ probe_words_get, maybe_words };
}

static inline const char *kill_reason_word(uint8_t reason)
{
    static const char *const words[] = { [KILL_POD] = "pod",
                                         [KILL_CHANGED] = "changed",
                                         [KILL_LIVENESS] = "liveness",
                                         [KILL_STARTUP] = "startup",
                                         [KILL_UNKNOWN] = "unknown" };
    return words[reason];
}

static inline void actions_add_starts(struct buf *out, const char *word, struct start_list list)
{
    for (uint32_t i = 0; i < list.count; i++)
        buf_addf(out, ", %s %.*s", word, STR_ARG(list.items[i]->name));
}

/* "kill pod, make sandbox 1, init a, start app", "kill app-0 liveness, start app", "nothing". */
static inline struct str actions_words(struct arena *arena, const struct pod_actions *actions)
{
    AUTO_BUF out = { 0 };
    if (actions->kill_pod)
        buf_addz(&out, ", kill pod");
    if (actions->create_sandbox)
        buf_addf(&out, ", make sandbox %u", actions->attempt);
    for (uint32_t i = 0; i < actions->kill.count; i++)
        buf_addf(&out, ", kill %.*s %s", STR_ARG(actions->kill.items[i].id),
                 kill_reason_word(actions->kill.items[i].reason));
    actions_add_starts(&out, "ephemeral", actions->start_ephemerals);
    actions_add_starts(&out, "init", actions->start_inits);
    actions_add_starts(&out, "start", actions->start_containers);
    return out.len ? arena_str(arena, str_sub(buf_str(&out), 2, out.len)) : STR("nothing");
}
