#!/usr/bin/env bash
# Z4: cross-builds for 64-bit ARM and runs the quick tests under qemu, as an in-order core has it. cmocka for ARM is taken from Debian's archive into
# the build folder; the system is left as it is.
. "$TENON_SOURCE/tests/nightly/common.sh"
need aarch64-linux-gnu-gcc qemu-aarch64 apt-get dpkg-deb
folder=$TENON_BUILD/nightly/aarch64
if [ ! -e "$folder/cmocka/cmocka.h" ]; then
    apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder/cmocka"
    options=(-qq -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
    (cd "$apt" && apt-get "${options[@]}" update && apt-get "${options[@]}" download libcmocka0:arm64) ||
        { echo "skipped: libcmocka0:arm64 can't be downloaded"; exit 77; }
    dpkg-deb -x "$apt"/libcmocka0_*_arm64.deb "$apt/root"
    cp -L "$apt"/root/usr/lib/aarch64-linux-gnu/libcmocka.so.0 "$folder/cmocka/libcmocka.so.0"
    ln -sf libcmocka.so.0 "$folder/cmocka/libcmocka.so"
    rm -rf "$apt"
    cp /usr/include/cmocka.h "$folder/cmocka/"
fi
build aarch64 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-cpu;cortex-a53;-L;/usr/aarch64-linux-gnu" \
    -DCMOCKA_INCLUDE_DIR="$folder/cmocka" -DCMOCKA_LIBRARY="$folder/cmocka/libcmocka.so"
quick aarch64 -E '^house/' --timeout 1800
