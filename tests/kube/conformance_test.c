/* The store port on a real API server does what every store does (store/conformance_tests.h). Beside it
 * run those controllers that the tests count on: for garbage, budgets and namespaces. The others, which
 * taint and mark nodes, and the scheduler, would write between the lines of the tests. */
#include "kube/fixture.h"
#include "store/conformance_tests.h"

#include <poll.h>

static const char *const options[] = {
    "--no-scheduler",
    "--apiserver=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", /* as sent */
    "--controller-manager=--controllers=disruption-controller,garbage-collector-controller,"
    "namespace-controller,serviceaccount-controller",
    NULL,
};

static struct plane_access access_;
static int64_t patience_until;

/* The last plane_access is used by all tests of the program, as a program of ours would. */
static void close_access(void)
{
    plane_close(&access_);
}

void conformance_open(struct conformance *c)
{
    struct plane *p = plane_with(options);
    if (!access_.kube) {
        plane_crds(p);
        access_ = plane_open(p, plane_path(p, "admin.kubeconfig"), (struct kube_options){ 0 });
        atexit(close_access); /* before that of the fixture, which owns what it uses */
    }
    patience_until = plane_deadline(PLANE_LIMIT_S);
    c->store = access_.store;
}

void conformance_close(struct conformance *c KV_UNUSED)
{
}

bool conformance_wait(struct conformance *c KV_UNUSED)
{
    poll(NULL, 0, 20);
    return clock_mono_ns(clock_real()) < patience_until;
}
