#!/bin/sh
# deploy/chain/up.sh DIR [PORT] - start a whole mail system on loopback, for tests:
#
#   submission --> Postfix --> mlmmj (the list) --> Postfix --> LMTP --> Dovecot --> IMAP
#
# Needs root and the Debian packages postfix, mlmmj, dovecot-imapd, dovecot-lmtpd
# and openssl. All configuration, queues, mail and logs are below DIR, which is
# made; an installed Postfix or Dovecot is not touched and may run beside it.
# deploy/chain/down.sh DIR stops everything; DIR is then yours to remove.
#
# Six ports are used, from PORT (20025) on. DIR/ports names them, for a shell:
#
#   SMTP_PORT        takes mail from anybody, and removes results that it did not find itself
#   SUBMISSION_PORT  takes mail from users after STARTTLS and AUTH, and adds
#                    Authentication-Results: mail.test; dkim=pass, dmarc=pass
#   RELAY_PORT       takes mail from mlmmj
#   IMAP_PORT        IMAP, with STARTTLS
#   IMAPS_PORT       IMAP over TLS
#   LMTP_PORT        delivery
#
# The list is devlist@lists.test (List-Id: <devlist.lists.test>), open to all,
# with the members bot@users.test and dev@users.test. Every user @users.test has a
# mailbox and the password "secret". DIR/cert.pem is the server's certificate, for
# localhost and 127.0.0.1, which clients have to trust.
set -eu

fail() { echo "up.sh: $*" >&2; exit 1; }

