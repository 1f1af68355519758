/* Parsing of flags. The rules are the usual ones: --name value, --name=value, -n value, -nvalue,
 * switches joined (-ab), `--` ends flags, and flags may follow arguments. */
#include "cmd/command.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct flag *find_in(const struct flag *flags, size_t count, struct str name,
                                  char letter)
{
    for (size_t i = 0; i < count; i++) {
        if (letter ? flags[i].letter == letter : str_eqz(name, flags[i].name))
            return &flags[i];
    }
    return NULL;
}

static const struct flag *find_flag(const struct command *command, struct str name, char letter)
{
    const struct flag *flag = find_in(command->flags, command->flag_count, name, letter);
    return flag ? flag : find_in(common_flags, common_flag_count, name, letter);
}

static const struct flag *nearest_flag(const struct command *command, struct str name)
{
    const struct flag *best = NULL;
    size_t best_distance = 3;
    for (size_t i = 0; i < command->flag_count + common_flag_count; i++) {
        const struct flag *flag =
            i < command->flag_count ? &command->flags[i] : &common_flags[i - command->flag_count];
        size_t distance = str_distance(name, str_of(flag->name), 2);
        if (distance < best_distance) {
            best = flag;
            best_distance = distance;
        }
    }
    return best;
}

static bool is_choice(const struct flag *flag, const char *value)
{
    if (!flag->choices)
        return true;
    for (size_t i = 0; flag->choices[i]; i++) {
        if (strcmp(flag->choices[i], value) == 0)
            return true;
    }
    return false;
}

static int add_setting(struct invocation *inv, const struct flag *flag, const char *value,
                       const char *said_as, struct err *err)
{
    if (value && !is_choice(flag, value)) {
        AUTO_BUF list = { 0 };
        for (size_t i = 0; flag->choices[i]; i++)
            buf_addf(&list, "%s%s", i ? ", " : "", flag->choices[i]);
        return err_set(err, ERR_INVALID, "%s: '%s' is not one of %s", said_as, value, list.p);
    }
    if (!flag->many) {
        vec_each(&inv->settings, struct flag_setting, s) {
            if (s->flag == flag) {
                s->value = value;
                return 0;
            }
        }
    }
    vec_push(&inv->settings, (struct flag_setting){ flag, value });
    return 0;
}

static int parse_long(struct invocation *inv, const char *arg, int *at, int argc, char **argv,
                      struct err *err)
{
    struct str name, value;
    bool joined = str_cut(str_of(arg + 2), '=', &name, &value);
    const struct flag *flag = find_flag(inv->command, name, 0);
    if (!flag) {
        const struct flag *near = nearest_flag(inv->command, name);
        if (near)
            return err_set(err, ERR_INVALID, "unknown flag --%.*s; did you mean --%s?",
                           STR_ARG(name), near->name);
        return err_set(err, ERR_INVALID, "unknown flag --%.*s", STR_ARG(name));
    }
    if (!flag->value) {
        if (joined)
            return err_set(err, ERR_INVALID, "--%s takes no value", flag->name);
        return add_setting(inv, flag, NULL, arg, err);
    }
    if (!joined && *at + 1 >= argc)
        return err_set(err, ERR_INVALID, "--%s needs a value: --%s %s", flag->name, flag->name,
                       flag->value);
    const char *text = joined ? value.p : argv[++*at];
    AUTO_BUF said_as = { 0 };
    buf_addf(&said_as, "--%s", flag->name);
    return add_setting(inv, flag, text, said_as.p, err);
}

static int parse_short(struct invocation *inv, const char *arg, int *at, int argc, char **argv,
                       struct err *err)
{
    for (const char *p = arg + 1; *p; p++) {
        const struct flag *flag = find_flag(inv->command, STR_NONE, *p);
        if (!flag)
            return err_set(err, ERR_INVALID, "unknown flag -%c", *p);
        char said_as[3] = { '-', *p, '\0' };
        if (!flag->value) {
            if (add_setting(inv, flag, NULL, said_as, err) < 0)
                return -1;
            continue;
        }
        if (!p[1] && *at + 1 >= argc)
            return err_set(err, ERR_INVALID, "-%c needs a value: -%c %s", *p, *p, flag->value);
        const char *text = p[1] ? p + 1 : argv[++*at];
        return add_setting(inv, flag, text + (p[1] == '='), said_as, err);
    }
    return 0;
}

static void variable_name(const struct flag *flag, struct buf *out)
{
    buf_addz(out, "KARVE_");
    for (const char *p = flag->name; *p; p++)
        buf_addc(out, *p == '-' ? '_' : (char)toupper((unsigned char)*p));
}

/* Anything else is refused: who wrote KARVE_DRY_RUN=enabled means something by it. */
static int add_switch(struct invocation *inv, const struct flag *flag, const char *text,
                      const char *variable, struct err *err)
{
    static const char *const on[] = { "1", "t", "true", "yes", "on" }, *const off[] = {
        "0", "f", "false", "no", "off"
    };
    for (size_t i = 0; i < KV_COUNT_OF(on); i++) {
        if (strcasecmp(text, on[i]) == 0)
            return add_setting(inv, flag, NULL, variable, err);
        if (strcasecmp(text, off[i]) == 0)
            return 0;
    }
    return err_set(err, ERR_INVALID, "%s: %s is neither true nor false", variable,
                   STR_SHOWN(str_of(text)));
}

