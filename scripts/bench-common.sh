# shellcheck shell=bash
# What the bench scripts share. Sourced after common.sh.

# median: of the numbers on stdin.
median() { sort -g | awk '{ x[NR] = $1 } END { if (NR) print x[int((NR + 1) / 2)] }'; }
divided() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.3f", a / b; else printf "?" }'; }
# goal NAME VALUE LEAST: one line of the result.
goal() {
  awk -v name="$1" -v value="$2" -v least="$3" 'BEGIN {
    printf "  %-66s %8s  goal %-6s %s\n", name, value, least, (value + 0 >= least + 0 ? "reached" : "MISSED") }'
}

# make_tokens FILE VOCABULARY: random tokens in nanoGPT's format, 16 bits each without a header.
make_tokens() {
  [[ -s $1 ]] && return
  LC_ALL=C awk -v vocabulary="$2" 'BEGIN {
    srand(1)
    for (i = 0; i < 1000000; i++) { t = int(rand() * vocabulary); printf "%c%c", t % 256, int(t / 256) }
  }' >"$1.part"
  mv "$1.part" "$1"
}
