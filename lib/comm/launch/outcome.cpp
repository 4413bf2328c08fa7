#include "comm/launch/outcome.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <exception>
#include <new>

#include "comm/agree_on_fault.h"
#include "comm/control/blame.h"

namespace hpt {
namespace {

bool names_rank(const std::string& message, int rank) {
  const std::string name = format("rank {}", rank);
  for (std::size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + 1)) {
    const std::size_t after = at + name.size();
    if (after == message.size() || std::isdigit(static_cast<unsigned char>(message[after])) == 0) return true;
  }
  return false;
}

// What the rank did when it failed, as far as the message doesn't tell; nothing before the run.
std::string place_beside(const std::string& message, const RankStatus& status) {
  RankView view = view_of(status);
  if (view.phase == RunPhase::start_up) return "";
  std::string place = place_of(view);
  const std::string step = format("at step {}", view.step);
  if (view.phase == RunPhase::step && message.find(step.substr(3)) != std::string::npos)
    place.erase(0, place.starts_with(step + ", ") ? step.size() + 2 : step.size());
  return place.empty() ? "" : format(" ({})", place);
}

Outcome failure(const RankContext& context, const std::string& message,
                OutcomeKind kind = OutcomeKind::runtime) {
  const std::string place = context.status == nullptr ? "" : place_beside(message, *context.status);
  const bool plain = context.world_size == 1 || names_rank(message, context.rank);
  return {kind, (plain ? message : format("rank {}: {}", context.rank, message)) + place};
}

Outcome outcome_of(const RankContext& context, const Error& error) {
  const bool is_agreed = dynamic_cast<const AgreedError*>(&error) != nullptr;
  if (is_agreed && error.kind() == ErrorKind::runtime) return {OutcomeKind::runtime, error.what()};
  switch (error.kind()) {
    case ErrorKind::usage:
      return {OutcomeKind::usage, error.what()};
    case ErrorKind::stopped:
      return {OutcomeKind::stopped, error.what()};
    case ErrorKind::aborted:
      return {OutcomeKind::aborted, error.what()};
    case ErrorKind::silent:
      return failure(context, error.what(), OutcomeKind::silent);
    case ErrorKind::runtime:
      break;
  }
  return failure(context, error.what());
}

Outcome run_caught(RankContext& context, const std::function<void(RankContext&)>& body) {
  try {
    body(context);
    return {};
  } catch (const Error& error) {
    return outcome_of(context, error);
  } catch (const std::bad_alloc&) {
    return failure(context, "out of memory");
  } catch (const std::exception& error) {
    return failure(context, error.what());
  } catch (...) {
    return failure(context, "an exception of an unknown type");
  }
}

}  // namespace

Outcome run_rank(RankContext& context, const std::function<void(RankContext&)>& body) {
  Outcome outcome = run_caught(context, body);
  if (outcome.failed() && context.status != nullptr) context.status->end = RankEnd::failed;
  if (outcome.failed() && context.world != nullptr) context.world->abort();
  return outcome;
}

int exit_code(OutcomeKind kind) {
  if (kind == OutcomeKind::done) return 0;
  if (kind == OutcomeKind::stopped) return 75;
  return kind == OutcomeKind::usage ? 2 : 1;
}

Verdict agree(std::span<const OutcomeKind> outcomes) {
  constexpr std::array kByWeight = {OutcomeKind::runtime, OutcomeKind::silent, OutcomeKind::usage,
                                    OutcomeKind::stopped, OutcomeKind::aborted};
  for (const OutcomeKind kind : kByWeight)
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
      if (outcomes[rank] == kind) return {exit_code(kind), static_cast<int>(rank)};
  return {};
}

void print_line(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(stderr);
}

}  // namespace hpt
