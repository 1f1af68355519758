/* Every reconciler, in the order in which a simulation without an order of its own asks them: what
 * frees or corrects something comes before what is decided by it.
 */
#include "control/controllers.h"

const struct controller *const controllers[] = {
    &nodeoverlay_status,
    &nodepool_validation,
    &nodepool_readiness,
    &nodepool_launchable,
    &nodepool_hash_controller,
    &nodepool_counter,
    &nodepool_registration_health,
    &eviction_queue,
    &node_termination,
    &node_health,
    &nodeclaim_lifecycle,
    &nodeclaim_hydration,
    &node_hydration,
    &nodeclaim_expiration,
    &nodeclaim_consistency,
    &nodeclaim_pod_events,
    &nodeclaim_disruption,
    &nodeclaim_garbage_collection,
    &provisioner_controller,
};
const uint32_t controller_count = KV_COUNT_OF(controllers);