[ $# -ge 1 ] || fail "usage: up.sh DIR [PORT]"
[ "$(id -u)" = 0 ] || fail "Postfix and Dovecot need root to start"
for p in postfix dovecot doveadm mlmmj-make-ml mlmmj-sub mlmmj-receive openssl; do
	PATH=$PATH:/usr/sbin command -v $p >/dev/null || fail "$p is not installed: apt-get install postfix mlmmj dovecot-imapd dovecot-lmtpd openssl"
done
PATH=$PATH:/usr/sbin
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
[ ! -e "$dir/ports" ] || fail "$dir is in use: stop it with down.sh, or choose another folder"
base=${2:-20025}
smtp=$base submission=$((base + 1)) relay=$((base + 2)) imap=$((base + 3)) imaps=$((base + 4)) lmtp=$((base + 5))

# Servers give up their rights on the way; they all must reach what is theirs.
umask 022
chmod 755 "$dir"
mkdir -p "$dir/postfix" "$dir/spool" "$dir/data" "$dir/lists" "$dir/mail" "$dir/dovecot"
chown postfix "$dir/data"
chown nobody "$dir/mail"

openssl req -x509 -newkey rsa:2048 -nodes -days 7 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
	-keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
chmod 600 "$dir/key.pem"

# The list. Its answer file: address, owner, page, language.
printf '%s\n' lists.test owner@users.test http://lists.test en |
	mlmmj-make-ml -L devlist -s "$dir/lists" >/dev/null
list=$dir/lists/devlist
echo devlist@lists.test >"$list/control/listaddress"
echo owner@users.test >"$list/control/owner"
echo 127.0.0.1 >"$list/control/relayhost"
echo $relay >"$list/control/smtpport"
echo 'List-Id: <devlist.lists.test>' >"$list/control/customheaders"
chown -R nobody "$list"
for user in bot dev; do
	su -s /bin/sh nobody -c "$(command -v mlmmj-sub) -L '$list' -a $user@users.test -s"
done

# What anybody sends must not bring results in our name (RFC 8601, section 5).
printf '%s\n' '/^Authentication-Results:.*mail\.test/ IGNORE' >"$dir/postfix/strip"
# Whoever has logged in is who the signature of his own server would say.
printf '%s\n' '/./ PREPEND Authentication-Results: mail.test; dkim=pass header.d=users.test; dmarc=pass header.from=users.test' >"$dir/postfix/vouch"
# Everybody sends under his own address.
printf '%s\n' '/^([^@]+)@users\.test$/ $1, $1@users.test' >"$dir/postfix/logins"

cat >"$dir/postfix/main.cf" <<EOF
compatibility_level = 3.6
queue_directory = $dir/spool
data_directory = $dir/data
maillog_file = $dir/postfix.log
maillog_file_prefixes = $dir
myhostname = mail.test
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
disable_dns_lookups = yes
default_transport = error:no mail leaves this machine
relay_transport = error:no mail leaves this machine
relay_domains = lists.test
transport_maps = inline:{lists.test=mlmmj:}
mlmmj_destination_recipient_limit = 1
virtual_mailbox_domains = users.test
virtual_mailbox_maps = static:all
virtual_transport = lmtp:inet:127.0.0.1:$lmtp
smtputf8_enable = no
header_checks = regexp:$dir/postfix/strip
smtpd_tls_cert_file = $dir/cert.pem
smtpd_tls_key_file = $dir/key.pem
smtpd_sasl_type = dovecot
smtpd_sasl_path = private/auth
smtpd_sasl_security_options = noanonymous
smtpd_sender_login_maps = regexp:$dir/postfix/logins
EOF
cat >"$dir/postfix/master.cf" <<EOF
127.0.0.1:$smtp       inet n - n - - smtpd
127.0.0.1:$submission inet n - n - - smtpd
  -o smtpd_tls_security_level=encrypt
  -o smtpd_sasl_auth_enable=yes
  -o smtpd_client_restrictions=permit_sasl_authenticated,reject
  -o smtpd_sender_restrictions=reject_sender_login_mismatch,check_sender_access,regexp:$dir/postfix/vouch
  -o cleanup_service_name=believe
127.0.0.1:$relay      inet n - n - - smtpd
  -o cleanup_service_name=believe
cleanup    unix n - n - 0 cleanup
believe    unix n - n - 0 cleanup
  -o header_checks=
mlmmj      unix - n n - - pipe
  flags=ORhu user=nobody argv=$(command -v mlmmj-receive) -F -L $list
lmtp       unix - - n - - lmtp
qmgr       unix n - n 300 1 qmgr
pickup     unix n - n 60 1 pickup
rewrite    unix - - n - - trivial-rewrite
bounce     unix - - n - 0 bounce
defer      unix - - n - 0 bounce
trace      unix - - n - 0 bounce
verify     unix - - n - 1 verify
flush      unix n - n 1000? 0 flush
proxymap   unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
tlsmgr     unix - - n 1000? 1 tlsmgr
smtp       unix - - n - - smtp
relay      unix - - n - - smtp
error      unix - - n - - error
retry      unix - - n - - error
discard    unix - - n - - discard
showq      unix n - n - - showq
anvil      unix - - n - 1 anvil
scache     unix - - n - 1 scache
postlog    unix-dgram n - n - 1 postlogd
EOF

cat >"$dir/dovecot.conf" <<EOF
base_dir = $dir/dovecot
state_dir = $dir/dovecot
log_path = $dir/dovecot.log
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_cert = <$dir/cert.pem
ssl_key = <$dir/key.pem
disable_plaintext_auth = no
mail_location = maildir:$dir/mail/%n
mail_uid = nobody
mail_gid = nogroup
first_valid_uid = 1
first_valid_gid = 1
default_vsz_limit = 0
auth_username_format = %n
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=$dir/mail/%n
}
service imap-login {
  chroot =
  inet_listener imap {
    port = $imap
  }
  inet_listener imaps {
    port = $imaps
  }
}
service lmtp {
  inet_listener lmtp {
    address = 127.0.0.1
    port = $lmtp
  }
}
service auth {
  unix_listener $dir/spool/private/auth {
    mode = 0666
  }
}
protocol lmtp {
  auth_username_format = %n
}
EOF

# From here on something runs: a start that does not succeed is undone.
trap 'status=$?; [ $status = 0 ] || { tail -n 20 "$dir/postfix.log" "$dir/dovecot.log" >&2 2>/dev/null; sh "$here/down.sh" "$dir"; }' EXIT
# Postfix makes its queue's folders, Dovecot puts a socket into one of them.
postfix -c "$dir/postfix" start >"$dir/start.log" 2>&1 </dev/null || fail "Postfix does not start: $(cat "$dir/start.log")"
dovecot -c "$dir/dovecot.conf" >"$dir/start.log" 2>&1 </dev/null || fail "Dovecot does not start: $(cat "$dir/start.log")"

cat >"$dir/ports" <<EOF
SMTP_PORT=$smtp
SUBMISSION_PORT=$submission
RELAY_PORT=$relay
IMAP_PORT=$imap
IMAPS_PORT=$imaps
LMTP_PORT=$lmtp
EOF
