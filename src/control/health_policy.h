/* control/health_policy.h - do the nodes of a NodePool really join? Two ways to judge it.
 *
 * first-success: False on a failure unless it is already True; True on a success, and then for good.
 * window: the last results, oldest first; enough failures among them are False, else a success among
 * them is True, else nothing is known.
 *
 * Both start as Unknown, and start anew when the NodePool or its node class changes. Pure: the
 * condition and its writers are in control/health.h.
 */
#pragma once

#include "api/common.h"

enum health_policy { HEALTH_FIRST_SUCCESS, HEALTH_WINDOW };

#define HEALTH_WINDOW_MAX 64
struct health_settings {
    enum health_policy policy;
    uint32_t window;    /* results that are remembered */
    uint32_t threshold; /* so many failures among them are False */
};
#define HEALTH_SETTINGS_DEFAULT                                                                    \
    ((struct health_settings){ .policy = HEALTH_FIRST_SUCCESS, .window = 10, .threshold = 2 })

/* "first-success", "window"; false for any other word. */
bool health_policy_parse(struct str word, enum health_policy *out);
/* The nearest settings that make sense: 1 to HEALTH_WINDOW_MAX results, a threshold within them. */
struct health_settings health_settings_sane(struct health_settings settings);

struct health_window { /* first in, first out; true is a success */
    bool results[HEALTH_WINDOW_MAX];
    uint32_t count;
};

void health_window_push(struct health_window *w, uint32_t size, bool success);
void health_window_expire(struct health_window *w); /* the oldest, if there is one */
enum condition_status health_window_status(const struct health_window *w, uint32_t threshold);

struct health_state {
    enum condition_status status; /* True, False or Unknown */
    struct health_window window;  /* of the window policy; else empty */
};

/* What is known after a restart: the condition as it was, and results that would give it. */
struct health_state health_rehydrate(const struct health_settings *s, enum condition_status status);
/* A node has registered, or was not launched or did not register in time. */
void health_result(const struct health_settings *s, struct health_state *state, bool success);
/* There was no result for a long time (two registration timeouts): forget the oldest. Only False may
 * become something else by that. */
void health_age(const struct health_settings *s, struct health_state *state);
