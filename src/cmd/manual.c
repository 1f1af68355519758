/* Help texts, the man page and shell completions, all written from the table of commands. */
#include "cmd/command.h"
#include "cmd/version.h"

#include <ctype.h>
#include <string.h>

static const char overview_intro[] =
    "karve is the Kubernetes node lifecycle in one small program: it reads the objects that\n"
    "operators already have (NodePool, NodeClaim, NodeOverlay, EC2NodeClass, ...).\n";

static const char *bold(bool colour)
{
    return colour ? "\033[1m" : "";
}

static const char *plain(bool colour)
{
    return colour ? "\033[0m" : "";
}

static void flag_left(const struct flag *flag, struct buf *out)
{
    if (flag->letter)
        buf_addf(out, "-%c, ", flag->letter);
    else
        buf_addz(out, "    ");
    buf_addf(out, "--%s", flag->name);
    if (flag->value)
        buf_addf(out, " %s", flag->value);
}

static void flag_right(const struct flag *flag, struct buf *out)
{
    buf_addz(out, flag->help);
    if (flag->choices) {
        buf_addz(out, ": ");
        for (size_t i = 0; flag->choices[i]; i++)
            buf_addf(out, "%s%s", i ? ", " : "", flag->choices[i]);
    }
    if (flag->dflt && *flag->dflt)
        buf_addf(out, " (default %s)", flag->dflt);
    if (flag->many)
        buf_addz(out, "; may be repeated");
}

static void flag_lines(const struct flag *flags, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        AUTO_BUF left = { 0 };
        flag_left(&flags[i], &left);
        if (left.len > 24)
            buf_addf(out, "  %s\n%27s", left.p, "");
        else
            buf_addf(out, "  %-24s ", left.p);
        flag_right(&flags[i], out);
        buf_addc(out, '\n');
    }
}

void manual_overview(struct buf *out, bool colour)
{
    buf_addf(out, "%s\n%sUsage%s\n  karve COMMAND [flags]\n\n%sCommands%s\n", overview_intro,
             bold(colour), plain(colour), bold(colour), plain(colour));
    for (size_t i = 0; i < command_count; i++)
        buf_addf(out, "  %s%-14s%s %s\n", bold(colour), commands[i]->name, plain(colour),
                 commands[i]->summary);
    buf_addf(
        out,
        "\n%sFirst steps%s\n"
        "  karve validate -f manifests/        check NodePools and workloads before you apply them\n"
        "  karve plan -f manifests/            see what they would launch, and what it costs\n"
        "  karve crds | kubectl apply -f -     install the CRDs\n"
        "\n`karve COMMAND --help` tells more. Every flag can also be set in the environment:\n"
        "--output is KARVE_OUTPUT. Exit codes: 0 done, 1 the answer is no, 2 usage, 3 the\n"
        "environment failed.\n",
        bold(colour), plain(colour));
}

void manual_help(const struct command *c, struct buf *out, bool colour)
{
    buf_addf(out, "karve %s: %s\n\n%sUsage%s\n  karve %s [flags]%s%s\n\n%s\n", c->name, c->summary,
             bold(colour), plain(colour), c->name, *c->args ? " " : "", c->args, c->about);
    buf_addf(out, "\n%sFlags%s\n", bold(colour), plain(colour));
    flag_lines(c->flags, c->flag_count, out);
    flag_lines(common_flags, common_flag_count, out);
    if (c->examples)
        buf_addf(out, "\n%sExamples%s\n%s", bold(colour), plain(colour), c->examples);
}

/* --- the man page, in man(7) macros --- */

/* A leading dot or quote is a request to the formatter, a backslash its escape, and a plain
 * hyphen may become a typographic one that nobody can paste into a shell. */
static void roff(const char *text, struct buf *out)
{
    bool line_start = true;
    for (const char *p = text; *p; p++) {
        if (line_start && (*p == '.' || *p == '\''))
            buf_addz(out, "\\&");
        line_start = *p == '\n';
        if (*p == '\\')
            buf_addz(out, "\\e");
        else if (*p == '-')
            buf_addz(out, "\\-");
        else
            buf_addc(out, *p);
    }
}

static void roff_flags(const struct flag *flags, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        AUTO_BUF left = { 0 }, right = { 0 };
        flag_left(&flags[i], &left);
        flag_right(&flags[i], &right);
        buf_addz(out, ".TP\n.B ");
        roff(str_trim(buf_str(&left)).p, out);
        buf_addc(out, '\n');
        roff(right.p, out);
        buf_addz(out, ".\n");
    }
}

void manual_page(struct buf *out)
{
    buf_addf(out, ".TH KARVE 1 \"\" \"karve %s\" \"User Commands\"\n", KARVE_VERSION);
    buf_addz(out, ".SH NAME\nkarve \\- the Kubernetes node lifecycle in one small program\n"
                  ".SH SYNOPSIS\n.B karve\n.I COMMAND\n[flags]\n.SH DESCRIPTION\n");
    roff(overview_intro, out);
    buf_addz(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = commands[i];
        buf_addz(out, ".SS \"karve ");
        roff(c->name, out);
        buf_addf(out, " [flags]%s%s\"\n", *c->args ? " " : "", c->args);
        roff(c->about, out);
        buf_addc(out, '\n');
        roff_flags(c->flags, c->flag_count, out);
        if (c->examples) {
            buf_addz(out, ".PP\nExamples:\n.PP\n.nf\n");
            roff(c->examples, out);
            buf_addz(out, ".fi\n");
        }
    }
    buf_addz(out, ".SH COMMON FLAGS\n");
    roff_flags(common_flags, common_flag_count, out);
    buf_addz(out,
             ".SH ENVIRONMENT\nEvery flag can be set in the environment: KARVE_ and the flag's "
             "name in upper case with underscores, as in KARVE_OUTPUT. The command line wins. "
             "A flag without a value is true or false there; one that may be repeated takes a "
             "comma\\-separated list. NO_COLOR turns colour off.\n"
             ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nThe answer is no: invalid manifests, pods "
             "that fit nowhere.\n"
             ".TP\n2\nUsage.\n.TP\n3\nThe environment failed: no such file, no cluster.\n");
}

