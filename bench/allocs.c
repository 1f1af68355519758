/* The linker sends calls of malloc to __wrap_malloc, and knows the real one as __real_malloc. Those names
 * are its own, so they appear only as the names of symbols.
 */
#include "bench/allocs.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

static _Atomic bool counting;
static _Atomic uint64_t total_count, total_bytes;

static void count(size_t bytes)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&total_count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&total_bytes, bytes, memory_order_relaxed);
    }
}

void allocs_begin(void)
{
    atomic_store(&total_count, 0);
    atomic_store(&total_bytes, 0);
    atomic_store(&counting, true);
}

struct allocs allocs_end(void)
{
    atomic_store(&counting, false);
    return (struct allocs){ atomic_load(&total_count), atomic_load(&total_bytes) };
}

void *real_malloc(size_t bytes) __asm__("__real_malloc");
void *real_calloc(size_t n, size_t bytes) __asm__("__real_calloc");
void *real_realloc(void *p, size_t bytes) __asm__("__real_realloc");
void *real_aligned_alloc(size_t align, size_t bytes) __asm__("__real_aligned_alloc");
void *real_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                off_t offset) __asm__("__real_mmap");

void *counted_malloc(size_t bytes) __asm__("__wrap_malloc");
void *counted_calloc(size_t n, size_t bytes) __asm__("__wrap_calloc");
void *counted_realloc(void *p, size_t bytes) __asm__("__wrap_realloc");
void *counted_aligned_alloc(size_t align, size_t bytes) __asm__("__wrap_aligned_alloc");
void *counted_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                   off_t offset) __asm__("__wrap_mmap");

void *counted_malloc(size_t bytes)
{
    count(bytes);
    return real_malloc(bytes);
}

void *counted_calloc(size_t n, size_t bytes)
{
    count(n * bytes);
    return real_calloc(n, bytes);
}

void *counted_realloc(void *p, size_t bytes)
{
    count(bytes);
    return real_realloc(p, bytes);
}

void *counted_aligned_alloc(size_t align, size_t bytes)
{
    count(bytes);
    return real_aligned_alloc(align, bytes);
}

void *counted_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    count(bytes);
    return real_mmap(at, bytes, prot, flags, fd, offset);
}
