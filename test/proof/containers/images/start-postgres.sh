#!/bin/sh
# Creates the database on the first start, as POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB say, and runs the command.
set -eu
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  chown -R postgres "$PGDATA" && chmod 0700 "$PGDATA"
  install -d -o postgres -g postgres -m 3777 /var/run/postgresql
  exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres} secret=$(mktemp)
  echo "$POSTGRES_PASSWORD" > "$secret"
  initdb --username="$user" --pwfile="$secret" && rm "$secret"
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  pg_ctl start -w -o "-c listen_addresses=''"
  [ "${POSTGRES_DB:-$user}" = postgres ] || createdb --username="$user" "${POSTGRES_DB:-$user}"
  pg_ctl stop -w -m fast
fi
exec "$@"