/* KARVE_<FLAG>: a switch is true or false; a flag that may be repeated takes a comma-separated list. */
static int add_from_environment(struct invocation *inv, const struct flag *flag, struct err *err)
{
    AUTO_BUF name = { 0 };
    variable_name(flag, &name);
    const char *variable = name.p, *text = getenv(variable);
    if ((!text || !*text) && flag->karpenter_env) {
        variable += strlen("KARVE_");
        text = getenv(variable);
    }
    if (!text || !*text || flag_given(inv, flag->name))
        return 0;
    /* What Kubernetes sets in pods beside a Service named karve-metrics, say: not meant for us. */
    if (strncmp(text, "tcp://", 6) == 0)
        return 0;
    if (!flag->value)
        return add_switch(inv, flag, text, variable, err);
    if (!flag->many)
        return add_setting(inv, flag, text, variable, err);
    struct str rest = str_of(text), item;
    for (bool more = true; more;) {
        more = str_cut(rest, ',', &item, &rest);
        if (!item.len)
            continue;
        char *copy = str_dup(item);
        vec_push(&inv->owned, copy);
        if (add_setting(inv, flag, copy, variable, err) < 0)
            return -1;
    }
    return 0;
}

int invocation_parse(struct invocation *inv, const struct command *command, int argc, char **argv,
                     struct err *err)
{
    *inv = (struct invocation){ .command = command };
    bool flags_ended = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (flags_ended || arg[0] != '-' || !arg[1])
            vec_push(&inv->args, arg);
        else if (strcmp(arg, "--") == 0)
            flags_ended = true;
        else if (arg[1] == '-' ? parse_long(inv, arg, &i, argc, argv, err) < 0
                               : parse_short(inv, arg, &i, argc, argv, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < command->flag_count; i++) {
        if (add_from_environment(inv, &command->flags[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < common_flag_count; i++) {
        if (add_from_environment(inv, &common_flags[i], err) < 0)
            return -1;
    }
    return 0;
}

void invocation_done(struct invocation *inv)
{
    vec_each(&inv->owned, char *, text)
        free(*text);
    vec_done(&inv->owned);
    vec_done(&inv->settings);
    vec_done(&inv->args);
}

bool flag_given(const struct invocation *inv, const char *name)
{
    vec_each(&inv->settings, struct flag_setting, s) {
        if (strcmp(s->flag->name, name) == 0)
            return true;
    }
    return false;
}

const char *flag_value(const struct invocation *inv, const char *name)
{
    vec_each(&inv->settings, struct flag_setting, s) {
        if (strcmp(s->flag->name, name) == 0)
            return s->value;
    }
    const struct flag *flag = find_flag(inv->command, str_of(name), 0);
    KV_ASSERT(flag != NULL);
    return flag->dflt;
}

size_t flag_values(const struct invocation *inv, const char *name, const char **out, size_t max)
{
    size_t count = 0;
    vec_each(&inv->settings, struct flag_setting, s) {
        if (strcmp(s->flag->name, name) == 0 && count < max)
            out[count++] = s->value;
    }
    return count;
}

const struct command *command_find(struct str name)
{
    for (size_t i = 0; i < command_count; i++) {
        if (str_eqz(name, commands[i]->name))
            return commands[i];
    }
    return NULL;
}

int command_unknown(struct str name, struct err *err)
{
    const struct command *best = NULL;
    size_t best_distance = 4;
    for (size_t i = 0; i < command_count; i++) {
        size_t distance = str_distance(name, str_of(commands[i]->name), 3);
        if (distance < best_distance) {
            best = commands[i];
            best_distance = distance;
        }
    }
    if (best)
        return err_set(err, ERR_INVALID, "unknown command '%.*s'; did you mean '%s'?",
                       STR_ARG(name), best->name);
    return err_set(err, ERR_INVALID, "unknown command '%.*s'", STR_ARG(name));
}

int print_complaint(const char *name, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "karve %s: ", name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

/* What does not fit in the stream's buffer is written at once, and if that fails the flush has
 * nothing left to do: both are looked at. */
int print_out(const struct buf *out, const char *command, int code)
{
    bool written = fwrite(out->p ? out->p : "", 1, out->len, stdout) == out->len;
    if (written && fflush(stdout) == 0)
        return code;
    fprintf(stderr, "%s: standard output: %s\n", command, strerror(errno));
    return EXIT_ENVIRONMENT;
}

bool colour_wanted(const struct invocation *inv, FILE *stream)
{
    const char *choice = flag_value(inv, "color");
    if (strcmp(choice, "auto") != 0)
        return strcmp(choice, "always") == 0;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return !(no_color && *no_color) && isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
}
