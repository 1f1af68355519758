#!/bin/sh
# Text files as C strings, on standard output: scripts/embed.sh HEADER NAME=FILE ...
set -eu
printf '/* Written by scripts/embed.sh. */\n#include "%s"\n' "$1"
shift
for pair; do
    printf '\nconst char %s[] =\n' "${pair%%=*}"
    sed -e 's/[\\"]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/' "${pair#*=}"
    printf '    "";\n'
done
