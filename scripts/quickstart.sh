#!/usr/bin/env bash
# From a fresh Debian 12 to a trained model: packages, build, real text, 8 ranks as tp 2 x pp 2 x dp 2, and a verdict.
# Stop it and start it again at will: what is made is made under another name first, what is there already is kept.
source "$(dirname "$0")/common.sh"

hpt_train=build/release/apps/hpt-train/hpt-train
run_dir=runs/tiny # of configs/tiny.yaml
must_beat=2.7     # nats a byte; not under it: training did not work
log=build/quickstart.log

mkdir -p build data
exec 9>build/quickstart.lock
flock -n 9 || die "another quickstart is at work in this folder"

exec 8>&2 # for stop, which may be called where stderr is the log
job=
stop() {
  trap - INT TERM HUP
  if [[ -n $job ]]; then
    kill -TERM -- "-$job" 2>/dev/null || true
    # The shell that runs a function ends before what it started does.
    while kill -0 -- "-$job" 2>/dev/null; do sleep 0.1; done
  fi
  printf '\nstopped; run scripts/quickstart.sh again to go on\n' >&8
  exit 130
}
trap stop INT TERM HUP

# Runs a command as a process group of its own, so that a stop ends all of it: compilers, ranks, whoever else.
# `status` is how it ended.
run_job() {
  set -m
  "$@" 8>&- 9>&- </dev/null &
  job=$!
  set +m
  status=0
  wait "$job" || status=$?
  job=
}

number=0
started=$EPOCHREALTIME
begin() {
  begun=$EPOCHREALTIME
  printf '[%d/6] %-58s' $((++number)) "$1"
}
finish() { printf '%8s s\n' "$(seconds_since "$begun")"; }

# step TITLE COMMAND...: one line with its time; the command's own words are shown only if it fails.
step() {
  local title=$1
  shift
  begin "$title"
  run_job "$@" >"$log" 2>&1
  ((status)) || { finish && return; }
  printf '  failed\n'
  tail -n 30 "$log" >&2
  die "step $number ($title) failed; all it said is in $log"
}

build() {
  configure release
  cmake --build --preset release --target hpt-train
}

make_text() {
  [[ ! -f data/kjv.txt ]] || return 0
  bible -f 'Gen1:1-Rev22:21' >data/kjv.txt.part
  mv data/kjv.txt.part data/kjv.txt
}

inspect() { "$hpt_train" data inspect data/kjv.bin --valid data/kjv-valid.bin --json; }

# Both files appear whole or not at all; inspect reads them from end to end.
pack() {
  [[ ! data/kjv.bin -nt data/kjv.txt ]] || ! inspect || return 0
  rm -f data/kjv.bin.tmp-* data/kjv-valid.bin.tmp-* # of a packing that was stopped
  "$hpt_train" data pack --input data/kjv.txt --output data/kjv.bin --valid data/kjv-valid.bin --valid-share 0.05
}

train() { mpirun -n 8 --oversubscribe --bind-to none "$hpt_train" --config configs/tiny.yaml; }

# last_number KEY: the last value of a key in the JSON on stdin.
last_number() { sed -n "s/.*\"$1\": *\([-+.0-9eE]*\).*/\1/p" | tail -n 1; }
is_less() { [[ -n $1 ]] && awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0) }'; }
# beats OTHER: what to say of the validation loss beside another model's.
beats() { is_less "$valid_loss" "$1" && echo "beaten" || echo "not beaten"; }

missing=$(scripts/install-packages --list | wc -l)
begin "packages: $missing to install"
scripts/install-packages
finish
[[ -x $hpt_train ]] || printf '      The first build takes a few minutes. What it says goes to %s.\n' "$log"
step "build hpt-train" build
step "text: the King James Bible" make_text
step "tokens: a byte each, the last 5 % held out for validation" pack

begin "train configs/tiny.yaml on 8 ranks"
printf '\n\n'
run_job train
((status == 0)) || die "training failed with exit code $status"
printf '\n      %-58s' "trained"
finish

step "losses of a unigram and a bigram model of the same text" inspect
valid_loss=$(last_number valid_loss <"$run_dir/metrics.jsonl")
unigram_loss=$(last_number unigram_loss <"$log")
bigram_loss=$(last_number bigram_loss <"$log")
[[ -n $valid_loss && -n $unigram_loss && -n $bigram_loss ]] ||
  die "no losses to compare: valid '$valid_loss', unigram '$unigram_loss', bigram '$bigram_loss'"

printf '\nloss on the held-out text, in nats a byte (less is better)\n'
printf '  %-28s %6.3f\n' "this model, after training" "$valid_loss"
printf '  %-28s %6.3f   %s\n' "a bigram model" "$bigram_loss" "$(beats "$bigram_loss")"
printf '  %-28s %6.3f   %s\n' "a unigram model" "$unigram_loss" "$(beats "$unigram_loss")"
printf 'all of it in %s: metrics.jsonl, log.txt, config.yaml, tensorboard/ (in %s s)\n' \
  "$run_dir" "$(seconds_since "$started")"
is_less "$valid_loss" "$must_beat" || die "the validation loss $valid_loss is not under $must_beat"
