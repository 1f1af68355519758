#!/bin/sh
# Run the tests of a build folder: scripts/test.sh BUILD [meson test arguments]. Closes with one
# line that counts single tests (not programs): "N passed, N failed".
#
# With KARVE_TRY_AGAIN=1 (CI sets it: real schedulers, runtimes and registries run beside each other on
# two cores there) up to three programs that failed are run once more, one after the other, and the
# second run counts; it is said which. What a sanitizer found is not tried again.
set -u

build=$1
shift
logs=$build/meson-logs
rm -f "$logs/testlog.txt" "$logs/again.txt"
meson test -C "$build" --no-rebuild --print-errorlogs --quiet "$@"
status=$?

# Each program of a log: "NAME passed", "NAME failed", or "NAME found" when a sanitizer spoke.
programs() {
    awk '
        function close_program() {
            if (name != "")
                print name, result ~ /exit status 0/ ? "passed" : found || (leak && !told) ? "found" : "failed"
        }
        /^=+ [0-9]+\/[0-9]+ =+$/ { close_program(); name = ""; result = ""; found = leak = told = 0 }
        name == "" && /^test:/ { name = $NF }
        result == "" && /^result:/ { result = $0 }
        /ERROR: AddressSanitizer|WARNING: ThreadSanitizer|runtime error:/ { found = 1 }
        /ERROR: LeakSanitizer/ { leak = 1 } # as every test that ends early has
        /^not ok/ { told = 1 }
        END { close_program() }
    ' "$1"
}

again=
if [ "$status" -ne 0 ] && [ "${KARVE_TRY_AGAIN:-}" = 1 ] && ! programs "$logs/testlog.txt" | grep -q ' found$'; then
    again=$(programs "$logs/testlog.txt" | sed -n 's/ failed$//p')
    [ "$(echo "$again" | wc -w)" -le 3 ] || again=
fi
if [ -n "$again" ]; then
    # shellcheck disable=SC2086 # a word for each
    meson test -C "$build" --no-rebuild --print-errorlogs --quiet --logbase again --num-processes 1 "$@" $again
    status=$?
    touch "$logs/again.txt"
    programs "$logs/again.txt" | sed -e 's/ passed$/ passed by itself; something in it depends on the load/' \
        -e 's/^/tried again: /'
    again=$(programs "$logs/again.txt" | cut -d ' ' -f 1 | tr '\n' ' ')
fi

# A program that speaks TAP counts by its lines; one that does not is a single test. The first log
# does not count for what was tried again.
awk -v again=" $again" '
    function close_program() {
        if (name == "")
            return
        if (first_log && index(again, " " name " "))
            return
        if (tap_lines == 0) {
            if (result ~ /exit status 0/) tap_passed++; else tap_failed++
        } else if (result !~ /exit status 0/ && tap_failed == 0)
            tap_failed++ # crashed after its last line
        passed += tap_passed - tap_skipped # the line of a skipped one says "ok"
        failed += tap_failed
        skipped += tap_skipped
    }
    FNR == 1 { close_program(); name = ""; first_log = NR == 1 }
    /^=+ [0-9]+\/[0-9]+ =+$/ {
        close_program()
        name = result = ""
        tap_lines = tap_passed = tap_failed = tap_skipped = 0
    }
    name == "" && /^test:/ { name = $NF }
    result == "" && /^result:/ { result = $0 }
    /^# SKIP / { tap_skipped++ }
    /^ok [0-9]/ { tap_lines++; tap_passed++ }
    /^not ok [0-9]/ { tap_lines++; tap_failed++ }
    END {
        close_program()
        printf "%d passed, %d failed", passed, failed
        if (skipped) printf ", %d skipped", skipped
        printf "\n"
        exit failed > 0 || passed == 0
    }
' "$logs/testlog.txt" ${again:+"$logs/again.txt"} || status=1
exit $status
