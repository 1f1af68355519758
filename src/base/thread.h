/* base/thread.h - threads as karve starts them: named, with a small stack, deaf to signals. */
#pragma once

#include "base/err.h"

#include <pthread.h>

#define THREAD_STACK_BYTES ((size_t)256 << 10) /* only what is touched costs memory */

/* `name` is cut at 15 bytes; ps and gdb show it. Signals are for the thread that started the program.
 * ERR_UNAVAILABLE: the system has no more threads to give. */
int thread_start(pthread_t *out, const char *name, void *(*main)(void *arg), void *arg,
                 struct err *err);
