#include "data/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/error.h"
#include "data/byte_tokenizer.h"
#include "data/token_writer.h"

namespace hpt {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::int64_t kNoCut = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void fail_with_errno(ErrorKind kind, const std::string& path, const char* what) {
  fail(kind, "{}: can't {}: {}", path, what, std::generic_category().message(errno));
}

class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail_with_errno(ErrorKind::usage, path_, "open it");
  }
  ~InputFile() { ::close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Bytes read into `buffer`; 0 at the end.
  std::size_t read(std::vector<char>& buffer) {
    for (;;) {
      const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
      if (size >= 0) return static_cast<std::size_t>(size);
      if (errno != EINTR) fail_with_errno(ErrorKind::usage, path_, "read it");
    }
  }

 private:
  std::string path_;
  int fd_;
};

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  // Of files that don't exist yet only the names can be compared.
  const auto name_a = std::filesystem::weakly_canonical(a, error);
  if (error) return a == b;
  const auto name_b = std::filesystem::weakly_canonical(b, error);
  return error ? a == b : name_a == name_b;
}

void check_request(const PackRequest& request) {
  if (request.inputs.empty()) fail(ErrorKind::usage, "--input: no file given; at least one is needed");
  if (request.output.empty()) fail(ErrorKind::usage, "--output: no file given");
  if (request.tokenizer != byte_tokenizer::kName)
    fail(ErrorKind::usage, "--tokenizer {}: there is no such tokenizer; `bytes` would be right",
         request.tokenizer);
  for (const std::string& input : request.inputs) {
    if (::access(input.c_str(), R_OK) != 0) fail_with_errno(ErrorKind::usage, input, "read it");
    if (std::filesystem::is_directory(input))
      fail(ErrorKind::usage, "{}: is a folder; a file was expected", input);
    for (const auto& [option, output] : {std::pair{"--output", request.output}, {"--valid", request.valid}})
      if (!output.empty() && same_file(input, output))
        fail(ErrorKind::usage, "{} {}: is also an input and would be overwritten", option, output);
  }
  if (request.valid.empty()) return;
  if (same_file(request.valid, request.output))
    fail(ErrorKind::usage, "--valid {}: is also --output; two files are needed", request.valid);
  if (!(request.valid_share > 0 && request.valid_share < 1))
    fail(ErrorKind::usage, "--valid-share {}: a number between 0 and 1 would be right", request.valid_share);
}

std::int64_t regular_size(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_with_errno(ErrorKind::usage, path, "read its size");
  if (!S_ISREG(status.st_mode))
    fail(ErrorKind::usage, "{}: is not a regular file; --valid needs to know its size", path);
  return status.st_size;
}

// A token file in the making, with what it holds so far.
class Output {
 public:
  explicit Output(const std::string& path) : writer_(path, byte_tokenizer::vocab()) { packed_.path = path; }

  void text(std::string_view bytes) {
    tokens_.clear();
    byte_tokenizer::encode(bytes, tokens_);
    writer_.append(tokens_);
    packed_.num_bytes += static_cast<std::int64_t>(bytes.size());
  }
  void end_document() {
    const std::int32_t token = byte_tokenizer::kEndOfDocument;
    writer_.append({&token, 1});
    ++packed_.num_documents;
  }
  void finish() { writer_.finish(); }
  PackedFile commit() {
    writer_.commit();
    packed_.num_tokens = writer_.num_tokens();
    return packed_;
  }

 private:
  TokenWriter writer_;
  PackedFile packed_;
  std::vector<std::int32_t> tokens_;
};

// Splits the stream of all documents at byte `cut`: before it to `train`, the rest to `valid`.
class Splitter {
 public:
  // valid null: there is no cut.
  Splitter(Output& train, Output* valid, std::int64_t cut) : train_(train), valid_(valid), cut_(cut) {}

  std::int64_t position() const { return position_; }

  void text(std::string_view bytes) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    const auto before = static_cast<std::size_t>(std::clamp<std::int64_t>(cut_ - position_, 0, size));
    if (before > 0) train_.text(bytes.substr(0, before));
    if (before < bytes.size()) valid().text(bytes.substr(before));
    position_ += size;
  }
  // A document that began at byte `begin` is over.
  void end_document(std::int64_t begin) {
    if (begin < cut_) train_.end_document();
    if (begin >= cut_ || position_ > cut_) valid().end_document();
  }

 private:
  Output& valid() {
    HPT_REQUIRE(valid_ != nullptr);
    return *valid_;
  }

  Output& train_;
  Output* valid_;
  std::int64_t cut_;
  std::int64_t position_ = 0;
};

void pack_document(const std::string& path, std::vector<char>& buffer, Splitter& splitter) {
  const std::int64_t begin = splitter.position();
  InputFile input(path);
  while (const std::size_t size = input.read(buffer)) splitter.text({buffer.data(), size});
  splitter.end_document(begin);
}

// Bytes of all inputs, and the byte from which on they are held out.
struct Split {
  std::int64_t total = 0;
  std::int64_t cut = kNoCut;
};

Split split_of(const PackRequest& request) {
  if (request.valid.empty()) return {};
  Split split;
  for (const std::string& input : request.inputs) split.total += regular_size(input);
  const auto held_out = std::llround(static_cast<double>(split.total) * request.valid_share);
  split.cut = split.total - held_out;
  if (held_out < 1 || split.cut < 1)
    fail(ErrorKind::usage,
         "--valid-share {}: of {}, {} would be for validation and {} for training; both need some",
         request.valid_share, counted(split.total, "byte"), held_out, split.cut);
  return split;
}

}  // namespace

PackResult pack(const PackRequest& request) {
  check_request(request);
  const Split split = split_of(request);
  Output train(request.output);
  std::optional<Output> valid;
  if (!request.valid.empty()) valid.emplace(request.valid);

  Splitter splitter(train, valid ? &*valid : nullptr, split.cut);
  std::vector<char> buffer(kReadBytes);
  for (const std::string& input : request.inputs) pack_document(input, buffer, splitter);
  if (splitter.position() == 0)
    fail(ErrorKind::usage, "{}: there is no text in the inputs", request.inputs.front());
  if (valid && splitter.position() != split.total)
    fail(ErrorKind::runtime, "{}: the inputs changed while they were read: {} at first, {} in the end",
         request.inputs.front(), counted(split.total, "byte"), splitter.position());

  train.finish();
  PackResult result;
  if (valid) {
    valid->finish();
    result.valid = valid->commit();
  }
  result.train = train.commit();
  return result;
}

}  // namespace hpt
