#!/bin/sh
# deploy/long.sh - tests that take long: the planted project with ten seeds
# (about half an hour). CI runs a tenth of it: each mailbox once.
set -eu
cd "$(dirname "$0")/.."
PATCHBENCH_LONG=planted go test -count=1 -timeout 60m -v -run TestPlanted ./bot
PATCHBENCH_LONG=planted-seeds go test -count=1 -timeout 90m -v -run TestPlanted ./bot
