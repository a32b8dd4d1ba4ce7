#!/bin/sh
# Debian's prometheus for the tests that talk to a real one, without its service being started.
# Where it cannot be installed those tests skip, saying so; where CI is set that is a failure.
set -u
give_up() {
  echo "prometheus is not installed: $1; the tests that need it will skip" >&2
  [ -z "${CI:-}" ]
  exit
}
command -v prometheus >/dev/null && exit 0
command -v apt-get >/dev/null || give_up "no apt-get here"
[ "$(id -u)" = 0 ] || give_up "only root can install it"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
install="apt-get install --yes --quiet --no-install-recommends prometheus"
$install >/dev/null 2>&1 && exit 0
apt-get update --quiet >/dev/null 2>&1
$install >/dev/null || give_up "apt-get failed"
