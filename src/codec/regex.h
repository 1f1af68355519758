/* codec/regex.h - regular expressions of the RE2 kind, the ones that Kubernetes schemas use.
 *
 * PCRE2 underneath, with everything RE2 does not have refused (back-references, look-around,
 * atomic and possessive groups, recursion) and match steps bounded, so that a pattern from a
 * manifest cannot hang us. Matching is an unanchored search.
 */
#pragma once

#include "base/err.h"

#define REGEX_PATTERN_BYTES_MAX 4096

struct regex;

int regex_compile(struct str pattern, struct regex **out, struct err *err);
void regex_free(struct regex *re); /* NULL is fine */
KV_AUTO_TYPE(regex, regex_free)
/* 1 matches, 0 does not, -1 the step limit was reached (counts as "does not" for callers that
 * cannot report). Invalid UTF-8 matches nothing. Safe to call from many threads with one regex. */
int regex_search(const struct regex *re, struct str s);
/* The same within at most this many steps, if that is less: for callers who run many searches. */
int regex_search_within(const struct regex *re, struct str s, uint32_t steps_max);

/* A compiled pattern of a static table: compiled at first use, kept for ever. `pattern` must be a
 * literal that compiles; a table with a broken pattern is our mistake and asserts. */
bool regex_match_static(const char *pattern, struct str s);
