#!/usr/bin/env bash
# Removes repeats from URLs, with `tamis seen` and with other tools.
#
# usage: bench/seen.sh [--write-docs] [LINES]
#
# Needs GNU time, and in PATH: huniq and runiq (cargo install huniq runiq).
# Tools that are missing are left out. TAMIS is the program to measure.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
docs=
if [ "${1:-}" = --write-docs ]; then docs=docs/benchmarks.md; shift; fi
lines=${1:-10000000}
tamis=$(realpath "${TAMIS:-target/release/tamis}")
work=$(mktemp -d "${TMPDIR:-/tmp}/tamis-bench-seen-XXXXXX")
trap 'rm -r "$work"' EXIT

# Two lines in five are new, the others repeat a random earlier one.
awk -v n="$lines" 'BEGIN {
    srand(1)
    for (i = 0; i < n; i++) {
        k = (seen == 0 || rand() < 0.4) ? seen++ : int(rand() * seen)
        h = (k * 40503) % 1000003
        printf "https://www.site%d.example.org/archive/%d/%d/article-%d-%d.html\n",
            h % 50021, 1990 + h % 35, h % 12 + 1, h, k
    }
}' > "$work/urls"
different=$(awk -F'[-.]' '$(NF - 1) >= n { n = $(NF - 1) + 1 } END { print n }' "$work/urls")
megabytes=$(($(stat -c %s "$work/urls") / 1000000))

table=$work/table
measure() { # NAME COMMAND
    sh -c "cat '$work/urls' > /dev/null" # the page cache
    /usr/bin/time -o "$work/time" -f '%e %U %S %M' \
        bash -c "exec $2" < "$work/urls" > "$work/out" 2> "$work/err" || return 0
    read -r wall user system memory < "$work/time"
    awk -v name="$1" -v w="$wall" -v u="$user" -v s="$system" -v m="$memory" \
        -v out="$(wc -l < "$work/out")" 'BEGIN {
        printf "| %s | %.1f | %.1f | %.1f | %d |\n", name, w, u + s, m * 1.024 / 1000, out
    }' >> "$table"
}
seen() { rm -f "$work/seen"; measure "\`tamis seen\`, $1" "'$tamis' seen '$work/seen' --items $different --fpr $1 -"; }
seen 1%
seen 0.1%
lost=$(sed -n 's/.* about \(.*\) lost$/\1/p' "$work/err")
found=$((different - $(wc -l < "$work/out")))
seen 0.01%
huniq=
if command -v huniq > /dev/null; then measure huniq huniq; huniq=yes; fi
if command -v runiq > /dev/null; then measure runiq "runiq -"; fi
measure "awk '!seen[\$0]++'" "awk '!seen[\$0]++'"
measure "sort -u" "sort -u -T '$work'"

# Verdict on the goals: time and memory beside huniq's, and the lost lines.
goals() {
    awk -F'|' -v different="$different" '
        function verdict(reached) { return reached ? "reached" : "not reached" }
        $2 ~ /tamis seen/ {
            split($2, words, ", "); rate[++n] = words[2] + 0
            wall[n] = $3; cpu[n] = $4; memory[n] = $5; lost[n] = 1 - $6 / different
        }
        $2 ~ /huniq/ { huniq_wall = $3; huniq_cpu = $4; huniq_memory = $5 }
        END {
            for (i = 1; i <= n; i++) {
                if (cpu[i] > slowest) slowest = cpu[i]
                if (memory[i] > largest) largest = memory[i]
                # Four standard deviations above the rate.
                limit = rate[i] / 100 + 4 * sqrt(rate[i] / 100 / different)
                if (lost[i] > limit) over = 1
                repeated = repeated || lost[i] < 0
            }
            printf "* at most 1.3 times the CPU time of huniq: %s (%.2f);\n",
                verdict(slowest <= 1.3 * huniq_cpu), slowest / huniq_cpu
            printf "* at most 0.15 of the memory of huniq: %s (%.3f);\n",
                verdict(largest <= 0.15 * huniq_memory), largest / huniq_memory
            printf "* no repeat is printed: %s;\n", verdict(!repeated)
            printf "* lost lines within the rate asked for: %s.\n", verdict(!over)
        }' "$table"
}

section=$work/section
{
    echo "<!-- begin seen: bench/seen.sh --write-docs -->"
    echo
    echo "## Removing repeats"
    echo
    echo '```console'
    echo "\$ bench/seen.sh --write-docs${1:+ $1}"
    echo '```'
    echo
    echo "$lines URLs ($megabytes MB), $different of them different, from a file to a file."
    echo "CPU: user and system seconds. Machine: $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) cores."
    echo
    echo "| | seconds | CPU seconds | peak MB | lines printed |"
    echo "|---|---|---|---|---|"
    cat "$table"
    echo
    echo "At 0.1 % \`tamis seen\` expected to lose $lost new lines, and lost $found."
    if [ -n "$huniq" ]; then
        echo
        echo "Goals, of the slowest and largest run of \`tamis seen\`:"
        echo
        goals
    fi
    echo
    echo "<!-- end seen -->"
} > "$section"
cat "$section"
if [ -n "$docs" ]; then
    awk -v section="$section" '
        /^<!-- begin seen/ { while ((getline line < section) > 0) print line; skip = 1 }
        !skip { print }
        /^<!-- end seen/ { skip = 0 }
    ' "$docs" > "$work/docs"
    cp "$work/docs" "$docs"
fi
