/* A single failure below the threshold proves nothing, and neither does a success that is outnumbered:
 * a result only ever moves the condition its own way, a success to True and a failure to False. What
 * the window says besides is used when False is reconsidered.
 */
#include "control/health_policy.h"

bool health_policy_parse(struct str word, enum health_policy *out)
{
    if (str_eqz(word, "first-success"))
        *out = HEALTH_FIRST_SUCCESS;
    else if (str_eqz(word, "window"))
        *out = HEALTH_WINDOW;
    else
        return false;
    return true;
}

struct health_settings health_settings_sane(struct health_settings s)
{
    if (s.window < 1)
        s.window = 1;
    if (s.window > HEALTH_WINDOW_MAX)
        s.window = HEALTH_WINDOW_MAX;
    if (s.threshold < 1)
        s.threshold = 1;
    if (s.threshold > s.window)
        s.threshold = s.window;
    return s;
}

/* --- the window --- */

void health_window_expire(struct health_window *w)
{
    if (w->count == 0)
        return;
    w->count--;
    memmove(w->results, w->results + 1, w->count * sizeof w->results[0]);
}

void health_window_push(struct health_window *w, uint32_t size, bool success)
{
    KV_ASSERT(size >= 1);
    KV_ASSERT(size <= HEALTH_WINDOW_MAX);
    while (w->count >= size)
        health_window_expire(w);
    w->results[w->count++] = success;
}

enum condition_status health_window_status(const struct health_window *w, uint32_t threshold)
{
    uint32_t failures = 0;
    for (uint32_t i = 0; i < w->count; i++)
        failures += !w->results[i];
    if (failures >= threshold)
        return CONDITION_FALSE;
    return failures < w->count ? CONDITION_TRUE : CONDITION_UNKNOWN;
}

/* --- the condition --- */

struct health_state health_rehydrate(const struct health_settings *s, enum condition_status status)
{
    struct health_state state = { .status = status };
    if (s->policy != HEALTH_WINDOW || status == CONDITION_UNKNOWN)
        return state;
    uint32_t count = status == CONDITION_TRUE ? 1 : s->threshold;
    for (uint32_t i = 0; i < count; i++)
        health_window_push(&state.window, s->window, status == CONDITION_TRUE);
    return state;
}

void health_result(const struct health_settings *s, struct health_state *state, bool success)
{
    switch (s->policy) {
    case HEALTH_FIRST_SUCCESS:
        if (success)
            state->status = CONDITION_TRUE;
        else if (state->status != CONDITION_TRUE)
            state->status = CONDITION_FALSE;
        return;
    case HEALTH_WINDOW:
        health_window_push(&state->window, s->window, success);
        if (health_window_status(&state->window, s->threshold) ==
            (success ? CONDITION_TRUE : CONDITION_FALSE))
            state->status = success ? CONDITION_TRUE : CONDITION_FALSE;
        return;
    }
    KV_UNREACHABLE();
}

void health_age(const struct health_settings *s, struct health_state *state)
{
    health_window_expire(&state->window);
    if (s->policy == HEALTH_WINDOW && state->status == CONDITION_FALSE)
        state->status = health_window_status(&state->window, s->threshold);
}
