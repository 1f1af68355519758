#include "base/kv.h"

#include <stdio.h>
#include <string.h>

void kv_assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "karve: broken invariant at %s:%d: %s\n", file, line, cond);
    abort();
}

static KV_NORETURN void out_of_memory(size_t bytes)
{
    fprintf(stderr, "karve: out of memory asking for %zu bytes\n", bytes);
    abort();
}

void *kv_malloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        out_of_memory(bytes);
    return p;
}

void *kv_calloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (!p) {
        size_t bytes;
        out_of_memory(__builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
    }
    return p;
}

void *kv_realloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory(SIZE_MAX);
    void *q = realloc(p, bytes ? bytes : 1);
    if (!q)
        out_of_memory(bytes);
    return q;
}

char *kv_strdup(const char *s)
{
    size_t len = strlen(s) + 1;
    return memcpy(kv_malloc(len), s, len);
}

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The bytes of less than a word, the first in the lowest place. Two loads that overlap are several
 * times as fast as a copy whose length is known only at run time, and most keys are short. */
static uint64_t load_tail(const unsigned char *p, size_t len)
{
    if (len >= 4) {
        uint32_t low, high;
        memcpy(&low, p, sizeof low);
        memcpy(&high, p + len - sizeof high, sizeof high);
        return low | (uint64_t)high << (8 * (len - sizeof high));
    }
    if (len == 0)
        return 0;
    return p[0] | (uint64_t)p[len / 2] << (8 * (len / 2)) | (uint64_t)p[len - 1] << (8 * (len - 1));
}

static uint64_t mum(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply-and-fold over 16 bytes at a time. The constants are odd and dense in bits; nothing
 * outside this process depends on the result. The salt goes into the factor that a key's author
 * could otherwise make zero. */
static inline uint64_t hash(const void *p, size_t len, uint64_t salt)
{
    const unsigned char *s = p;
    uint64_t h = 0x9e3779b97f4a7c15ULL ^ (uint64_t)len ^ kv_mix64(salt);
    size_t left = len;

    while (left >= 16) {
        h = mum(load64(s) ^ salt ^ 0xa0761d6478bd642fULL, load64(s + 8) ^ h);
        s += 16;
        left -= 16;
    }
    if (left >= 8) {
        h = mum(load64(s) ^ salt ^ 0xe7037ed1a0b428dbULL, load_tail(s + 8, left - 8) ^ h);
    } else if (left > 0) {
        h = mum(load_tail(s, left) ^ salt ^ 0xe7037ed1a0b428dbULL, h ^ 0x8ebc6af09c88c6e3ULL);
    }
    return kv_mix64(h);
}

uint64_t kv_hash_salted(const void *p, size_t len, uint64_t salt)
{
    return hash(p, len, salt);
}

uint64_t kv_hash(const void *p, size_t len)
{
    return hash(p, len, 0); /* which leaves nothing of the salt's arithmetic */
}
