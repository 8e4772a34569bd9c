#!/usr/bin/env bash
# The best recipe for WMT14 on one machine with 8 GPUs, from download to report. What it will cost is printed first.
#   scripts/speedrun.sh                     # modern/wmt14_en_de_base_100k
#   scripts/speedrun.sh experiment=demo     # the same stages on a CPU, in two minutes
# Start it again after any interruption: what is done is not repeated, and training resumes.
set -euo pipefail
cd "$(dirname "$0")/.."
settings=$(printf "%q " "${@:-experiment=modern/wmt14_en_de_base_100k}")
make --no-print-directory describe ARGS="$settings"
make --no-print-directory all ARGS="$settings"
