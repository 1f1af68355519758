/* cmd/inputs.h - what commands that read manifests have in common: which, and what is wrong with
 * them. */
#pragma once

#include "api/manifest.h"
#include "cmd/command.h"

#define PATHS_MAX 4096

/* The values of --filename, then the arguments; at most PATHS_MAX. Returns how many. */
size_t input_paths(const struct invocation *inv, const char *paths[PATHS_MAX]);

/* Complaints, with their exit code: no path was named; there is no manifest in `path`. */
int complain_unnamed(const char *command);
int complain_empty(const char *command, const char *path);

/* One line each on stderr, warnings if they are wanted. */
void print_problems(const struct manifests *m, bool warnings, bool colour);
