#!/bin/sh
# deploy/truth.sh DIR - how far verdicts can be trusted on this machine, end to
# end: real builds, real runs.
#
#   A/A      20 series of eight versions that do the same (their builds differ
#            in an unused string), four benchmarks of about 30 ms, 20 rounds,
#            under load: at most two series may have any flag
#   planted  +2 % and +5 % of time and +5 % of memory in a series of five, five
#            seeds, rounds until decided, 80 s at most
#
# It takes about half an hour. What it measured stays in DIR, and a second call
# with the same DIR goes on where the first one was stopped. PATCHBENCH_SERIES=N
# sets the number of series of both. `deploy/truth.sh DIR aa` and `deploy/truth.sh
# DIR truth` run one of the two.
set -eu
dir=${1:?usage: deploy/truth.sh DIR [aa|truth]}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cd "$(dirname "$0")/.."
run() { PATCHBENCH_LONG=$1 PATCHBENCH_DIR=$dir go test -count=1 -timeout 120m -v -run "$2" ./bot; }
case ${2:-both} in
aa) run aa 'TestAA$' ;;
truth) run truth 'TestTruth$' ;;
both) run aa 'TestAA$' && run truth 'TestTruth$' ;;
*) echo "usage: deploy/truth.sh DIR [aa|truth]" >&2; exit 2 ;;
esac
