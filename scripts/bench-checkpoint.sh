#!/usr/bin/env bash
# Times checkpoints beside their goals: write and read bandwidth against dd to the same disk, the pause of a save that
# goes on beside the steps, and resuming. One rank with a model of GPT-2's size: weights and two moments, 1.5 GB.
#   scripts/bench-checkpoint.sh [FOLDER]      default: build/bench; FOLDER is on the disk that is to be measured
# HPT_BENCH_ROUNDS=N  how often each of a comparison is run (default 3)
source "$(dirname "$0")/common.sh"
source scripts/bench-common.sh

rounds=${HPT_BENCH_ROUNDS:-3}
folder=${1:-build/bench}
hpt_train=build/release/apps/hpt-train/hpt-train
run=$folder/run-checkpoint
saved=$run/checkpoints
mkdir -p "$folder"

# train [SET...]: saves after every step and removes none, which dd does not either; metrics and log are the run's.
train() {
  local sets=()
  for set; do sets+=(--set "$set"); done
  "$hpt_train" --config "$folder/checkpoint.yaml" "${sets[@]}" >"$folder/log.txt" 2>&1 ||
    { tail -n 20 "$folder/log.txt" >&2 && die "the run failed"; }
}

# of_steps KEY: what metrics.jsonl tells, but for the first two steps, which touch memory for the first time.
of_steps() { sed -n 's/.*"step": *\([0-9]*\),.*/\1 &/p' "$run/metrics.jsonl" | awk '$1 > 2' | value_of "$1"; }
value_of() { sed -n "s/.*\"$1\": *\([-+.0-9e]*\).*/\1/p"; }

# seconds COMMAND...: what it took.
seconds() {
  local begun=$EPOCHREALTIME
  "$@" >"$folder/log.txt" 2>&1 || { tail -n 20 "$folder/log.txt" >&2 && die "$1 failed"; }
  awk -v from="$begun" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }'
}

# forget FILE...: so that the next read comes from the disk.
forget() {
  local file
  for file; do dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none; done
}

megabytes_per_s() { awk -v bytes="$1" -v s="$2" 'BEGIN { printf "%.0f", bytes / s / 1e6 }'; }

# compare NAME OURS DD: files of seconds for the same bytes. The fastest of each: what a virtual machine gets of its
# host's memory for the first time, it may get at a fifth of the disk's speed, whoever needs it.
compare() {
  local ours theirs
  ours=$(sort -g "$2" | head -n 1) theirs=$(sort -g "$3" | head -n 1)
  printf '  %s: %s MB/s, dd %s MB/s\n' "$1" "$(megabytes_per_s "$bytes" "$ours")" "$(megabytes_per_s "$bytes" "$theirs")"
  goal "$1: ours / dd" "$(divided "$theirs" "$ours")" 0.8
}

newest() { find "$saved" -name 'step-*' -type d | sort | tail -n 1; }

writing() {
  printf 'write: a save that the steps wait for, from its begin to its commit, beside dd of the same bytes with fsync\n'
  local round
  rm -f "$folder"/write.*
  for ((round = 0; round < rounds; round++)); do
    rm -rf "$run"
    train checkpoint.async=false run.steps=6
    of_steps checkpoint_pause_s >>"$folder/write.ours"
    shard=$(newest)/shard-00000.safetensors
    bytes=$(stat -c %s "$shard")
    cat "$shard" >/dev/null
    # Removed after each, untimed: where a virtual machine is slow to get memory, dd writes to what it had before.
    for _ in 1 2 3 4; do
      seconds dd if="$shard" of="$folder/dd" bs=1M conv=fsync >>"$folder/write.dd"
      rm "$folder/dd"
    done
  done
  compare write "$folder/write.ours" "$folder/write.dd"
}

reading() {
  printf 'read: every byte from the disk, by verify and by a run that goes on, beside dd\n'
  local round
  rm -f "$folder"/read.*
  for ((round = 0; round < rounds; round++)); do
    forget "$shard"
    seconds "$hpt_train" checkpoint verify "$(newest)" >>"$folder/read.verify"
    forget "$shard"
    seconds dd if="$shard" of=/dev/null bs=1M >>"$folder/read.dd"
    forget "$shard"
    # As much memory as a run's, which a system that hands out memory slowly is slow to fill.
    seconds dd if="$shard" of=/dev/null bs="$bytes" iflag=fullblock count=1 >>"$folder/read.whole"
    forget "$shard"
    train checkpoint.every=0 run.steps=6
    sed -n 's/^resumed after step .*; read in \([0-9.]*\) s$/\1/p' "$folder/log.txt" >>"$folder/read.resume"
  done
  compare "verify" "$folder/read.verify" "$folder/read.dd"
  compare "resume, with the proof that it is what was saved, beside dd into memory" "$folder/read.resume" \
    "$folder/read.whole"
}

pausing() {
  printf 'pause: a save beside the steps\n'
  rm -rf "$run"
  train run.steps=8 model.seq_length=256 batch.micro=4 batch.global=4 checkpoint.every=2
  local pause step copy
  # The line after a save tells its begin; others tell its commit, which takes next to nothing.
  of_steps checkpoint_pause_s | sort -g | tail -n 3 >"$folder/pause"
  pause=$(median <"$folder/pause") step=$(of_steps step_time_s | median)
  copy=$(build/release/tests/checkpoint/bench_copy "$bytes")
  printf '  a step %.3f s, the pause of a save %.3f s, of which copying %.3f s\n' "$step" "$pause" "$copy"
  goal "5 % of a step and the copy / pause" \
    "$(awk -v s="$step" -v c="$copy" -v p="$pause" 'BEGIN { printf "%.3f", (0.05 * s + c) / p }')" 1
}

scripts/install-packages build run
configure release >/dev/null
cmake --build --preset release --target hpt-train bench_copy >/dev/null
make_tokens "$folder/random.bin" 50257
cat >"$folder/checkpoint.yaml" <<YAML
run: {name: bench-checkpoint, steps: 4, seed: 1, dir: $run}
model: {family: gpt, layers: 12, hidden: 768, heads: 12, seq_length: 16, vocab_size: 50257}
batch: {micro: 1, global: 1}
optimizer: {lr: 1.0e-4, warmup_steps: 1}
data: {train: $folder/random.bin}
checkpoint: {every: 1, keep: 9}
log: {every: 1, tensorboard: false}
YAML
writing
reading
pausing
rm -rf "$run"
