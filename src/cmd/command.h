/* cmd/command.h - one table of commands and flags.
 *
 * Parsing, --help, the man page, shell completions and environment variables all come from it: a flag
 * `--log-level` may also be given as KARVE_LOG_LEVEL, and the command line wins.
 *
 * Exit codes are a contract (EXIT_*): scripts rely on them.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

#include <stdio.h>

enum exit_code {
    EXIT_DONE = 0,
    EXIT_NO = 1, /* the answer is "no": invalid manifests, unschedulable pods */
    EXIT_USAGE = 2,
    EXIT_ENVIRONMENT = 3, /* no such file, no cluster, no socket */
};

struct flag {
    const char *name;           /* without the dashes */
    const char *value;          /* "PATH"; NULL: a switch */
    const char *help;           /* one line; the man page ends it with a full stop */
    const char *dflt;           /* shown, and what flag_value gives when it was not set */
    const char *const *choices; /* NULL-terminated; NULL: anything */
    char letter;                /* 0: none */
    bool many;                  /* may be repeated */
    bool files;                 /* completes file names */
    /* Karpenter has it too: its variable, without KARVE_, is read when ours is not set. */
    bool karpenter_env;
};

struct invocation;

struct command {
    const char *name;
    const char *summary;  /* one line, lower case, no full stop */
    const char *args;     /* "" or what follows the flags, for the usage line */
    const char *about;    /* paragraphs for --help and the man page */
    const char *examples; /* lines "  karve ...\n      what it does\n" */
    const struct flag *flags;
    size_t flag_count;
    int (*run)(const struct invocation *inv); /* an enum exit_code */
};

extern const struct command *const commands[]; /* in the order of the help text */
extern const size_t command_count;
extern const struct flag common_flags[]; /* every command has them */
extern const size_t common_flag_count;

struct flag_setting {
    const struct flag *flag;
    const char *value; /* NULL for a switch */
};

struct invocation {
    const struct command *command;
    VEC(struct flag_setting) settings;
    VEC(const char *) args;
    VEC(char *) owned; /* texts split from the environment */
};

/* Parse argv[1..] of `command`, then the environment for what argv did not say. */
int invocation_parse(struct invocation *inv, const struct command *command, int argc, char **argv,
                     struct err *err);
void invocation_done(struct invocation *inv);

bool flag_given(const struct invocation *inv, const char *name);
const char *flag_value(const struct invocation *inv,
                       const char *name); /* the default if not given; may be NULL */
size_t flag_values(const struct invocation *inv, const char *name, const char **out, size_t max);

const struct command *command_find(struct str name);
/* "unknown command 'valdate'; did you mean 'validate'?" */
int command_unknown(struct str name, struct err *err);

/* cmd/manual.c: texts generated from the table. */
void manual_overview(struct buf *out, bool colour);
void manual_help(const struct command *command, struct buf *out, bool colour);
void manual_page(struct buf *out);
int manual_completion(const char *shell, struct buf *out, struct err *err);

/* Write all of it to standard output: the given code then, or EXIT_ENVIRONMENT if it cannot be
 * written, which is said on stderr. */
int print_out(const struct buf *out, const char *command, int code);
/* "karve NAME: ..." on stderr; gives the code back. */
int print_complaint(const char *name, int code, const char *fmt, ...) KV_PRINTF(3, 4);

/* Is stdout a terminal that wants colour? --color and NO_COLOR decide. */
bool colour_wanted(const struct invocation *inv, FILE *stream);
