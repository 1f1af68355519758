#!/bin/sh
# The room law: a file includes only headers of its own room and of the rooms listed before it in
# docs/ARCHITECTURE.md, with the exceptions stated there ("A does not know B"). Speaks TAP.
set -u
cd "$(dirname "$0")/.." || exit 1

# The list is the fenced block after the line "## Rooms"; one room per line, name first.
law=$(awk '/^## Rooms/ { seen = 1 } seen && /^```/ { fence++; next } seen && fence == 1 { print } fence == 2 { exit }' docs/ARCHITECTURE.md)
rooms=$(printf '%s\n' "$law" | sed -n 's|^\([a-z]*\)/ .*|\1|p')
# "`sched/` does not know `store/`, `net/`" gives the pairs "sched store" and "sched net".
strangers=$(sed -n 's|^- `\([a-z]*\)/` does not know \(.*\)|\1 \2|p' docs/ARCHITECTURE.md | tr -d '`,/.' |
    awk '{ for (i = 2; i <= NF; i++) print $1, $i }')

position() { printf '%s\n' "$rooms" | grep -nx "$1" | cut -d: -f1; }

broken=$(
    for file in $(find src -name '*.[ch]' | sort); do
        room=${file#src/}
        room=${room%%/*}
        own=$(position "$room")
        [ -n "$own" ] || { echo "$file: room $room is not in docs/ARCHITECTURE.md"; continue; }
        sed -n 's|^#include "\([a-z]*\)/.*|\1|p' "$file" | sort -u | while read -r used; do
            case $file in *_test.c) [ "$used" = support ] && continue ;; esac
            theirs=$(position "$used")
            if [ -z "$theirs" ]; then
                echo "$file: includes from $used/, which is no room"
            elif [ "$theirs" -gt "$own" ]; then
                echo "$file: $room/ includes from $used/, a room below it"
            elif printf '%s\n' "$strangers" | grep -qx "$room $used"; then
                echo "$file: $room/ must not know $used/"
            fi
        done
    done
)
echo "1..2"
count=$(printf '%s\n' "$rooms" | grep -c .)
if [ "$count" -ge 5 ]; then echo "ok 1 - the_rooms_are_listed_in_the_architecture"; else echo "not ok 1 - the_rooms_are_listed_in_the_architecture"; fi
if [ -z "$broken" ]; then
    echo "ok 2 - every_room_includes_only_rooms_above_it"
else
    echo "not ok 2 - every_room_includes_only_rooms_above_it"
    printf '%s\n' "$broken" | sed 's/^/# /'
    exit 1
fi
