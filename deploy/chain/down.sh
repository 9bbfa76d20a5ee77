#!/bin/sh
# deploy/chain/down.sh DIR - stop the mail system that up.sh started below DIR,
# and nothing else.
set -u

[ $# = 1 ] && [ -d "$1/postfix" ] || { echo "usage: down.sh DIR, a folder of up.sh" >&2; exit 2; }
PATH=$PATH:/usr/sbin
dir=$(cd "$1" && pwd)
status=0

# stopped PIDFILE - waits until the process named there has ended.
stopped() {
	pid=$(tr -d ' ' <"$1" 2>/dev/null) || return 0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.5
	done
	echo "down.sh: process $pid of $1 still runs" >&2
	return 1
}

if [ -e "$dir/spool/pid/master.pid" ]; then
	postfix -c "$dir/postfix" stop >/dev/null 2>&1
	stopped "$dir/spool/pid/master.pid" || status=1
fi
if [ -e "$dir/dovecot/master.pid" ]; then
	pid=$(cat "$dir/dovecot/master.pid")
	doveadm -c "$dir/dovecot.conf" stop >/dev/null 2>&1 || kill "$pid" 2>/dev/null
	echo "$pid" >"$dir/dovecot.pid"
	stopped "$dir/dovecot.pid" || status=1
fi
rm -f "$dir/ports"
exit $status
