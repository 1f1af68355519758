#!/bin/sh
# The room law: a file includes only headers of its own room and of the rooms listed before it in
# docs/ARCHITECTURE.md, with the exceptions stated there ("`a/` does not know `b/`"). Speaks TAP.
set -u
cd "$(dirname "$0")/.." || exit 1

# shellcheck disable=SC2046
awk '
    function room_of(path) { sub(/^src\//, "", path); sub(/\/.*/, "", path); return path }

    # The law: the fenced block after "## Rooms" lists the rooms, one a line, name first.
    FILENAME ~ /ARCHITECTURE/ {
        if (/^## /) section = $0
        if (section == "## Rooms" && /^```/) fence++
        else if (section == "## Rooms" && fence == 1 && match($0, /^[a-z]+\//)) rank[substr($0, 1, RLENGTH - 1)] = ++rooms
        else if (match($0, /^- `[a-z]+\/` does not know /)) {
            line = $0
            gsub(/[`,.\/-]/, "", line)
            n = split(line, word, " ")
            for (i = 5; i <= n; i++) stranger[word[1], word[i]] = 1
        }
        next
    }
    /^#include "[a-z]+\// {
        used = $2
        gsub(/^"|\/.*/, "", used)
        own = room_of(FILENAME)
        # Test code may also include what is under tests/.
        if (!(used in rank) && FILENAME ~ /(_test|testing|conformance)\.[ch]$/) next
        if (!(own in rank)) broken[++count] = FILENAME ": room " own " is not in docs/ARCHITECTURE.md"
        else if (!(used in rank)) broken[++count] = FILENAME ": includes from " used "/, which is no room"
        else if (rank[used] > rank[own]) broken[++count] = FILENAME ": " own "/ includes from " used "/, a room below it"
        else if ((own, used) in stranger) broken[++count] = FILENAME ": " own "/ must not know " used "/"
    }
    END {
        print "1..2"
        print (rooms >= 5 ? "ok" : "not ok") " 1 - the_rooms_are_listed_in_the_architecture"
        print (count == 0 ? "ok" : "not ok") " 2 - every_room_includes_only_rooms_above_it"
        for (i = 1; i <= count; i++) print "# " broken[i]
        exit count > 0 || rooms < 5
    }
' docs/ARCHITECTURE.md $(find src -name '*.[ch]' | sort)
