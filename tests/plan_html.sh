#!/bin/sh
# The page of `karve plan -o html` in a browser: plan_html.sh PLAN_HTML KARVE. TAP.
#
# PLAN_HTML prints pages of plannings made by hand; KARVE plans the example. tests/browser.sh opens them
# and plan_html_check.js looks at them.
set -u
print=$(realpath "$1") karve=$(realpath "$2")
cd "$(dirname "$0")/.." || exit 1
check=tests/plan_html_check.js
. tests/browser.sh

for page in small hostile big; do
    "$print" $page >"$dir/$page.html" || exit 1
    open_page $page 1500
done
"$karve" plan -f examples/shop -o html >"$dir/shop.html"
[ $? -le 1 ]
result $? 'shop: karve_plans_the_example'
open_page shop 1500
cp "$dir/shop.html" "$dir/narrow.html"
open_page narrow 500
echo "1..$number"
exit $failed
