/* karve: pick the command from the table, parse its flags, run it. */
#include "cmd/command.h"
#include "cmd/version.h"

#include <signal.h>
#include <string.h>

extern const struct command validate_command, plan_command, instance_types_command,
    userdata_command, image_command, simulate_command, controller_command, extender_command,
    agent_command, pods_command, events_command, crds_command, completion_command, man_command,
    version_command, help_command;

const struct command *const commands[] = {
    &validate_command,   &plan_command,     &instance_types_command, &userdata_command,
    &image_command,      &simulate_command, &controller_command,     &extender_command,
    &agent_command,      &pods_command,     &events_command,         &crds_command,
    &completion_command, &man_command,      &version_command,        &help_command,
};
const size_t command_count = KV_COUNT_OF(commands);

static const char *const colour_choices[] = { "auto", "always", "never", NULL };

const struct flag common_flags[] = {
    { .name = "color",
      .value = "WHEN",
      .help = "colour the output",
      .dflt = "auto",
      .choices = colour_choices },
    { .name = "help", .letter = 'h', .help = "show this help" },
};
const size_t common_flag_count = KV_COUNT_OF(common_flags);

static int complain(const struct err *err, const char *command)
{
    fprintf(stderr, "karve%s%s: %s\n", command ? " " : "", command ? command : "", err->text);
    if (command)
        fprintf(stderr, "`karve %s --help` shows how it is used.\n", command);
    else
        fprintf(stderr, "`karve --help` lists the commands.\n");
    return EXIT_USAGE;
}

/* --- the small commands --- */

static int run_version(const struct invocation *inv)
{
    AUTO_BUF out = { 0 };
    if (strcmp(flag_value(inv, "output"), "json") == 0)
        buf_addf(&out, "{\"version\":\"%s\",\"commit\":\"%s\",\"compiler\":\"%s\"}\n",
                 KARVE_VERSION, KARVE_COMMIT, __VERSION__);
    else
        buf_addf(&out, "karve %s (%s)\n", KARVE_VERSION, KARVE_COMMIT);
    return print_out(&out, "karve", EXIT_DONE);
}

static const char *const text_or_json[] = { "text", "json", NULL };
static const struct flag version_flags[] = {
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "text",
      .choices = text_or_json },
};
const struct command version_command = {
    .name = "version",
    .summary = "print the version",
    .args = "",
    .about = "Prints the version, and the commit it was built from.",
    .flags = version_flags,
    .flag_count = KV_COUNT_OF(version_flags),
    .run = run_version,
};

static int run_completion(const struct invocation *inv)
{
    AUTO_BUF out = { 0 };
    struct err err;
    if (inv->args.count != 1)
        err_set(&err, ERR_INVALID, "expected one shell: bash, zsh or fish");
    else if (manual_completion(inv->args.items[0], &out, &err) == 0)
        return print_out(&out, "karve", EXIT_DONE);
    return complain(&err, "completion");
}

const struct command completion_command = {
    .name = "completion",
    .summary = "print a shell completion script",
    .args = "bash|zsh|fish",
    .about = "Prints a completion script for a shell. `make install` puts them in place.",
    .examples = "  . <(karve completion bash)\n      completions for this shell\n",
    .run = run_completion,
};

static int run_man(const struct invocation *inv KV_UNUSED)
{
    AUTO_BUF out = { 0 };
    manual_page(&out);
    return print_out(&out, "karve", EXIT_DONE);
}

const struct command man_command = {
    .name = "man",
    .summary = "print the manual page",
    .args = "",
    .about = "Prints the manual page in the form that man(1) reads.",
    .examples = "  karve man | man -l -\n      read it\n",
    .run = run_man,
};

static int show_help(const struct invocation *inv, const struct command *command)
{
    AUTO_BUF out = { 0 };
    bool colour = colour_wanted(inv, stdout);
    if (command)
        manual_help(command, &out, colour);
    else
        manual_overview(&out, colour);
    return print_out(&out, "karve", EXIT_DONE);
}

static int run_help(const struct invocation *inv)
{
    const struct command *command = NULL;
    struct err err;
    if (inv->args.count > 0) {
        struct str name = str_of(inv->args.items[0]);
        command = command_find(name);
        if (!command) {
            command_unknown(name, &err);
            return complain(&err, NULL);
        }
    }
    return show_help(inv, command);
}

const struct command help_command = {
    .name = "help",
    .summary = "show help for a command",
    .args = "[COMMAND]",
    .about = "Shows the overview, or the help of one command.",
    .run = run_help,
};

/* --- dispatch --- */

static int run(const struct command *command, int argc, char **argv)
{
    struct invocation inv;
    struct err err;
    int code;
    if (invocation_parse(&inv, command, argc, argv, &err) < 0)
        code = complain(&err, command->name);
    else if (flag_given(&inv, "help"))
        code = show_help(&inv, command == &help_command ? NULL : command);
    else
        code = command->run(&inv);
    invocation_done(&inv);
    return code;
}

int main(int argc, char **argv)
{
    /* A reader that goes away (karve crds | head) is no reason to die noisily. */
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        AUTO_BUF out = { 0 };
        manual_overview(&out, false);
        fputs(out.p, stderr);
        return EXIT_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0)
        return run(&version_command, 1, argv);
    if (first[0] == '-')
        return run(&help_command, argc, argv);

    const struct command *command = command_find(str_of(first));
    if (!command) {
        struct err err;
        command_unknown(str_of(first), &err);
        return complain(&err, NULL);
    }
    return run(command, argc - 1, argv + 1);
}
