#!/bin/sh
# deploy/check.sh - what must hold before a change is shown: format, vet,
# staticcheck, the race detector, and all tests as the README calls them.
# Run it from anywhere. With CI=true a missing server or tool fails the tests
# that need it; without, they skip and say so.
set -eu
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step gofmt
unformatted=$(gofmt -l $(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))
if [ -n "$unformatted" ]; then
	printf 'not formatted (run gofmt -w):\n%s\n' "$unformatted" >&2
	exit 1
fi

step go mod verify
go mod verify

step go vet
go vet ./...

step staticcheck
go tool staticcheck ./...

step layers
go test -count=1 -run 'Layers|ForbiddenImports|TopLevel' ./bot

# tests FLAGS - go test, and once more for the packages that failed, from scratch:
# the tests start real programs on a machine that others may use as well. What
# passes only the second time is named, and is to be mended.
tests() {
	log=$(mktemp)
	{ go test "$@" ./... && echo passed >"$log.passed"; } 2>&1 | tee "$log"
	failed=$(sed -n 's/^FAIL[[:space:]]\{1,\}\([^[:space:]]\{1,\}\).*/\1/p' "$log")
	passed=$(cat "$log.passed" 2>/dev/null) || true
	rm -f "$log" "$log.passed"
	[ -z "$passed" ] || return 0
	[ -n "$failed" ] || exit 1
	step "once more, since they failed:" $failed
	# shellcheck disable=SC2086
	go test -count=1 "$@" $failed
	step "passed only the second time:" $failed
}

step race detector
# Figures measured under the race detector mean nothing: tests that judge
# figures use a binary built without it, or skip. SQLite is C translated to Go: a
# third of its time goes into checks of its pointer arithmetic, which is not ours.
tests -race -short -timeout 30m -gcflags=modernc.org/...=-d=checkptr=0

step go test ./...
tests -timeout 30m
