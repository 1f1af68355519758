#include "support/test.h"

#include "base/vec.h"

#include <stdio.h>

static VEC(struct CMUnitTest) tests;

void test_register(const char *name, void (*fn)(void **))
{
    vec_push(&tests, (struct CMUnitTest){ .name = name, .test_func = fn });
}

void test_expect_eq(int64_t got, int64_t want, const char *what, const char *file, int line)
{
    if (got == want)
        return;
    print_error("%s is %lld, expected %lld\n", what, (long long)got, (long long)want);
    _fail(file, line);
}

void test_expect_str(struct str got, struct str want, const char *what, const char *file, int line)
{
    if (str_eq(got, want) && (got.p != NULL) == (want.p != NULL))
        return;
    print_error("%s is %s%.*s%s\n  expected %s%.*s%s\n", what, got.p ? "\"" : "", STR_ARG(got),
                got.p ? "\"" : "(absent)", want.p ? "\"" : "", STR_ARG(want),
                want.p ? "\"" : "(absent)");
    _fail(file, line);
}

void test_expect_has(struct str got, struct str want, const char *what, const char *file, int line)
{
    if (got.p && memmem(got.p, got.len, want.p, want.len))
        return;
    print_error("%s is \"%.*s\"\n  expected it to contain \"%.*s\"\n", what, STR_ARG(got),
                STR_ARG(want));
    _fail(file, line);
}

void test_expect_ok(int rc, const struct err *err, const char *what, const char *file, int line)
{
    if (rc >= 0)
        return;
    print_error("%s failed: %s (%s)\n", what, err->text, err_kind_name(err->kind));
    _fail(file, line);
}

void test_expect_err(int rc, const struct err *err, enum err_kind want, const char *what,
                     const char *file, int line)
{
    if (rc < 0 && err->kind == want)
        return;
    if (rc >= 0)
        print_error("%s succeeded, expected %s\n", what, err_kind_name(want));
    else
        print_error("%s failed as %s (%s), expected %s\n", what, err_kind_name(err->kind),
                    err->text, err_kind_name(want));
    _fail(file, line);
}

void test_skip(const char *reason, const char *file, int line)
{
    const char *ci = getenv("CI");
    print_message("skipped: %s\n", reason);
    if (ci && strcmp(ci, "true") == 0) {
        print_error("a test was skipped in CI: %s\n", reason);
        _fail(file, line);
    }
    _skip(file, line);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i]))
            return true;
    }
    return argc < 2;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        vec_each(&tests, struct CMUnitTest, t)
            puts(t->name);
        vec_done(&tests);
        return 0;
    }
    size_t kept = 0;
    for (size_t i = 0; i < tests.count; i++) {
        if (wanted(tests.items[i].name, argc, argv))
            tests.items[kept++] = tests.items[i];
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = kept ? _cmocka_run_group_tests("karve", tests.items, kept, NULL, NULL) : 0;
    vec_done(&tests);
    return failed ? 1 : 0;
}
