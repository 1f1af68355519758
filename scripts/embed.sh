#!/bin/sh
# Text files as C strings, on standard output: scripts/embed.sh HEADER NAME=FILE[:FILE...] ...
set -efu
IFS=: # between the files of a string
printf '/* Written by scripts/embed.sh. */\n#include "%s"\n' "$1"
shift
for pair; do
    printf '\nconst char %s[] =\n' "${pair%%=*}"
    # shellcheck disable=SC2086 # a word for each file
    sed -e 's/[\\"]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/' ${pair#*=}
    printf '    "";\n'
done
