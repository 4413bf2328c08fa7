#!/usr/bin/env bash
# Installs what is missing, builds the release preset and runs every test.
# Arguments are ctest's: scripts/test.sh -L unit, scripts/test.sh -R '^schedule:'
source "$(dirname "$0")/common.sh"

scripts/install-packages build run test
configure release
cmake --build --preset release
ctest --preset release -j "$(nproc)" "$@"
