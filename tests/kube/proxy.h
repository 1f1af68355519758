/* tests/kube/proxy.h - a bad network between a program and a server: forwards TCP on loopback.
 *
 * What passes is not looked at, so TLS passes too. One thread; every function may be called from any
 * other.
 */
#pragma once

#include "base/kv.h"

#include <stdbool.h>
#include <stdint.h>

struct proxy_faults {
    bool refuse;         /* new connections are reset at once; those that are open live on */
    bool stall;          /* nothing passes, and nobody is told: as when a cable is pulled */
    int64_t delay_ns;    /* of everything that passes, in either direction */
    uint32_t cut_one_in; /* of so many portions that pass, one resets its connection; 0: none */
};

struct proxy;
struct proxy *proxy_start(uint16_t to_port, uint64_t seed); /* ends the test if it cannot */
void proxy_free(struct proxy *proxy);                       /* NULL is fine */

uint16_t proxy_port(const struct proxy *proxy);
void proxy_set(struct proxy *proxy, struct proxy_faults faults); /* from now on */
void proxy_cut(struct proxy *proxy); /* resets every connection; has happened on return */

uint32_t proxy_open_count(struct proxy *proxy);     /* connections now */
uint64_t proxy_accepted_count(struct proxy *proxy); /* and ever */
uint64_t proxy_passed_bytes(struct proxy *proxy);   /* ever, both ways */
