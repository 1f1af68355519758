#include "support/test.h"

#include "base/vec.h"

#include <stdio.h>

static VEC(struct CMUnitTest) tests;

/* cmocka 1.1.5 reports a skipped test as "not ok", so skipping is ours: back out to here, and leave
 * a comment that scripts/test.sh counts. */
static jmp_buf skip_to;

static void run_or_skip(void **state)
{
    void (*fn)(void **);
    memcpy(&fn, *state, sizeof fn);
    if (setjmp(skip_to) == 0)
        fn(state);
}

void test_register(const char *name, void (*fn)(void **))
{
    void *copy = kv_malloc(sizeof fn);
    memcpy(copy, &fn, sizeof fn);
    vec_push(&tests,
             (struct CMUnitTest){ .name = name, .test_func = run_or_skip, .initial_state = copy });
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
    if (ci && strcmp(ci, "true") == 0) {
        print_error("a test was skipped in CI: %s\n", reason);
        _fail(file, line);
    }
    printf("# SKIP %s\n", reason);
    longjmp(skip_to, 1);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i]))
            return true;
    }
    return argc < 2;
}

static void tests_done(void)
{
    vec_each(&tests, struct CMUnitTest, t) {
        free(t->initial_state);
    }
    vec_done(&tests);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        vec_each(&tests, struct CMUnitTest, t)
            puts(t->name);
        tests_done();
        return 0;
    }
    VEC(struct CMUnitTest) chosen = { 0 };
    vec_each(&tests, struct CMUnitTest, t) {
        if (wanted(t->name, argc, argv))
            vec_push(&chosen, *t);
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed =
        chosen.count ? _cmocka_run_group_tests("karve", chosen.items, chosen.count, NULL, NULL) : 0;
    vec_done(&chosen);
    tests_done();
    return failed ? 1 : 0;
}
