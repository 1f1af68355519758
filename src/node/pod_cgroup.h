/* node/pod_cgroup.h - the pod's control group, which the runtime makes and nobody else removes. */
#pragma once

#include "base/err.h"

/* Remove an empty group ("/kubepods/burstable/pod<uid>") and what is below it, from every hierarchy
 * under `mount` ("/sys/fs/cgroup"). What is not there is fine. ERR_UNAVAILABLE: something still
 * runs in it. */
int pod_cgroup_remove(const char *mount, struct str group, struct err *err);
