#!/bin/sh
# deploy/long.sh - tests that take long: the planted project with ten seeds
# (about half an hour). CI runs a tenth of it: each mailbox once.
set -eu
cd "$(dirname "$0")/.."
PATCHBENCH_LONG=planted go test -count=1 -timeout 60m -v -run TestPlanted ./bot
PATCHBENCH_LONG=planted-seeds go test -count=1 -timeout 90m -v -run TestPlanted ./bot
PATCHBENCH_LONG=apply go test -count=1 -timeout 60m -v -run TestApplyCases ./bot
PATCHBENCH_APPLY_HISTORIES=200 go test -count=1 -timeout 60m -run TestAgainstGitAm ./mbox/tree
PATCHBENCH_LONG=accounting go test -count=1 -timeout 60m -v -run TestAccountingExact ./bot
PATCHBENCH_LONG=watch go test -count=1 -timeout 60m -v -run 'TestMonth|TestDeathAnywhere' ./bot/watch
PATCHBENCH_LONG=kills go test -count=1 -timeout 60m -v -run TestManyKills ./bot
