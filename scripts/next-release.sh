#!/bin/sh
# Download packages of Debian 13 on Debian 12, into a folder: scripts/next-release.sh DIR PACKAGE...
#
# Taken from the mirror this machine already uses, through an apt configuration of its own that is
# thrown away: the machine's sources and package lists stay as they were. Needs no root.
set -eu

folder=$1
shift

# REPO_URI of the release's own main archive, not of its security or backports ones.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "Debian" && $3 == "Debian" && $4 == "main" { print $1; exit }')
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ -z "$mirror" ] || [ ! -f "$keyring" ]; then
    echo "$*: not packaged here, and no Debian mirror is configured to take it from" >&2
    exit 3
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder" "$scratch/lists/partial" "$scratch/cache/archives/partial" "$scratch/debs"
echo "deb [signed-by=$keyring] $mirror trixie main" >"$scratch/sources.list"

private() {
    apt-get -qq -o Dir::Etc::sourcelist="$scratch/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$scratch/lists" \
        -o Dir::Cache="$scratch/cache" -o APT::Sandbox::User=root "$@"
}
private update || exit 3
(cd "$scratch/debs" && private download "$@") || exit 3
mv "$scratch"/debs/*.deb "$folder"
