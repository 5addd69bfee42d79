#!/usr/bin/env bash
# A few random nodes of every operator against two evaluators, and broken ones: two minutes.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
meaning --seed "${TENON_SEED:-1}" --draws 12 --seconds 600 --kinds crash sanitizer backends forms differs refused harness
meaning --seed "${TENON_SEED:-1}" --draws 6 --seconds 600 --invalid --kinds crash sanitizer backends forms harness accepted meaning differs
