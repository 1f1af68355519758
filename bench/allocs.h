/* bench/allocs.h - how often, and for how many bytes, the program asks for memory.
 *
 * Our own calls of malloc and its kin and of mmap; those that happen inside the C library are not
 * seen. The program is linked with the `--wrap` options of bench/meson.build.
 */
#pragma once

#include <stdint.h>

struct allocs {
    uint64_t count, bytes;
};

void allocs_begin(void);        /* from zero, all threads */
struct allocs allocs_end(void); /* since then */
