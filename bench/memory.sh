#!/usr/bin/env bash
# Peak memory of `tamis build` from a pipe, beside the promised limit.
#
# usage: bench/memory.sh [--write-docs] [KEYS [THREADS [KIND...]]]
#
# Needs GNU time and openssl, which makes the keys. TAMIS is the program to
# measure. Threads that share a core with others wait long for their turn to
# insert, and meanwhile the others read.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
docs=
arguments=$*
if [ "${1:-}" = --write-docs ]; then docs=docs/benchmarks.md; shift; fi
keys=${1:-1000000000}
threads=${2:-16}
shift $(($# < 2 ? $# : 2))
kinds=("$@")
if [ $# = 0 ]; then kinds=(blocked tinyset split bloom balanced); fi
tamis=$(realpath "${TAMIS:-target/release/tamis}")
work=$(mktemp -d "${TMPDIR:-/tmp}/tamis-bench-memory-XXXXXX")
trap 'rm -r "$work"' EXIT

table=$work/table
for kind in "${kinds[@]}"; do
    # `head` ends openssl by closing the pipe.
    { openssl enc -aes-128-ctr -nosalt -pass pass:tamis -pbkdf2 -in /dev/zero 2> /dev/null || true; } |
        head -c $((8 * keys)) |
        /usr/bin/time -o "$work/time" -f '%e %U %S %M' \
            "$tamis" build - -o "$work/filter" --force -q --key-format u64le \
            --items "$keys" --fpr 0.01 --kind "$kind" --threads "$threads"
    read -r wall user system memory < "$work/time"
    awk -v kind="$kind" -v filter="$(stat -c %s "$work/filter")" -v wall="$wall" \
        -v cpu="$user" -v kernel="$system" -v memory="$memory" -v threads="$threads" 'BEGIN {
        mib = 1048576
        more = memory / 1024 - filter / mib
        limit = 64 + 8 * threads
        printf "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %s |\n", kind, wall, cpu + kernel,
            filter / mib, more, limit, more <= limit ? "reached" : "not reached"
    }' | tee -a "$table" >&2
done

section=$work/section
{
    echo "<!-- begin memory: bench/memory.sh --write-docs -->"
    echo
    echo "### Memory of a build"
    echo
    echo '```console'
    echo "\$ bench/memory.sh $arguments"
    echo '```'
    echo
    echo "$keys random 64-bit keys from a pipe, 1 %, $threads threads on $(nproc) cores."
    echo "The limit beside the filter is 64 MiB and 8 MiB a thread; the program itself counts."
    echo "CPU: user and system seconds. Machine: $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo)."
    echo
    echo "| | seconds | CPU seconds | filter, MiB | more at the peak, MiB | limit, MiB | |"
    echo "|---|---|---|---|---|---|---|"
    cat "$table"
    echo
    echo "<!-- end memory -->"
} > "$section"
cat "$section"
if [ -n "$docs" ]; then
    awk -v section="$section" '
        /^<!-- begin memory/ { while ((getline line < section) > 0) print line; skip = 1 }
        !skip { print }
        /^<!-- end memory/ { skip = 0 }
    ' "$docs" > "$work/docs"
    cp "$work/docs" "$docs"
fi
