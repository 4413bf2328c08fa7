#!/usr/bin/env bash
# Times training on this machine's CPU beside its goals: one rank against the peer, the share of the machine's GEMM
# rate, layouts at equal work, eight ranks of configs/tiny.yaml, collectives beside MPI's, start-up. What is compared
# takes turns in one run, and medians are told. The tokens are random; all files go to build/bench.
#   scripts/bench-cpu.sh [PART...]      default: all of: one-rank gemm layouts tiny collectives startup
# HPT_PEER=FOLDER     the peer, a program that one would use otherwise: FOLDER/torch.sh tuned|default tiny|small fp32
#                     THREADS --steps N must print "... N tokens/s; ... rss N MiB"; without it only ours is timed
# HPT_BENCH_ROUNDS=N  how often each of a comparison is run (default 3)
source "$(dirname "$0")/common.sh"
source scripts/bench-common.sh

rounds=${HPT_BENCH_ROUNDS:-3}
steps=6
folder=build/bench
hpt_train=build/release/apps/hpt-train/hpt-train
tests=build/release/tests
peer=${HPT_PEER:-}
[[ -z $peer || -x $peer/torch.sh ]] || die "$peer/torch.sh: not there or not a program (HPT_PEER)"
mkdir -p "$folder"

# write_config NAME LAYERS HIDDEN HEADS
write_config() {
  cat >"$folder/$1.yaml" <<YAML
run: {name: bench-$1, steps: $steps, seed: 1, dir: $folder/run-$1}
model: {family: gpt, layers: $2, hidden: $3, heads: $4, seq_length: 256, vocab_size: 50257}
batch: {micro: 4, global: 4}
optimizer: {lr: 1.0e-4}
data: {train: $folder/random.bin}
log: {every: 1}
YAML
}

# peak_kib PID: the largest resident set until the process ends.
peak_kib() {
  local peak=0 now
  while now=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null) && [[ -n $now ]]; do
    peak=$now
    sleep 0.1
  done
  echo "$peak"
}

# ours NAME RANKS THREADS [SET...]: trains; adds the tokens/s of the steps after the first to $folder/NAME.ours.LABEL,
# where LABEL is the variable `label`, and the first process's peak memory to the same with .kib.
ours() {
  local name=$1 ranks=$2 threads=$3 sets=() pid
  shift 3
  for set; do sets+=(--set "$set"); done
  local launch=()
  ((ranks == 1)) || launch=(mpirun -n "$ranks" --oversubscribe --bind-to none)
  "${launch[@]}" "$hpt_train" --config "$folder/$name.yaml" --set run.threads="$threads" "${sets[@]}" \
    >"$folder/log.txt" 2>&1 &
  pid=$!
  peak_kib "$pid" >>"$folder/$label.kib"
  wait "$pid" || { tail -n 20 "$folder/log.txt" >&2 && die "$name on $ranks ranks failed"; }
  sed -n 's/.*"step": *\([0-9]*\),.*"tokens_per_s": *\([-+.0-9e]*\).*/\1 \2/p' "$folder/run-$name/metrics.jsonl" |
    awk '$1 > 1 { print $2 }' >>"$folder/$label.rate"
}

# theirs HOW NAME: the peer once.
theirs() {
  "$peer/torch.sh" "$1" "$2" fp32 2 --steps "$steps" >"$folder/log.txt" 2>&1 || true
  sed -n 's|.*[; ]\([0-9.]*\) tokens/s.*|\1|p' "$folder/log.txt" >>"$folder/$label.rate"
  sed -n 's|.*rss \([0-9.]*\) MiB.*|\1|p' "$folder/log.txt" | awk '{ print $1 * 1024 }' >>"$folder/$label.kib"
  [[ -s $folder/$label.rate ]] || { tail -n 20 "$folder/log.txt" >&2 && die "the peer told no tokens/s"; }
}

fresh() { for label; do rm -f "$folder/$label.rate" "$folder/$label.kib"; done; }
rate() { median <"$folder/$1.rate"; }
mebibytes() { median <"$folder/$1.kib" | awk '{ printf "%.0f", $1 / 1024 }'; }

one_rank() {
  printf 'fp32, one rank with 2 threads\n'
  local model round
  for model in tiny small; do
    fresh "$model.ours" "$model.tuned" "$model.default"
    for ((round = 0; round < rounds; round++)); do
      label=$model.ours ours "$model" 1 2
      [[ -n $peer ]] || continue
      label=$model.tuned theirs tuned "$model"
      label=$model.default theirs default "$model"
    done
    printf '  %-10s ours %8.1f tokens/s, %5s MiB\n' "$model" "$(rate "$model.ours")" "$(mebibytes "$model.ours")"
    [[ -n $peer ]] || continue
    printf '  %-10s peer %8.1f tokens/s tuned, %8.1f as installed, %5s MiB\n' "$model" "$(rate "$model.tuned")" \
      "$(rate "$model.default")" "$(mebibytes "$model.tuned")"
    goal "$model: ours / the peer tuned" "$(divided "$(rate "$model.ours")" "$(rate "$model.tuned")")" \
      "$([[ $model == tiny ]] && echo 1.15 || echo 1.05)"
    goal "$model: ours / the peer as installed" "$(divided "$(rate "$model.ours")" "$(rate "$model.default")")" 1.7
  done
  [[ -n $peer ]] || { echo "  HPT_PEER is not set: no peer to compare with" && return; }
  goal "tiny: peak memory, the peer's (as installed) / ours" \
    "$(divided "$(mebibytes tiny.default)" "$(mebibytes tiny.ours)")" 2
}

