/* kube-kubelets [--kubeconfig PATH] [--renew SECONDS]: kubelets for the nodes that `karve controller
 * --provider kwok` makes, to try it on a cluster that has no machines and no kwok. Ends with SIGINT or
 * SIGTERM. */
#include "kube/kubelets.h"

#include "codec/duration.h"
#include "store/kube.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RENEW_S 10 /* as real kubelets */

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--kubeconfig PATH] [--renew SECONDS]\n", program);
    return 2;
}

static int complain(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    return 3;
}

int main(int argc, char **argv)
{
    static const struct option known[] = { { "kubeconfig", required_argument, NULL, 'k' },
                                           { "renew", required_argument, NULL, 'r' },
                                           { NULL, 0, NULL, 0 } };
    struct kubeconfig_options where = { .clock = clock_real() };
    int64_t renew_s = RENEW_S;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'k')
            where.path = optarg;
        else if (option != 'r' || !str_to_i64(str_of(optarg), &renew_s) || renew_s < 0)
            return usage(argv[0]);
    }
    if (optind < argc)
        return usage(argv[0]);

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);

    AUTO(log) log = log_new((struct log_options){
        .clock = clock_real(), .fd = STDERR_FILENO, .level = LOG_LEVEL_WARN });
    AUTO(kubeconfig) access = NULL;
    AUTO(kube) kube = NULL;
    struct object_pool *pool = object_pool_new();
    struct kubelets *kubelets = NULL;
    struct err err;
    int code = 0;
    where.log = log;
    if (kubeconfig_load(where, &access, &err) < 0 ||
        kube_new((struct kube_options){ .access = access,
                                        .pool = pool,
                                        .clock = clock_real(),
                                        .maybe_log = log,
                                        .user_agent = "karve-kubelets" },
                 &kube, &err) < 0 ||
        kubelets_start((struct kubelets_options){ .store = kube_store(kube),
                                                  .clock = clock_real(),
                                                  .renew_ns = renew_s * DURATION_SECOND },
                       &kubelets, &err) < 0)
        code = complain(argv[0], &err);
    else
        sigwaitinfo(&ends, NULL);

    if (kube)
        kube_cancel(kube);
    if (kubelets) {
        struct kubelets_counts did = kubelets_counts(kubelets);
        printf("%llu nodes got ready, %llu pods were started, %llu ended\n",
               (unsigned long long)did.nodes_ready, (unsigned long long)did.pods_started,
               (unsigned long long)did.pods_ended);
    }
    kubelets_stop(kubelets);
    kube_free(take(&kube));
    object_pool_free(pool);
    return code;
}
