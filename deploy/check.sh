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

step race detector
# Figures measured under the race detector mean nothing: tests that judge
# figures use a binary built without it, or skip.
go test -race -short -timeout 30m ./...

step go test ./...
go test ./...