/* --- completions --- */

static void completion_bash(struct buf *out)
{
    buf_addz(out, "# bash completion for karve\n_karve() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; i < command_count; i++)
        buf_addf(out, "%s ", commands[i]->name);
    buf_addz(out, "--help --version\" -- \"$cur\"))\n        return\n    fi\n"
                  "    case \"${COMP_WORDS[1]} $prev\" in\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = commands[i];
        for (size_t j = 0; j < c->flag_count + common_flag_count; j++) {
            const struct flag *f =
                j < c->flag_count ? &c->flags[j] : &common_flags[j - c->flag_count];
            if (!f->choices && !f->files)
                continue;
            buf_addf(out, "    \"%s --%s\"", c->name, f->name);
            if (f->letter)
                buf_addf(out, " | \"%s -%c\"", c->name, f->letter);
            buf_addz(out, ")\n        COMPREPLY=($(compgen ");
            if (f->files)
                buf_addz(out, "-f");
            else
                buf_addz(out, "-W \"");
            for (size_t k = 0; f->choices && f->choices[k]; k++)
                buf_addf(out, "%s%s", k ? " " : "", f->choices[k]);
            buf_addf(out, "%s -- \"$cur\"))\n        return\n        ;;\n", f->files ? "" : "\"");
        }
    }
    buf_addz(out, "    esac\n    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = commands[i];
        buf_addf(out, "    %s) COMPREPLY=($(compgen -W \"", c->name);
        for (size_t j = 0; j < c->flag_count; j++)
            buf_addf(out, "--%s ", c->flags[j].name);
        for (size_t j = 0; j < common_flag_count; j++)
            buf_addf(out, "%s--%s", j ? " " : "", common_flags[j].name);
        buf_addz(out, "\" -f -- \"$cur\")) ;;\n");
    }
    buf_addz(out, "    esac\n}\ncomplete -o filenames -F _karve karve\n");
}

/* Text inside a single-quoted shell word, where zsh and fish also give colons and brackets a
 * meaning of their own. */
static void quoted(const char *text, const char *escaped, struct buf *out)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            buf_addz(out, "'\\''");
        else if (strchr(escaped, *p))
            buf_addf(out, "\\%c", *p);
        else
            buf_addc(out, *p);
    }
}

static void zsh_flag(const struct flag *f, struct buf *out)
{
    buf_addf(out, " \\\n            '%s--%s%s[", f->many ? "*" : "", f->name, f->value ? "=" : "");
    quoted(f->help, "[]:", out);
    buf_addc(out, ']');
    if (f->value) {
        buf_addz(out, ":value:");
        if (f->files)
            buf_addz(out, "_files");
        for (size_t k = 0; f->choices && f->choices[k]; k++)
            buf_addf(out, "%s%s", k ? " " : "(", f->choices[k]);
        if (f->choices)
            buf_addc(out, ')');
    }
    buf_addc(out, '\'');
}

static void completion_zsh(struct buf *out)
{
    buf_addz(out, "#compdef karve\n_karve() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < command_count; i++) {
        buf_addf(out, "        '%s:", commands[i]->name);
        quoted(commands[i]->summary, ":", out);
        buf_addz(out, "'\n");
    }
    buf_addz(out, "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n"
                  "        return\n    fi\n    case $words[2] in\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = commands[i];
        buf_addf(out, "    %s)\n        _arguments", c->name);
        for (size_t j = 0; j < c->flag_count; j++)
            zsh_flag(&c->flags[j], out);
        for (size_t j = 0; j < common_flag_count; j++)
            zsh_flag(&common_flags[j], out);
        buf_addz(out, " \\\n            '*:file:_files'\n        ;;\n");
    }
    buf_addz(out, "    esac\n}\n_karve \"$@\"\n");
}

static void fish_flag(const char *command, const struct flag *f, struct buf *out)
{
    buf_addf(out, "complete -c karve -n '__fish_seen_subcommand_from %s' -l %s", command, f->name);
    if (f->letter)
        buf_addf(out, " -s %c", f->letter);
    if (f->value)
        buf_addz(out, f->files ? " -r -F" : " -x");
    for (size_t k = 0; f->choices && f->choices[k]; k++)
        buf_addf(out, "%s%s", k ? " " : " -a '", f->choices[k]);
    if (f->choices)
        buf_addc(out, '\'');
    buf_addz(out, " -d '");
    quoted(f->help, "", out);
    buf_addz(out, "'\n");
}

static void completion_fish(struct buf *out)
{
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = commands[i];
        buf_addf(out, "complete -c karve -n __fish_use_subcommand -f -a %s -d '", c->name);
        quoted(c->summary, "", out);
        buf_addz(out, "'\n");
        for (size_t j = 0; j < c->flag_count; j++)
            fish_flag(c->name, &c->flags[j], out);
        for (size_t j = 0; j < common_flag_count; j++)
            fish_flag(c->name, &common_flags[j], out);
    }
}

int manual_completion(const char *shell, struct buf *out, struct err *err)
{
    if (strcmp(shell, "bash") == 0)
        completion_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        completion_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        completion_fish(out);
    else
        return err_set(err, ERR_INVALID, "unknown shell '%s'; expected bash, zsh or fish", shell);
    return 0;
}
