/* api/workloads_inner.h - what workloads.c and workloads_job.c share; for these two only. */
#pragma once

#include "api/workloads.h"

/* The selector finds the pods of the template. */
void check_selector(const struct workload *w, const json_val *root, struct report *report);

/* workload_of, for jobs and cron jobs. */
bool job_workload(const struct object *object, struct workload *out);