# What the products of a step of `small` reach by themselves, and the whole step's rate.
gemm() {
  printf 'share of the GEMM rate, small, one rank with 2 threads\n'
  "$tests/backend/bench_ops" 12 768 12 2 >"$folder/ops.txt"
  local products step
  products=$(sed -n 's/^oneDNN GEMM rate \([0-9.]*\).*/\1/p' "$folder/ops.txt")
  fresh small.gemm
  label=small.gemm ours small 1 2
  # FLOP of a token: 72 L H^2 + 6 V H + 12 L T H
  step=$(rate small.gemm | awk '{ print $1 * (72 * 12 * 768 * 768 + 6 * 50257 * 768 + 12 * 12 * 256 * 768) / 1e9 }')
  printf '  oneDNN on the products of a step %s GFLOP/s, the whole step %.1f GFLOP/s\n' "$products" "$step"
  goal "small: whole step / GEMM rate" "$(divided "$step" "$products")" 0.8
  sed 's/^/    /' "$folder/ops.txt"
}

layouts() {
  printf 'layouts of small, one thread a rank, beside one rank with 2 threads at equal work\n'
  fresh layout.one8 layout.dp layout.one4 layout.tp
  local round
  for ((round = 0; round < rounds; round++)); do
    label=layout.one8 ours small 1 2 batch.global=8 run.steps=4
    label=layout.dp ours small 2 1 batch.global=8 run.steps=4
    label=layout.one4 ours small 1 2
    label=layout.tp ours small 2 1 parallel.tp=2
  done
  goal "dp 2 / one rank" "$(divided "$(rate layout.dp)" "$(rate layout.one8)")" 0.97
  goal "tp 2 / one rank" "$(divided "$(rate layout.tp)" "$(rate layout.one4)")" 0.88
  "$tests/pipeline/bench_pipeline" "$folder/small.yaml" parallel.pp=2 batch.global=32 >"$folder/pipeline.txt"
  sed 's/^/  /' "$folder/pipeline.txt"
  goal "pp 2, 8 micro-batches / simulated" "$(sed -n 's/.*ratio \([0-9.]*\).*/\1/p' "$folder/pipeline.txt")" 0.95
}

tiny() {
  printf 'configs/tiny.yaml on 8 ranks (tp 2 x pp 2 x dp 2) beside 2 ranks (dp 2), one thread a rank\n'
  sed -e "s|data/kjv.bin|$folder/bytes.bin|" -e '/valid:/d' -e '/^eval:/,/^log:/{/^log:/!d}' \
    -e 's/every: .*/every: 1/' configs/tiny.yaml >"$folder/tiny-yaml.yaml"
  make_tokens "$folder/bytes.bin" 257
  local round sets=(run.steps=20 "run.dir=$folder/run-tiny-yaml")
  fresh tiny.8 tiny.2
  for ((round = 0; round < rounds; round++)); do
    label=tiny.8 ours tiny-yaml 8 1 "${sets[@]}"
    label=tiny.2 ours tiny-yaml 2 1 "${sets[@]}" parallel.tp=1 parallel.pp=1 parallel.dp=2
  done
  printf '  8 ranks %.0f tokens/s, 2 ranks %.0f\n' "$(rate tiny.8)" "$(rate tiny.2)"
  goal "8 ranks / 2 ranks" "$(divided "$(rate tiny.8)" "$(rate tiny.2)")" 0.8
}

collectives() {
  printf 'collectives beside MPI, over processes\n'
  local ranks
  for ranks in 2 8; do
    mpirun -n "$ranks" --oversubscribe --bind-to none "$tests/comm/bench_all_reduce" | tee "$folder/collectives.txt" |
      sed 's/^/  /'
    while read -r name _ _ kib _ _ _ _ _ _ _ _ ratio; do
      [[ $kib != 1024 ]] || goal "$name of 1 MiB on $ranks ranks, MPI / ours" "$ratio" 2
    done <"$folder/collectives.txt"
  done
}

# From the start of mpirun to the start of step 1, which is its end less its own time.
startup() {
  printf 'start-up to the first step of configs/tiny.yaml on 8 ranks\n'
  [[ -f $folder/tiny-yaml.yaml ]] || tiny >/dev/null
  local round begun
  rm -f "$folder/startup"
  for ((round = 0; round < rounds; round++)); do
    begun=$EPOCHREALTIME
    mpirun -n 8 --oversubscribe --bind-to none "$hpt_train" --config "$folder/tiny-yaml.yaml" --set run.threads=1 \
      --set run.steps=3 --set optimizer.warmup_steps=1 --set run.dir="$folder/run-startup" 2>&1 |
      tee "$folder/log.txt" |
      while read -r line; do
        [[ $line != "step 1/"* ]] || echo "$EPOCHREALTIME"
      done >"$folder/first-step" || { tail -n 20 "$folder/log.txt" >&2 && die "start-up: the run failed"; }
    sed -n 's/.*"step": *1,.*"step_time_s": *\([-+.0-9e]*\).*/\1/p' "$folder/run-startup/metrics.jsonl" |
      awk -v from="$begun" -v to="$(head -n 1 "$folder/first-step")" '{ print to - from - $1 }' >>"$folder/startup"
  done
  printf '  %.2f s (median of %d), goal: under 1 s\n' "$(median <"$folder/startup")" "$rounds"
}

scripts/install-packages build run
configure release >/dev/null
cmake --build --preset release --target hpt-train bench_ops bench_pipeline bench_all_reduce >/dev/null
make_tokens "$folder/random.bin" 50257
write_config tiny 4 256 4
write_config small 12 768 12
(($#)) || set -- one-rank gemm layouts tiny collectives startup
for part; do
  case $part in
    one-rank) one_rank ;;
    gemm | layouts | tiny | collectives | startup) "$part" ;;
    *) die "$part: not a part (try one-rank, gemm, layouts, tiny, collectives, startup)" ;;
  esac
done
