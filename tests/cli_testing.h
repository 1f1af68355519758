/* cli_testing.h - run the program as a user would, and see what it printed. */
#pragma once

#include "support/test.h"

#include "base/file.h"
#include "codec/yaml.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct result {
    struct buf out, err;
    int code; /* -1: ended by a signal */
};

static inline void result_done(struct result *r)
{
    buf_done(&r->out);
    buf_done(&r->err);
}
#define AUTO_RESULT __attribute__((cleanup(result_done))) struct result

static inline void slurp(FILE *f, struct buf *out)
{
    char chunk[4096];
    rewind(f);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        buf_add(out, (struct str){ chunk, n });
    fclose(f);
}

/* Run a shell command with `karve` being the program under test; stdin is `input`. */
static inline struct result sh(const char *command, struct str input)
{
    struct result r = { 0 };
    FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
    if (!in || !out || !err)
        fail_msg("no temporary files");
    fwrite(input.p, 1, input.len, in);
    rewind(in);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(in), 0);
        dup2(fileno(out), 1);
        dup2(fileno(err), 2);
        setenv("KARVE", "build/karve", 0); /* Meson says where it is */
        AUTO_BUF script = { 0 };
        buf_addf(&script, "karve() { \"$KARVE\" \"$@\"; }; %s", command);
        execl("/bin/sh", "sh", "-c", script.p, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    /* The shell reports a killed command as 128 + signal. */
    r.code = WIFEXITED(status) && WEXITSTATUS(status) < 126 ? WEXITSTATUS(status) : -1;
    fclose(in);
    slurp(out, &r.out);
    slurp(err, &r.err);
    return r;
}

static inline struct result karve(const char *arguments)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "karve %s", arguments);
    return sh(command.p, STR(""));
}
