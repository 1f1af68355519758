/* control/image_fits.h - which machines, nodes and claims can run the images of which pods, for a plan.
 *
 * The solver knows nothing of images: it is given, for each distinct demand of the pods it has to place, a
 * verdict per instance type, node and claim (sched/snapshot.h). Where nodes are concerned all that an image asks
 * for counts; where something is to be launched, artifacts count only if they may decide (compat/service.h).
 */
#pragma once

#include "base/bitset.h"
#include "compat/service.h"
#include "sched/snapshot.h"

struct image_fits; /* holds the demands that a snapshot's fits are of */

/* Fills snap->fits for the pods in `wanted` (over snap's pods; all else is in place). Everything is the arena's,
 * except what image_fits_done releases. A pod whose images are still being looked up fits nowhere for the
 * moment; `*maybe_pending` counts those. */
struct image_fits *image_fits_build(struct arena *arena, struct compat_service *service,
                                    const struct bitset *wanted, struct snapshot *snap,
                                    uint32_t *maybe_pending);
void image_fits_done(struct image_fits *maybe_fits);
