#include "comm/launch/rank_end.h"

#include <exception>

namespace hpt {

RankEnd run_rank(RankContext& context, const std::function<void(RankContext&)>& body) {
  try {
    body(context);
    return {};
  } catch (const Error& error) {
    const bool names_rank = std::string(error.what()).find("rank ") != std::string::npos;
    const bool alone = error.kind() == ErrorKind::runtime && context.world_size > 1 && !names_rank;
    return {true, error.kind(), alone ? format("rank {}: {}", context.rank, error.what()) : error.what()};
  } catch (const std::exception& error) {
    return {true, ErrorKind::runtime, format("rank {}: {}", context.rank, error.what())};
  }
}

int exit_code(const RankEnd& end) {
  if (!end.failed) return 0;
  return end.kind == ErrorKind::usage ? 2 : 1;
}

}  // namespace hpt
