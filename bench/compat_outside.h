/* bench/compat_outside.h - what image compatibility costs with real servers: an API server and a registry.
 *
 * Each runs as a process of its own, since where the server cannot be started the process ends with a line that
 * says so.
 */
#pragma once

#include <stdint.h>

/* So many lookups of an image with two groups, each a GET per group: "gets us= p99_us= cpu_us=". */
void outside_gets(uint32_t lookups);
/* So many images, each asked for by a client that knows nothing and again by one that knows it: lines of their
 * own. */
void outside_cold(uint32_t images);
