#!/bin/sh
# Run the tests of a build folder: scripts/test.sh BUILD [meson test arguments]. Closes with one
# line that counts single tests (not programs): "N passed, N failed".
set -u

build=$1
shift
log=$build/meson-logs/testlog.txt
rm -f "$log"
meson test -C "$build" --no-rebuild --print-errorlogs --quiet "$@"
status=$?

# A program that speaks TAP counts by its lines; one that does not is a single test.
awk '
    function close_program() {
        if (program == "")
            return
        if (tap_lines == 0) {
            if (result ~ /exit status 0/) passed++; else failed++
        } else if (result !~ /exit status 0/ && tap_failed == 0)
            failed++ # crashed after its last line
    }
    /^=+ [0-9]+\/[0-9]+ =+$/ { close_program(); program = $0; tap_lines = 0; tap_failed = 0; result = "" }
    /^result:/ { result = $0 }
    /^# SKIP / { skipped++; passed-- } # its own line says "ok"
    /^ok [0-9]/ { tap_lines++; passed++ }
    /^not ok [0-9]/ { tap_lines++; tap_failed++; failed++ }
    END {
        close_program()
        printf "%d passed, %d failed", passed, failed
        if (skipped) printf ", %d skipped", skipped
        printf "\n"
        exit failed > 0 || passed == 0
    }
' "$log" || status=1
exit $status
