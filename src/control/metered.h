/* control/metered.h - a provider whose calls are timed and counted, by the controller that makes them.
 *
 *     karpenter_cloudprovider_duration_seconds{controller, method, provider}
 *     karpenter_cloudprovider_errors_total{controller, method, provider, error}
 *
 * "Not found" is an answer and not an error.
 */
#pragma once

#include "cloud/provider.h"
#include "control/control_metrics.h"

struct metered;
struct metered *metered_new(const struct cloud_provider *provider, const struct clock *clock,
                            const struct control_metrics *metrics); /* all outlive it */
void metered_free(struct metered *m);                               /* NULL is fine */
const struct cloud_provider *metered_provider(struct metered *m);

/* Whose calls those of this thread are, from now on. A literal; "" for nobody's. */
void metered_set_caller(const char *controller);
