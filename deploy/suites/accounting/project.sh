#!/bin/sh
# Makes the repository that the accounting suite is run on:
#
#	project.sh DIR [REPO TAG...]
#
# Its commit tagged base holds what makes the file sets, and an empty
# gitconfig; the one tagged loose tells git to compress less. Where the tags of
# another repository are named, oldest first, its releases are taken from there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ] || [ $# -eq 2 ]; then
	echo "use: project.sh DIR [REPO TAG...]" >&2
	exit 2
fi
dir=$1
shift
if [ -e "$dir" ]; then
	echo "project.sh: $dir is there already: name a new folder" >&2
	exit 2
fi
export GIT_AUTHOR_NAME=Patchbench GIT_AUTHOR_EMAIL=bench@example.org GIT_AUTHOR_DATE=2026-11-02T09:00:00Z
export GIT_COMMITTER_NAME=Patchbench GIT_COMMITTER_EMAIL=bench@example.org GIT_COMMITTER_DATE=2026-11-02T09:00:00Z
export GIT_CONFIG_GLOBAL=/dev/null

git init -q -b main "$dir"
mkdir "$dir/accounting"
cp "$here/sets.py" "$here/served.sh" "$dir/accounting/"
: >"$dir/accounting/gitconfig"
if [ $# -gt 0 ]; then
	repo=$1
	shift
	mkdir "$dir/accounting/releases"
	n=0
	for tag in "$@"; do
		git -C "$repo" archive --format=tar "$tag" >"$dir/accounting/releases/$(printf %02d $n).tar"
		n=$((n + 1))
	done
fi
git -C "$dir" add -A
git -C "$dir" commit -q -m "accounting: the file sets and git as it is"
git -C "$dir" tag base
printf '[core]\n\tcompression = 1\n' >"$dir/accounting/gitconfig"
git -C "$dir" commit -q -a -m "gitconfig: compress less"
git -C "$dir" tag loose
