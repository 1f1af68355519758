#!/bin/sh
# Make the root folder of a small image: image-root.sh KARVE ROOT
#
# The program, the shared libraries it is linked with and their loader, those that the C library loads
# by itself to look up names, certificates, and an unprivileged user. No shell, no package manager:
# nothing else. The Dockerfile copies it into an empty image, and the tests run it in a chroot.
set -eu
karve=${1:?usage: image-root.sh KARVE ROOT}
root=${2:?usage: image-root.sh KARVE ROOT}

mkdir -p "$root"
if [ -n "$(ls -A "$root")" ]; then
    echo "image-root.sh: $root is not empty" >&2
    exit 2
fi
umask 022
mkdir -p "$root/etc/ssl/certs" "$root/run/karve" "$root/tmp" "$root/proc" "$root/sys" "$root/dev"
chmod 1777 "$root/tmp"
install -m 755 "$karve" "$root/karve"

copy() { # by the name it is loaded by, with what a link points to as its content
    mkdir -p "$root$(dirname "$1")"
    install -m 755 "$1" "$root$1"
}

# libcurl is loaded when it is needed, by the name that the program has in it.
curl=$(ldconfig -p 2>/dev/null | awk '$1 == "libcurl.so.4" { print $NF; exit }')
if [ -z "$curl" ]; then
    echo 'image-root.sh: no libcurl.so.4 to copy: install libcurl4' >&2
    exit 3
fi
copy "$curl"

# "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)", and the loader: "/lib64/ld-linux-x86-64.so.2 (0x...)"
libraries=$(ldd "$karve" && ldd "$curl")
if echo "$libraries" | grep 'not found' >&2; then
    exit 3
fi
for library in $(echo "$libraries" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'); do
    copy "$library"
done

# The C library loads these when a name is looked up; newer ones have them built in.
libc=$(echo "$libraries" | awk '$1 ~ /^libc\.so/ { print $3; exit }')
for module in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
    [ ! -e "$(dirname "$libc")/$module" ] || copy "$(dirname "$libc")/$module"
done
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    [ -f "$bundle" ] || continue
    install -m 644 "$bundle" "$root/etc/ssl/certs/ca-certificates.crt"
    break
done
if [ ! -f "$root/etc/ssl/certs/ca-certificates.crt" ]; then
    echo 'image-root.sh: no certificates to copy: install ca-certificates' >&2
    exit 3
fi

printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'karve:x:65532:65532:karve:/tmp:/sbin/nologin' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'karve:x:65532:' >"$root/etc/group"
