/* cmd/kube_access.h - the flags by which commands find an API server. */
#pragma once

#include "cmd/command.h"
#include "store/kube.h"

#define KUBE_ACCESS_FLAGS                                                                          \
    { .name = "kubeconfig",                                                                        \
      .value = "PATH",                                                                             \
      .help = "how to reach the API server; else $KUBECONFIG, ~/.kube/config, or as a pod",        \
      .files = true },                                                                             \
    {                                                                                              \
        .name = "context", .value = "NAME", .help = "which of its contexts; else the current one"  \
    }

/* An enum exit_code; `err` says what is wrong. */
int kube_access_open(const struct invocation *inv, const struct clock *clock, struct log *maybe_log,
                     struct kubeconfig **out, struct err *err);
