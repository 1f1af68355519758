/* node/prober_lookup.h - the address of a host by its name, without waiting for the resolver.
 *
 * Nearly every probe goes to the pod's own address; one that names a host is rare, and the system's
 * resolver blocks. So each such question gets a thread for as long as it takes.
 */
#pragma once

#include "base/err.h"

#include <sys/socket.h>

#define LOOKUPS_MAX 16 /* running at the same time, also those that nobody waits for any more */

struct lookup;
struct lookup *lookup_start(const char *host, struct err *err); /* NULL: ERR_UNAVAILABLE */
void lookup_free(struct lookup *lookup);    /* it may go on behind the scene; NULL is fine */
int lookup_fd(const struct lookup *lookup); /* readable once it has ended */

enum lookup_state { LOOKUP_RUNS, LOOKUP_FOUND, LOOKUP_FAILED };
enum lookup_state lookup_take(struct lookup *lookup, struct sockaddr_storage *out);
