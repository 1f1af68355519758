/* The only file that knows PCRE2.
 *
 * PCRE2 understands far more than RE2, so a pattern is first read by a small scanner that lets only
 * the common language through: what is left means the same in both, with one exception that no
 * schema depends on (\s also takes a vertical tab).
 *
 * PCRE2 backtracks, so the work is bounded: a search takes REGEX_STEPS_MAX steps at most. The
 * library counts steps anew for every position it starts from; a pattern that is not tied to the
 * beginning of the text therefore gets its share of the steps per position.
 */
#include "codec/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdatomic.h>

#define REGEX_STEPS_MAX 2000000 /* about 50 ms */
#define REGEX_STEPS_MIN 64      /* per position, however long the text */
#define REGEX_HEAP_KIB 32768
#define REGEX_REPEAT_MAX 1000 /* RE2's limit */

struct regex {
    pcre2_code *code;
    bool anchored; /* matches at the beginning of the text or not at all */
};

/* --- what RE2 and PCRE2 have in common --- */

struct scanner {
    struct str pattern;
    size_t at;
};

/* The byte `ahead` of the current one, or NUL after the end. */
static char peek(const struct scanner *s, size_t ahead)
{
    return s->at + ahead < s->pattern.len ? s->pattern.p[s->at + ahead] : '\0';
}

static bool one_of(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_hex(char c)
{
    return char_is_digit(c) || one_of("abcdefABCDEF", c);
}

/* \xHH or \x{H...}: RE2 wants the digits, PCRE2 would do without. */
static const char *scan_hex(struct scanner *s)
{
    size_t digits = 0;
    bool braced = peek(s, 0) == '{';
    s->at += braced;
    for (; is_hex(peek(s, 0)) && (braced || digits < 2); s->at++)
        digits++;
    if (braced ? digits == 0 || peek(s, 0) != '}' : digits != 2)
        return "\\x takes two hexadecimal digits, or some in braces";
    s->at += braced;
    return NULL;
}

static const char *scan_escape(struct scanner *s, bool in_class)
{
    char c = peek(s, 1);
    if (c == '\0' || (unsigned char)c >= 0x80)
        return "a backslash needs a character to escape";
    s->at += 2;
    if (c == 'x')
        return scan_hex(s);
    if (char_is_digit(c))
        return "back-references and octal escapes are not supported";
    if (!char_is_alpha(c) || one_of("dDsSwWpPtnrfa", c) || (!in_class && one_of("bBAz", c)))
        return NULL;
    return "this escape is not supported";
}

/* [...], with a first ] and POSIX names ([:alpha:]) inside. */
static const char *scan_class(struct scanner *s)
{
    s->at++;
    s->at += peek(s, 0) == '^';
    s->at += peek(s, 0) == ']';
    while (s->at < s->pattern.len && peek(s, 0) != ']') {
        if (peek(s, 0) == '\\') {
            const char *problem = scan_escape(s, true);
            if (problem)
                return problem;
        } else if (peek(s, 0) == '[' && peek(s, 1) == ':') {
            s->at += 2;
            while (char_is_alpha(peek(s, 0)) || peek(s, 0) == '^')
                s->at++;
            if (peek(s, 0) != ':' || peek(s, 1) != ']')
                return "a class name looks like [:alpha:]";
            s->at += 2;
        } else {
            s->at++;
        }
    }
    if (s->at >= s->pattern.len)
        return "missing ]";
    s->at++;
    return NULL;
}

/* After "(": plain, (?:...), (?P<name>...), (?<name>...), (?flags), (?flags:...). */
static const char *scan_group(struct scanner *s)
{
    s->at++;
    if (peek(s, 0) == '*')
        return "verbs are not supported";
    if (peek(s, 0) != '?')
        return NULL;
    s->at++;
    size_t name = peek(s, 0) == 'P' ? 1 : 0;
    if (peek(s, name) == '<' && (char_is_alpha(peek(s, name + 1)) || peek(s, name + 1) == '_'))
        return NULL;
    while (one_of("imsU-", peek(s, 0)))
        s->at++;
    if (peek(s, 0) == ':' || peek(s, 0) == ')')
        return NULL;
    return "only (?:...), (?P<name>...) and the flags i, m, s and U are supported after (?";
}

/* {n}, {n,} or {n,m} at the current byte: its length, or 0 if it is something else. */
static size_t count_len(const struct scanner *s)
{
    size_t n = 1;
    while (char_is_digit(peek(s, n)))
        n++;
    if (n == 1)
        return 0;
    if (peek(s, n) == ',') {
        n++;
        while (char_is_digit(peek(s, n)))
            n++;
    }
    return peek(s, n) == '}' ? n + 1 : 0;
}

static bool counts_too_high(struct str count)
{
    int64_t n = 0;
    for (size_t i = 0; i < count.len; i++) {
        n = char_is_digit(count.p[i]) ? n * 10 + (count.p[i] - '0') : 0;
        if (n > REGEX_REPEAT_MAX)
            return true;
    }
    return false;
}

static bool at_repeat(const struct scanner *s)
{
    return one_of("*+?", peek(s, 0)) || (peek(s, 0) == '{' && count_len(s) > 0);
}

static const char *scan_repeat(struct scanner *s)
{
    size_t len = peek(s, 0) == '{' ? count_len(s) : 1;
    if (counts_too_high(str_sub(s->pattern, s->at, len)))
        return "a repeat count is at most 1000";
    s->at += len;
    s->at += peek(s, 0) == '?';
    return at_repeat(s) ? "possessive and repeated repeats are not supported" : NULL;
}

/* NULL, or what is not supported, with s->at close by. */
static const char *scan(struct scanner *s)
{
    while (s->at < s->pattern.len) {
        const char *problem = NULL;
        char c = peek(s, 0);
        if (c == '\0')
            return "zero bytes are not supported";
        if (c == '\\')
            problem = scan_escape(s, false);
        else if (c == '[')
            problem = scan_class(s);
        else if (c == '(')
            problem = scan_group(s);
        else if (at_repeat(s))
            problem = scan_repeat(s);
        else if (c == '{' && (char_is_digit(peek(s, 1)) || one_of(", ", peek(s, 1))))
            problem = "expected a repeat count such as {2} or {2,5}; write \\{ for a brace";
        else
            s->at++;
        if (problem)
            return problem;
    }
    return NULL;
}

/* --- compiling and matching --- */

int regex_compile(struct str pattern, struct regex **out, struct err *err)
{
    if (pattern.len > REGEX_PATTERN_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a regular expression is at most %d bytes long",
                       REGEX_PATTERN_BYTES_MAX);
    struct scanner s = { .pattern = pattern };
    const char *problem = scan(&s);
    if (problem)
        return err_set(err, ERR_INVALID, "regular expression, near offset %zu: %s", s.at, problem);

    /* Groups need not capture: callers only ask whether there is a match. */
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    KV_ASSERT(context != NULL);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int code = 0;
    size_t offset = 0;
    const char *text = pattern.p ? pattern.p : "";
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)text, pattern.len, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        PCRE2_UCHAR message[128];
        pcre2_get_error_message(code, message, sizeof message);
        return err_set(err, ERR_INVALID, "regular expression, near offset %zu: %s", offset,
                       (const char *)message);
    }

    uint32_t effective = 0;
    pcre2_pattern_info(compiled, PCRE2_INFO_ALLOPTIONS, &effective);
    *out = kv_malloc(sizeof **out);
    **out = (struct regex){ compiled, (effective & PCRE2_ANCHORED) != 0 };
    return 0;
}

