#!/bin/sh
# The page of `karve simulate --report` in a browser: simulate_html.sh SIMULATE_HTML KARVE. TAP.
#
# SIMULATE_HTML prints pages of records made by hand; KARVE simulates a scenario. tests/browser.sh opens
# them and simulate_html_check.js looks at them.
set -u
print=$(realpath "$1") karve=$(realpath "$2")
cd "$(dirname "$0")/.." || exit 1
check=tests/simulate_html_check.js
. tests/browser.sh

for page in morning hostile empty long; do
    "$print" $page >"$dir/$page.html" || exit 1
    open_page $page 1280
done
"$print" morning >"$dir/phone.html"
open_page phone 500
"$karve" simulate transient --quiet --report "$dir/real.html" >"$dir/table"
result $? 'real: karve_simulates_the_scenario'
grep -q "report: $dir/real.html" "$dir/table"
result $? 'real: the_table_ends_with_the_path'
open_page real 1280
echo "1..$number"
exit $failed
