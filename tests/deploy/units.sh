#!/bin/sh
# systemd reads the units as they are meant: units.sh KARVE. TAP.
karve=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
. tests/deploy/lib.sh

if ! analyze=$(tool systemd-analyze); then
    skip systemd_reads_the_units 'systemd-analyze is not installed'
    finish
fi
mkdir "$dir/bin" "$dir/units"
ln -s "$karve" "$dir/bin/karve"
for unit in deploy/systemd/*.service; do
    sed "s|@bindir@|$dir/bin|" "$unit" >"$dir/units/$(basename "$unit")"
done
# On the man page there is no opinion: it is installed with the units.
(cd "$dir/units" && "$analyze" verify --man=no ./*.service) >"$dir/said" 2>&1
quiet
result $? systemd_reads_the_units

exposure() { (cd "$dir/units" && "$analyze" security --offline=true --no-pager "./$1.service" 2>&1) | awk '/Overall exposure/ { print $(NF - 2) }'; }
if [ -z "$(exposure karve-controller)" ]; then
    skip the_units_are_shut_in 'this systemd cannot judge a unit offline'
    finish
fi
for row in karve-agent-observer:1.5 karve-controller:2 karve-agent:5.5; do
    unit=${row%:*} most=${row#*:}
    is=$(exposure "$unit")
    echo "# $unit: exposure $is of 10"
    awk -v is="$is" -v most="$most" 'BEGIN { exit is > most }' || echo "$unit: exposure $is, expected at most $most" >>"$dir/said"
done
quiet
result $? the_units_are_shut_in
finish
