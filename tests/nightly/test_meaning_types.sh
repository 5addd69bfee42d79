#!/usr/bin/env bash
# Every version of every operator with every element type: taken where its schema lists it, refused elsewhere.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
"$python" "$TENON_SOURCE/tests/nightly/meaning/element_types.py" --driver "$TENON_BUILD/meaning-driver" --seed "${TENON_SEED:-1}"
