#!/usr/bin/env bash
# Z4: the quick tests on the emulated oldest x86-64, which has no vector instructions beyond SSE2 and SSE3. (test_aarch64.sh: the same
# on an in-order ARM core.)
. "$TENON_SOURCE/tests/nightly/common.sh"
need qemu-x86_64
[ "$(uname -m)" = x86_64 ] || { echo "skipped: builds for this machine, which is no x86-64"; exit 77; }
[ -z "$TENON_SANITIZE" ] || { echo "skipped under sanitizers"; exit 77; }
build oldest -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-x86_64;-cpu;qemu64"
# that the emulated one is old: the best level that it has
"$TENON_BUILD/nightly/oldest/tenon-emulated" run "$TENON_SOURCE/examples/data/mnist-cnn.onnx" --fill ones --isa avx2 >/dev/null 2>"$TENON_BUILD/nightly/oldest/isa" &&
    { echo "FAILED: the emulated CPU has AVX2"; exit 1; }
grep -q "this CPU has no avx2" "$TENON_BUILD/nightly/oldest/isa" || { cat "$TENON_BUILD/nightly/oldest/isa"; exit 1; }
quick oldest -E '^house/' --timeout 1800
