# shellcheck shell=bash
# What the scripts of this folder share. Sourced, never run: it leaves the caller in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export LC_ALL=C.UTF-8 # decimal points and sort order, whatever the user's language
# Open MPI refuses to start as root without these two; containers and CI are root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Code is compiled for the machine at hand, so what ccache kept for one kind of CPU is no use to another.
CCACHE_NAMESPACE=hpt-$(sed -n '/^\(flags\|Features\)/{p;q}' /proc/cpuinfo | cksum | tr ' ' -)
export CCACHE_NAMESPACE

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# seconds_since START: how long ago START (a value of EPOCHREALTIME) was, with one decimal.
seconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'; }

# Our own source files below the given folders.
source_files() {
  find "$@" -type f \( -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu' \) | sort
}

# configure PRESET: only where it was not done; later changes of CMake files are ninja's to notice.
configure() { [[ -f build/$1/build.ninja ]] || cmake --preset "$1"; }
