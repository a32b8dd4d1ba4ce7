#!/bin/sh
# apt_install.sh WHAT "PROGRAMS" "PACKAGES": Debian's packages for tests that talk to real programs, no service being started.
# Where they cannot be installed those tests skip, saying so; where CI is set that is a failure.
set -u
what=$1 programs=$2 packages=$3
give_up() {
  echo "$what is not installed: $1; the tests that need it will skip" >&2
  [ -z "${CI:-}" ]
  exit
}
PATH="$PATH:/usr/sbin:/sbin"
present() {
  for name in $programs; do
    command -v "$name" >/dev/null || return 1
  done
}
present && exit 0
command -v apt-get >/dev/null || give_up "no apt-get here"
[ "$(id -u)" = 0 ] || give_up "only root can install it"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt() { timeout 600 apt-get -o DPkg::Lock::Timeout=300 --yes --quiet "$@"; }
# shellcheck disable=SC2086 # one word a package
apt install --no-install-recommends $packages >/dev/null 2>&1 && present && exit 0
apt update >/dev/null 2>&1
# shellcheck disable=SC2086
apt install --no-install-recommends $packages >/dev/null || give_up "apt-get failed"
present || give_up "a program is still missing"
