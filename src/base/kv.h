/* base/kv.h - the handful of macros and allocation helpers that every room uses.
 *
 * Allocation never returns NULL: real memory exhaustion ends the process, because the store holds
 * the truth and a restart is cheap. Sizes that come from outside meet a named limit before they
 * get here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define KV_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))
#define KV_PRINTF(fmt_ix, args_ix) __attribute__((format(printf, fmt_ix, args_ix)))
#define KV_MALLOC __attribute__((malloc, returns_nonnull, warn_unused_result))
#define KV_USED __attribute__((warn_unused_result))
#define KV_UNUSED __attribute__((unused))
#define KV_NORETURN __attribute__((noreturn))

#define KV_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define KV_LIKELY(x) __builtin_expect(!!(x), 1)
#define KV_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Our own mistakes. On in release builds: one condition per assert, so a failure names it. */
#define KV_ASSERT(cond) (KV_LIKELY(cond) ? (void)0 : kv_assert_failed(#cond, __FILE__, __LINE__))
#define KV_UNREACHABLE() kv_assert_failed("unreachable", __FILE__, __LINE__)

KV_NORETURN void kv_assert_failed(const char *cond, const char *file, int line);

/* Locals that own something: start empty, released at the end of the scope, handed over with
 * `take`. A type that is used with AUTO has a `void TYPE_cleanup(struct TYPE **)`, which
 * KV_AUTO_TYPE writes. */
#define AUTO(type) __attribute__((cleanup(type##_cleanup))) struct type *
#define AUTO_FREE __attribute__((cleanup(kv_free_cleanup)))
#define take(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(*(p)) take_value_ = *(p);                                                       \
        *(p) = NULL;                                                                               \
        take_value_;                                                                               \
    })
#define KV_AUTO_TYPE(type, free_fn)                                                                \
    static inline void type##_cleanup(struct type **p)                                             \
    {                                                                                              \
        if (*p)                                                                                    \
            free_fn(*p);                                                                           \
    }

static inline void kv_free_cleanup(void *p)
{
    void *owned; /* copied out: `p` points at a char * or whatever, which is no void * */
    __builtin_memcpy(&owned, p, sizeof owned);
    free(owned);
}

/* The four that cannot fail. `kv_calloc` zeroes. `kv_realloc` refuses count * size overflow. */
KV_MALLOC void *kv_malloc(size_t bytes);
KV_MALLOC void *kv_calloc(size_t count, size_t size);
__attribute__((returns_nonnull, warn_unused_result)) void *kv_realloc(void *p, size_t count,
                                                                      size_t size);
KV_MALLOC char *kv_strdup(const char *s);

/* A 64-bit hash of bytes: fast, well mixed, the same on every machine and in every run. Not for
 * hostile input that must not collide: that takes a salt which nobody can guess, as str_table
 * does when it has to. Salt 0 is kv_hash. */
uint64_t kv_hash(const void *p, size_t len);
uint64_t kv_hash_salted(const void *p, size_t len, uint64_t salt);

static inline uint64_t kv_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}
