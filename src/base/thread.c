#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

int thread_start(pthread_t *out, const char *name, void *(*main)(void *arg), void *arg,
                 struct err *err)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t stack_bytes = THREAD_STACK_BYTES;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    stack_bytes *= 8; /* instrumented frames are larger */
#endif
    pthread_attr_setstacksize(&attributes, stack_bytes);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    int status = pthread_create(out, &attributes, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (status != 0)
        return err_set(err, ERR_UNAVAILABLE, "thread %s: %s", name, strerror(status));

    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(*out, short_name);
    return 0;
}
