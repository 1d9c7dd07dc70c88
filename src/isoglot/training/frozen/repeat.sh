#!/bin/sh
# Repeats this experiment and compares the results. ISOGLOT_DATA is the folder of the data sets.
set -e
data=$(cd "${{ISOGLOT_DATA:-.}}" && pwd)
cd "$(dirname "$0")"
export ISOGLOT_DATA="$data" OMP_NUM_THREADS={threads}
sum=$(command -v sha256sum || echo "shasum -a 256")
test ! -s files.sha256 || $sum -c files.sha256
test ! -s data.sha256 || (here=$PWD; cd "$data"; $sum -c "$here/data.sha256")
{command}
cd repeated; $sum -c ../results.sha256
