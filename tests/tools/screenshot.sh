#!/bin/sh
# screenshot.sh PAGE PICTURE WIDTH,HEIGHT: the top of a local page as a headless Chromium draws it.
set -eu
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$profile" --virtual-time-budget=10000 \
  --window-size="$3" --screenshot="$2" "file://$(realpath "$1")" 2>/dev/null
