#include "cmd/inputs.h"

#include <string.h>

size_t input_paths(const struct invocation *inv, const char *paths[PATHS_MAX])
{
    size_t count = flag_values(inv, "filename", paths, PATHS_MAX);
    for (size_t i = 0; i < inv->args.count && count < PATHS_MAX; i++)
        paths[count++] = inv->args.items[i];
    return count;
}

int complain_unnamed(const char *command)
{
    return print_complaint(command, EXIT_USAGE,
                           "nothing to read; name files or folders with -f (- is standard input)");
}

int complain_empty(const char *command, const char *path)
{
    if (strcmp(path, "-") == 0)
        return print_complaint(command, EXIT_NO, "no manifests in standard input");
    return print_complaint(command, EXIT_NO, "no manifests in %s (.yaml, .yml and .json are read)",
                           path);
}

void print_problems(const struct manifests *m, bool warnings, bool colour)
{
    vec_each(&m->problems, struct manifest_problem, p) {
        AUTO_BUF line = { 0 };
        if (p->severity != PROBLEM_ERROR && !warnings)
            continue;
        manifest_problem_format(p, &line);
        const char *tint = p->severity == PROBLEM_ERROR ? "\033[31m" : "\033[33m";
        fprintf(stderr, "%s%s%s\n", colour ? tint : "", line.p, colour ? "\033[0m" : "");
    }
    if (m->problems_dropped)
        fprintf(stderr, "and %zu more problems\n", m->problems_dropped);
}
