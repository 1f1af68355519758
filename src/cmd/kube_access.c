#include "cmd/kube_access.h"

int kube_access_open(const struct invocation *inv, const struct clock *clock, struct log *maybe_log,
                     struct kubeconfig **out, struct err *err)
{
    struct kubeconfig_options options = { .path = flag_value(inv, "kubeconfig"),
                                          .context = flag_value(inv, "context"),
                                          .clock = clock,
                                          .log = maybe_log };
    if (kubeconfig_load(options, out, err) == 0)
        return EXIT_DONE;
    return EXIT_ENVIRONMENT;
}
