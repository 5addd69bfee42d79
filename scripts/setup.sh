#!/usr/bin/env bash
# Installs what building and testing needs (Debian, Ubuntu): `setup.sh`, or `setup.sh nightly` for the nightly checks too.
# Does nothing when all of it is there.
set -euo pipefail
packages=(gcc g++ libc6-dev cmake ninja-build pkg-config libcmocka-dev binutils
    libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev) # the last line: pictures (ImageDecoder), optional
[ "${1:-}" != nightly ] || packages+=(clang clang-format clang-tidy libclang-rt-14-dev valgrind qemu-user
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross)

if ! command -v dpkg-query >/dev/null; then
    for tool in cc cmake ninja pkg-config; do
        command -v $tool >/dev/null || { echo "setup: please install $tool (and cmocka)" >&2; exit 1; }
    done
    exit 0
fi
missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "setup: installing ${missing[*]}"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq </dev/null
$sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
