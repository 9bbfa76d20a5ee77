#!/bin/sh
# deploy/replay.sh [SERIES [DIR]] - replays recorded runs through the method of
# bench/compare and through what is in use elsewhere, and prints the table of
# deploy/verdicts.md: false alarms a series, changes found, and found with
# nothing else beside. SERIES of each kind (300); about two minutes of one core.
# DIR is what deploy/truth.sh has measured; without it the recorded traces of
# the shared cases are replayed.
set -eu
series=${1:-300}
traces=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! PATCHBENCH_REPLAY=$series PATCHBENCH_TRACES=$traces go test -count=1 -timeout 120m -v -run 'TestReplay$' ./bench/compare >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
if ! sed -n 's/^ *|/|/p' "$log" | grep .; then
	cat "$log" >&2 # skipped, with the reason
	exit 1
fi
