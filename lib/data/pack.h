// pack: text files to token files (`hpt-train data pack`), in constant memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpt {

struct PackRequest {
  std::vector<std::string> inputs;  // each is one document; UTF-8 or not
  std::string output = {};
  std::string tokenizer = "bytes";
  std::string valid = {};     // "" = nothing is held out
  double valid_share = 0.05;  // of all bytes: the last ones go to `valid`
};

struct PackedFile {
  std::string path;
  std::int64_t num_bytes = 0;  // of text
  std::int64_t num_tokens = 0;
  std::int64_t num_documents = 0;
};

struct PackResult {
  PackedFile train;
  std::optional<PackedFile> valid;
};

// Every document is followed by the end-of-document token; one that the held-out share cuts in two ends in
// both files. Where something is held out, the inputs are regular files (their sizes are needed first), else
// they may be pipes. The outputs appear whole or not at all and replace what was there. Error of kind usage,
// before anything is written: no inputs or no bytes in them, an unreadable input, an output that is an input
// or the other output, a share outside (0, 1) or so small that one side gets no byte. Errors of kind runtime:
// a disk that fails, an input that changes.
PackResult pack(const PackRequest& request);

}  // namespace hpt