void regex_free(struct regex *re)
{
    if (!re)
        return;
    pcre2_code_free(re->code);
    free(re);
}

int regex_search(const struct regex *re, struct str s)
{
    return regex_search_within(re, s, REGEX_STEPS_MAX);
}

int regex_search_within(const struct regex *re, struct str s, uint32_t steps_max)
{
    size_t total = steps_max < REGEX_STEPS_MAX ? steps_max : REGEX_STEPS_MAX;
    size_t steps = re->anchored ? total : total / (s.len + 1);
    if (steps < REGEX_STEPS_MIN)
        steps = REGEX_STEPS_MIN;
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    KV_ASSERT(context != NULL);
    KV_ASSERT(data != NULL);
    pcre2_set_match_limit(context, (uint32_t)steps);
    pcre2_set_heap_limit(context, REGEX_HEAP_KIB);

    PCRE2_SPTR text = (PCRE2_SPTR)(s.p ? s.p : "");
    int rc = pcre2_match(re->code, text, s.len, 0, 0, data, context);
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT)
        return -1;
    KV_ASSERT(rc != PCRE2_ERROR_NOMEMORY);
    return rc >= 0; /* else no match, or not UTF-8 */
}

/* --- patterns of our own tables --- */

/* A table that only grows: a slot goes from NULL to an entry once, and then both stay. */
#define STATIC_SLOTS 512

struct static_regex {
    const char *pattern;
    struct regex *re;
};

static _Atomic(const struct static_regex *) static_slots[STATIC_SLOTS];

static const struct static_regex *static_new(const char *pattern)
{
    struct static_regex *entry = kv_malloc(sizeof *entry);
    struct err err;
    entry->pattern = pattern;
    if (regex_compile(str_of(pattern), &entry->re, &err) < 0)
        kv_assert_failed(pattern, __FILE__, __LINE__);
    return entry;
}

static void static_free(const struct static_regex *entry)
{
    regex_free(entry->re);
    free((void *)entry);
}

/* Threads that meet on a new pattern may both compile it; the first to store it wins. */
static const struct regex *static_find(const char *pattern)
{
    size_t slot = (size_t)(kv_hash(pattern, strlen(pattern)) % STATIC_SLOTS);
    for (size_t tries = 0; tries < STATIC_SLOTS; tries++) {
        const struct static_regex *entry =
            atomic_load_explicit(&static_slots[slot], memory_order_acquire);
        if (!entry) {
            const struct static_regex *fresh = static_new(pattern);
            if (atomic_compare_exchange_strong(&static_slots[slot], &entry, fresh))
                return fresh->re;
            static_free(fresh);
        }
        if (strcmp(entry->pattern, pattern) == 0)
            return entry->re;
        slot = (slot + 1) % STATIC_SLOTS;
    }
    kv_assert_failed("more static patterns than STATIC_SLOTS", __FILE__, __LINE__);
}

bool regex_match_static(const char *pattern, struct str s)
{
    return regex_search(static_find(pattern), s) == 1;
}
