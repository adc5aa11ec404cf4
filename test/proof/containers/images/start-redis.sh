#!/bin/sh
# Runs redis-server as its own user, on all addresses.
set -eu
[ "$1" = redis-server ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  chown -R redis .
  exec gosu redis "$0" "$@"
fi
shift
exec redis-server --protected-mode no --bind '* -::*' "$@"
