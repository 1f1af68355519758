/* node/api_status_inner.h - the statuses of a pod's containers between the runtime's form and the API's.
 *
 * api_containers.c makes them, api_phase.c draws conclusions, api_status.c writes the whole.
 */
#pragma once

#include "node/api_status.h"

struct state_view {
    uint8_t kind; /* enum container_state; STATE_UNSET: none */
    struct str reason, message;
    int64_t started_us, finished_us; /* 0: unknown */
    /* of a terminated one */
    int64_t exit_code, signal;
    struct str container_id; /* with the runtime's prefix */
};

struct container_view {
    const struct node_container *spec;
    struct state_view state, last; /* `last` is unset or terminated */
    bool ready, started;
    int64_t restart_count;
    struct str image, image_id, container_id;
};

struct container_views {
    struct container_view *items;
    uint32_t count;
};

struct status_views {
    bool initialized;                              /* pod_has_initialized */
    struct container_views inits;                  /* in the order of the spec */
    struct container_views containers, ephemerals; /* sorted by name */
};

/* --- api_containers.c --- */

struct status_views api_container_views(struct arena *arena, const struct api_status_input *input);
json_mut *api_containers_json(struct json_build *b, const struct container_views *views);
/* {"terminated": ...} of a container whose end nobody saw. */
json_mut *api_lost_state_json(struct json_build *b);
/* Of a member of a status list. */
struct state_view api_state_read(const json_val *state);
/* The container of that name in a list of statuses; NULL: none. */
const json_val *api_container_find(const json_val *list, struct str name);

/* "2027-01-15T08:00:00Z", or null for 0. */
json_mut *api_time_json(struct json_build *b, int64_t us);

/* --- api_phase.c --- */

enum pod_phase api_phase(const struct node_pod *pod, const struct status_views *views,
                         bool terminal);
const char *api_phase_name(enum pod_phase phase);

struct conditions_input {
    const struct node_pod *pod;
    const struct runtime_status *status;
    const struct status_views *views;
    const json_val *maybe_previous; /* the whole status */
    enum pod_phase phase;
    int64_t now_us;
};
json_mut *api_conditions_json(struct json_build *b, struct arena *arena,
                              const struct conditions_input *input);
bool api_condition_is_ours(struct str type);
const json_val *api_condition_find(const json_val *status, struct str type); /* NULL: none */
