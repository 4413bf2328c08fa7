#include "data/inspect.h"

#include <algorithm>

#include "core/error.h"
#include "data/byte_tokenizer.h"
#include "data/printable.h"
#include "data/token_file.h"
#include "data/token_scan.h"

namespace hpt {
namespace {

constexpr std::size_t kShownTokens = 16;
constexpr std::size_t kShownBytes = 200;

void note_tokens(TokenFileReport& report, std::vector<std::int32_t>& beginning, std::int64_t first,
                 std::span<const std::int32_t> tokens) {
  if (first == 0)
    beginning.assign(
        tokens.begin(),
        tokens.begin() + std::min<std::ptrdiff_t>(kShownBytes, static_cast<std::ptrdiff_t>(tokens.size())));
  const auto largest = std::max_element(tokens.begin(), tokens.end());
  report.largest_token = std::max<std::int64_t>(report.largest_token, *largest);
  const std::int64_t end = report.info.end_of_document;
  if (end >= 0) report.num_documents += std::count(tokens.begin(), tokens.end(), end);
  const std::int64_t vocab = report.info.vocab_size;
  if (vocab == 0 || *largest < vocab) return;
  const auto bad =
      std::find_if(tokens.begin(), tokens.end(), [vocab](std::int32_t token) { return token >= vocab; });
  fail(ErrorKind::usage, "{}: token {} is {}, not below the vocabulary of {}", report.path,
       first + (bad - tokens.begin()), *bad, vocab);
}

}  // namespace

TokenFileReport inspect_token_file(const std::string& path) {
  const TokenFile file(path);
  file.verify_payload();
  TokenFileReport report{.path = path, .info = file.info(), .first_tokens = {}, .first_text = {}};
  if (report.info.end_of_document >= 0) report.num_documents = 0;
  std::vector<std::int32_t> beginning;
  scan_tokens(file, kMaxVocab, [&](std::int64_t first, std::span<const std::int32_t> tokens) {
    note_tokens(report, beginning, first, tokens);
  });
  if (report.info.tokenizer == byte_tokenizer::kName)
    report.first_text = printable(byte_tokenizer::decode(beginning), Newlines::escaped);
  beginning.resize(std::min(beginning.size(), kShownTokens));
  report.first_tokens = std::move(beginning);
  return report;
}

const char* token_format_name(TokenFormat format) {
  switch (format) {
    case TokenFormat::hpt:
      return "ours";
    case TokenFormat::llmc:
      return "llm.c";
    case TokenFormat::headerless:
      return "headerless u16 (as nanoGPT)";
  }
  return "?";
}

std::string to_text(const TokenFileReport& report) {
  const TokenFileInfo& info = report.info;
  const auto or_unknown = [](std::int64_t value, std::int64_t unknown) {
    return value == unknown ? std::string("not said") : format("{}", value);
  };
  std::string text = format("{}\n", report.path);
  text += format("  format      {}\n", token_format_name(info.format));
  text += format("  tokens      {} of {}\n", info.num_tokens, token_type_name(info.token_bytes));
  text +=
      format("  vocabulary  {} (largest token {})\n", or_unknown(info.vocab_size, 0), report.largest_token);
  text += format("  tokenizer   {}\n",
                 info.tokenizer.empty() ? "not said" : printable(info.tokenizer, Newlines::escaped));
  text += format("  documents   {}\n", or_unknown(report.num_documents, -1));
  text += format("  checksum    {}\n", info.format == TokenFormat::hpt ? "matches" : "none in this format");
  text += "  begins     ";
  for (const std::int32_t token : report.first_tokens) text += format(" {}", token);
  text += "\n";
  if (!report.first_text.empty()) text += format("  as text     {}\n", report.first_text);
  return text;
}

}  // namespace hpt
