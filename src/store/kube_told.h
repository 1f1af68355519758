/* store/kube_told.h - what was said already, so that it is said once. Thread safe. */
#pragma once

#include "base/map.h"

#include <pthread.h>

struct told {
    pthread_mutex_t lock; /* a leaf; guards: */
    struct str_table texts;
};

void told_init(struct told *told);
void told_done(struct told *told);
/* True the first time; true again at times if there is too much to remember. */
bool told_first(struct told *told, struct str text);
