#!/usr/bin/env bash
# Random nodes of every operator against two evaluators; then nodes broken in one place. TENON_SEED: those draws again.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
seed=${TENON_SEED:-$RANDOM}
echo "TENON_SEED=$seed"
meaning --seed "$seed" --draws "${TENON_DRAWS:-200}" --seconds 2400
meaning --seed "$seed" --draws "${TENON_DRAWS:-100}" --seconds 2400 --invalid --kinds crash sanitizer backends forms harness accepted meaning differs
