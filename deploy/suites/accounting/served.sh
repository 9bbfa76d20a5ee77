#!/bin/sh
# Puts sets into repositories below /tmp/served, each with an empty one beside it
# to pull into: served.sh small|full SET...
set -eu
here=$(dirname "$0")
size=$1
shift
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE=2026-11-02T09:00:00Z
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org GIT_COMMITTER_DATE=2026-11-02T09:00:00Z
for set in "$@"; do
	python3 "$here/sets.py" "$set" "$size" "/tmp/served/$set"
	git init -q -b main "/tmp/served/$set"
	git -C "/tmp/served/$set" add -A
	git -C "/tmp/served/$set" commit -q -m import
	git init -q -b main "/tmp/pulled-$set"
done
