/* tests/support/test.h - a test is a sentence about behaviour; cmocka runs it.
 *
 *     TEST(quantity_parses_binary_suffixes)
 *     {
 *         EXPECT_EQ(quantity_units(q("2Gi")), 2147483648);
 *     }
 *
 * Tests register themselves; every test program links support/test_main.c. `program NAME...` runs
 * only the tests whose names contain one of the words, `program --list` lists them.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

/* Of a long random test: fewer rounds where a sanitizer makes each slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_ROUNDS(n) ((n) / 6)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_ROUNDS(n) ((n) / 6)
#endif
#endif
#ifndef TEST_ROUNDS
#define TEST_ROUNDS(n) (n)
#endif

void test_register(const char *name, void (*fn)(void **));

#define TEST(name)                                                                                 \
    static void name(void **state KV_UNUSED);                                                      \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        test_register(#name, name);                                                                \
    }                                                                                              \
    static void name(void **state KV_UNUSED)

#ifdef __clang_analyzer__ /* does not know that a failure ends the test */
#define EXPECT_TRUE(cond) ((cond) ? (void)0 : __builtin_trap())
#define EXPECT_FALSE(cond) EXPECT_TRUE(!(cond))
#else
#define EXPECT_TRUE(cond) _assert_true((uintptr_t)(cond), #cond, __FILE__, __LINE__)
#define EXPECT_FALSE(cond) _assert_true((uintptr_t) !(cond), "!(" #cond ")", __FILE__, __LINE__)
#endif
#define EXPECT_EQ(got, want)                                                                       \
    test_expect_eq((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define EXPECT_STR(got, want) test_expect_str((got), str_of(want), #got, __FILE__, __LINE__)
#define EXPECT_Z(got, want) test_expect_str(str_of(got), str_of(want), #got, __FILE__, __LINE__)
/* The text contains the words. */
#define EXPECT_HAS(got, want) test_expect_has((got), str_of(want), #got, __FILE__, __LINE__)
/* A call that takes `&err` last and must succeed, or fail with that kind. */
#define EXPECT_OK(call, err) test_expect_ok((call), &(err), #call, __FILE__, __LINE__)
#define EXPECT_ERR(call, err, kind_)                                                               \
    test_expect_err((call), &(err), (kind_), #call, __FILE__, __LINE__)
/* The machine lacks what the test needs: say what. Never in CI (CI=true): there it fails. */
#define SKIP(reason) test_skip(reason, __FILE__, __LINE__)

void test_expect_eq(int64_t got, int64_t want, const char *what, const char *file, int line);
void test_expect_str(struct str got, struct str want, const char *what, const char *file, int line);
void test_expect_has(struct str got, struct str want, const char *what, const char *file, int line);
void test_expect_ok(int rc, const struct err *err, const char *what, const char *file, int line);
void test_expect_err(int rc, const struct err *err, enum err_kind want, const char *what,
                     const char *file, int line);
void test_skip(const char *reason, const char *file, int line);
