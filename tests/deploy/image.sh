#!/bin/sh
# The files of the image are enough to run the program, as a user who owns none of them: image.sh KARVE. TAP.
karve=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
. tests/deploy/lib.sh

if ldd "$karve" | grep -q 'lib[alut]*san'; then
    skip the_image_has_what_the_program_needs 'the program is built with a sanitizer'
    finish
fi
root=$dir/root
cp "$karve" "$dir/karve" && strip "$dir/karve"
deploy/image-root.sh "$dir/karve" "$root" >"$dir/said" 2>&1
result $? the_files_are_collected
deploy/image-root.sh "$dir/karve" "$root" >/dev/null 2>&1
[ $? = 2 ]
result $? a_folder_with_something_in_it_is_left_alone
find "$root" -type f -perm /022 >"$dir/said"
find "$root" \( -name sh -o -name bash -o -name apt \) >>"$dir/said"
quiet
result $? nobody_else_can_write_there_and_there_is_no_shell
echo "# $(du -sk --apparent-size "$root" | cut -f1) KiB in $(find "$root" -type f | wc -l) files; $(tar -C "$root" -c . | gzip -9 | wc -c) bytes compressed"

if [ "$(id -u)" != 0 ]; then
    skip the_program_runs_in_it 'only root can change the root folder'
    finish
fi
chroot=$(PATH=$PATH:/usr/sbin command -v chroot)
within() { env -i "$chroot" --userspec=65532:65532 "$root" /karve "$@"; }
same version "$("$karve" version)" "$(within version 2>&1)"
quiet
result $? the_program_runs_in_it
cp -r examples/shop "$root/shop"
same plan "$("$karve" plan -f examples/shop 2>&1 | sha256sum)" "$(within plan -f shop 2>&1 | sha256sum)"
quiet
result $? it_plans_as_it_does_outside
within controller --embedded /none --metrics-port 0 --health-probe-port 0 >/dev/null 2>"$dir/err"
code=$?
same 'exit code without a folder' 3 $code
quiet
result $? errors_are_told_there_too
finish
