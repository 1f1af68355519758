# Sourced by tests that look at pages in a browser: they set `check`, the script that looks, and `dir` is
# theirs to write to. Each page gets the check as its last script and is opened in headless Chromium,
# without a network; what the script finds is read from the page as it is in the end. TAP.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
    echo 1..1
    if [ "${CI:-}" = true ]; then
        echo 'not ok 1 - chromium_is_installed'
        exit 1
    fi
    echo '# SKIP chromium is not installed'
    echo 'ok 1 - pages_are_right_in_a_browser'
    exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT INT TERM
number=0 failed=0

result() { # GOOD NAME
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=1
    fi
}

# The page with a script before all others that listens for trouble, and the check after all others.
instrument() {
    awk -v check="$check" '
        /^<title>/ && !begun {
            begun = 1
            print "<script>window.wrongs = [];"
            print "addEventListener(\"error\", (e) => wrongs.push(e.message));"
            print "addEventListener(\"securitypolicyviolation\", (e) => wrongs.push(e.violatedDirective));</script>"
        }
        /^<\/body>/ {
            print "<script>"
            while ((getline line < check) > 0) print line
            print "</script>"
        }
        { print }
    ' "$1" >"$2"
}

open_page() { # NAME WIDTH: the page $dir/NAME.html
    instrument "$dir/$1.html" "$dir/checked.html"
    HOME=$dir "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions \
        --user-data-dir="$dir/profile" --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr \
        --window-size="$2",1100 --virtual-time-budget=5000 --dump-dom "file://$dir/checked.html" \
        >"$dir/dom" 2>"$dir/log"
    grep 'CONSOLE' "$dir/log" | sed 's/^/# /'
    ! grep -q CONSOLE "$dir/log"
    result $? "$1: the_console_stays_empty"
    # Lines of the result, out of the escaped text of its element.
    sed -n '/<pre id="result">/,$s/^.*TAP \(.*\)$/\1/p' "$dir/dom" | sed -e 's/<\/pre>.*//' -e 's/&lt;/</g' -e 's/&gt;/>/g' -e 's/&amp;/\&/g' >"$dir/found"
    grep -q '^ok - nothing_goes_wrong' "$dir/found"
    result $? "$1: the_check_came_to_its_end"
    while IFS= read -r line; do
        case $line in
        'ok - '*) result 0 "$1: ${line#ok - }" ;;
        'not ok - '*) result 1 "$1: ${line#not ok - }" ;;
        *) echo "$line" ;;
        esac
    done <"$dir/found"
}
