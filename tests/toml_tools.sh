#!/bin/sh
# The two TOML tools speak the tagged JSON of the public test suite: toml_tools.sh DECODE ENCODE. TAP.
set -u
decode=$1 encode=$2
number=0 failed=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT INT TERM

check() { # NAME WANT GOT
    number=$((number + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $number - $1"
        return
    fi
    echo "not ok $number - $1"
    printf '%s\n' "expected: $2" "got: $3" | sed 's/^/# /'
    failed=1
}

refused() { # TOOL INPUT: exit code, whether stdout is empty, and the message
    printf '%s' "$2" | "$1" >"$dir/out" 2>"$dir/err"
    code=$?
    printf '%s %s %s' "$code" "$(wc -c <"$dir/out" | tr -d ' ')" "$(cat "$dir/err")"
}

echo 1..7
all='{"s":{"type":"string","value":"a\"b"},"i":{"type":"integer","value":"-255"},"f":[{"type":"float","value":"0.5"},{"type":"float","value":"-inf"}],"b":{"type":"bool","value":"true"},"d":{"type":"datetime","value":"1979-05-27T07:32:00Z"},"l":{"type":"datetime-local","value":"1979-05-27T07:32:00"},"y":{"type":"date-local","value":"1979-05-27"},"t":{"type":"time-local","value":"07:32:00"},"n":{"e":{}}}'
toml='s = "a\"b"
i = -255
f = [5e-1, -inf]
b = true
d = 1979-05-27 07:32:00z
l = 1979-05-27T07:32:00
y = 1979-05-27
t = 07:32:00
[n.e]'
check decode_tags_every_type "$all" "$(printf '%s' "$toml" | "$decode")"
check encode_then_decode_gives_the_same "$all" "$(printf '%s' "$all" | "$encode" | "$decode")"
check minus_zero_keeps_its_sign 'a = -0.0' "$(printf 'a = -0.0\n' | "$decode" | "$encode")"
check decode_refuses_with_a_place "1 0 toml-decode: line 2, column 1: key \"a\" is already defined on line 1" \
    "$(refused "$decode" 'a = 1
a = 2')"
check encode_refuses_what_is_not_json "1 0" "$(refused "$encode" '{' | cut -c 1-3)"
check encode_refuses_a_value_that_is_not_of_its_type \
    "1 0 toml-encode: \"a\": \"x\" is no value; a text stands in quotes" \
    "$(refused "$encode" '{"a":{"type":"integer","value":"x"}}' | sed 's/line 1, column 1: //')"
check encode_writes_a_whole_float_as_a_float '{"a":{"type":"float","value":"5"}}' \
    "$(printf '%s' '{"a":{"type":"float","value":"5"}}' | "$encode" | "$decode")"
exit $failed
