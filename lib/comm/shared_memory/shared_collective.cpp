#include "comm/shared_memory/shared_collective.h"

#include <algorithm>
#include <cstring>

#include "comm/shared_memory/shared_copy.h"
#include "core/reduce_kernel.h"

namespace hpt {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{32} << 10;  // pieces from here on are added up by slices
constexpr std::size_t kSliceStep = 64;                      // bytes; slices begin on cache lines

void copy(char* to, const char* from, std::size_t num_bytes) {
  if (to != from && num_bytes > 0) std::memcpy(to, from, num_bytes);
}

}  // namespace

SharedCollective::SharedCollective(std::shared_ptr<SharedMembers> members)
    : Op(members->engine()),
      members_(std::move(members)),
      sources_(static_cast<std::size_t>(members_->size())) {}

void SharedCollective::set(const CollectiveCall& call) {
  call_ = call;
  const OpHeader& header = call.header;
  const std::size_t ranks_in_buffer = header.kind == OpKind::reduce_scatter ? sources_.size() : 1;
  const std::size_t step = kSliceStep / size_of(header.dtype);
  piece_elements_ = members_->buffer_bytes() / ranks_in_buffer / size_of(header.dtype) / step * step;
  HPT_REQUIRE(piece_elements_ > 0);
  // Nothing to send is a piece too, so that all meet and agree.
  num_pieces_ = std::max<std::uint64_t>(1, (header.num_elements + piece_elements_ - 1) / piece_elements_);
  first_piece_ = members_->claim_pieces(num_pieces_);
  filled_ = reduced_ = finished_ = 0;
}

bool SharedCollective::advance() {
  bool moved = true;
  while (moved) {
    moved = fill_next();
    moved = reduce_next() || moved;
    moved = finish_next() || moved;
  }
  return finished_ == num_pieces_;
}

// Whom the next piece waits for; size() if nobody is known.
int SharedCollective::late_member() const {
  int late = members_->size();
  if (filled_ > finished_) {
    const bool slices = reduced_ > finished_ && by_slices(finished_);
    late = members_->first_behind(slices ? &MemberBlock::reduced : &MemberBlock::filled,
                                  group_piece(finished_) + 1);
  } else if (group_piece(filled_) >= MemberBlock::kBuffers) {
    late = members_->first_behind(&MemberBlock::finished, group_piece(filled_) + 1 - MemberBlock::kBuffers);
  }
  return late;
}

OpLabel SharedCollective::label() const {
  const int late = late_member();
  return {name_of(call_.header.kind), members_->name(),
          late < members_->size() ? members_->world_rank(late) : RankStatus::kNobody};
}

std::string SharedCollective::describe() const {
  const int late = late_member();
  const std::string cause =
      late < members_->size() ? format("rank {}", members_->world_rank(late)) : "an earlier op";
  return format("group {}: {} waits for {}", members_->name(), to_string(call_.header), cause);
}

// Collectives of one group go through each phase in the order of their start.
bool SharedCollective::is_turn(CounterOf counter, std::uint64_t piece) const {
  return piece < num_pieces_ && members_->passed(counter) == group_piece(piece);
}

SharedCollective::Range SharedCollective::range_of(std::uint64_t piece) const {
  const std::size_t begin = piece * piece_elements_;
  return {begin, std::min(piece_elements_, call_.header.num_elements - begin)};
}

SharedCollective::Range SharedCollective::slice_of(Range range, int member) const {
  const std::size_t step = kSliceStep / size_of(call_.header.dtype);
  const std::size_t steps = (range.count + step - 1) / step;
  auto edge = [&](int slice) {
    return std::min(range.count, steps * static_cast<std::size_t>(slice) / sources_.size() * step);
  };
  return {edge(member), edge(member + 1) - edge(member)};
}

bool SharedCollective::by_slices(std::uint64_t piece) const {
  return call_.header.kind == OpKind::all_reduce && members_->size() > 2 &&
         bytes(range_of(piece).count) >= kSliceBytes;
}

bool SharedCollective::fill_next() {
  if (!is_turn(&MemberBlock::filled, filled_) || !members_->buffer_is_free(group_piece(filled_)))
    return false;
  members_->own().headers[group_piece(filled_) % MemberBlock::kBuffers] = call_.header;
  copy_in(filled_);
  ++filled_;
  if (call_.header.kind != OpKind::broadcast) {
    members_->pass_for_all(&MemberBlock::filled);
  } else {
    members_->pass(&MemberBlock::filled);
    if (is_root()) members_->ring_others();
  }
  return true;
}

void SharedCollective::copy_in(std::uint64_t piece) {
  const Range range = range_of(piece);
  const OpKind kind = call_.header.kind;
  if (kind == OpKind::reduce_scatter) return copy_in_for_reduce_scatter(piece);
  if (kind == OpKind::broadcast && !is_root()) return;
  char* buffer = members_->buffer(members_->rank(), group_piece(piece));
  const char* in = call_.in + bytes(range.begin);
  if (!by_slices(piece)) return copy_to_shared(buffer, in, bytes(range.count));
  // Nobody else adds up the own slice.
  const Range own = slice_of(range, members_->rank());
  const std::size_t after = own.begin + own.count;
  copy_to_shared(buffer, in, bytes(own.begin));
  copy_to_shared(buffer + bytes(after), in + bytes(after), bytes(range.count - after));
}

// The buffer holds one part for each rank but the own.
void SharedCollective::copy_in_for_reduce_scatter(std::uint64_t piece) {
  const Range range = range_of(piece);
  char* buffer = members_->buffer(members_->rank(), group_piece(piece));
  for (std::size_t member = 0; member < sources_.size(); ++member)
    if (static_cast<int>(member) != members_->rank())
      copy_to_shared(buffer + bytes(member * piece_elements_),
                     call_.in + bytes(member * call_.header.num_elements + range.begin), bytes(range.count));
}

void SharedCollective::check_headers(std::uint64_t piece) const {
  for (int member = 0; member < members_->size(); ++member) {
    if (call_.header.kind == OpKind::broadcast && member != call_.header.root) continue;
    const OpHeader& other = members_->block(member).headers[group_piece(piece) % MemberBlock::kBuffers];
    if (other == call_.header) continue;
    fail(ErrorKind::runtime, "rank {}: group {}: {} here meets {} on rank {}",
         members_->engine().world_rank(), members_->name(), to_string(call_.header), to_string(other),
         members_->world_rank(member));
  }
}

bool SharedCollective::reduce_next() {
  if (reduced_ == filled_ || !is_turn(&MemberBlock::reduced, reduced_)) return false;
  if (!by_slices(reduced_)) {
    members_->pass(&MemberBlock::reduced);
    ++reduced_;
    return true;
  }
  if (!members_->all_passed(&MemberBlock::filled, group_piece(reduced_) + 1)) return false;
  check_headers(reduced_);
  const Range range = range_of(reduced_);
  const Range own = slice_of(range, members_->rank());
  char* buffer = members_->buffer(members_->rank(), group_piece(reduced_));
  reduce(reduced_, {range.begin + own.begin, own.count}, bytes(own.begin), buffer + bytes(own.begin));
  ++reduced_;
  members_->pass_for_all(&MemberBlock::reduced);
  return true;
}

bool SharedCollective::finish_next() {
  if (finished_ == reduced_ || !is_turn(&MemberBlock::finished, finished_)) return false;
  const std::uint64_t pieces = group_piece(finished_) + 1;
  if (by_slices(finished_)) {
    if (!members_->all_passed(&MemberBlock::reduced, pieces)) return false;
    copy_slices(finished_);
  } else {
    const int root = call_.header.root;
    const bool ready = call_.header.kind == OpKind::broadcast
                           ? members_->block(root).filled.value.load() >= pieces
                           : members_->all_passed(&MemberBlock::filled, pieces);
    if (!ready) return false;
    check_headers(finished_);
    finish_whole(finished_);
  }
  ++finished_;
  members_->finish_piece();
  return true;
}

void SharedCollective::finish_whole(std::uint64_t piece) {
  const Range range = range_of(piece);
  char* out = call_.out + bytes(range.begin);
  switch (call_.header.kind) {
    case OpKind::all_reduce:
      return reduce(piece, range, 0, out);
    case OpKind::reduce_scatter:
      return reduce(piece, range, bytes(static_cast<std::size_t>(members_->rank()) * piece_elements_), out);
    case OpKind::broadcast:
      if (!is_root()) copy(out, members_->buffer(call_.header.root, group_piece(piece)), bytes(range.count));
      return;
    default:
      return gather(piece);
  }
}

// out := the sum (or maximum) over all ranks of `range`, which lies at `offset_in_buffer` in their buffers;
// the own data come from `in`.
void SharedCollective::reduce(std::uint64_t piece, Range range, std::size_t offset_in_buffer, char* out) {
  for (std::size_t member = 0; member < sources_.size(); ++member)
    sources_[member] = members_->buffer(static_cast<int>(member), group_piece(piece)) + offset_in_buffer;
  const auto rank = static_cast<std::size_t>(members_->rank());
  const bool scatters = call_.header.kind == OpKind::reduce_scatter;
  sources_[rank] = call_.in + bytes((scatters ? rank * call_.header.num_elements : 0) + range.begin);
  const auto kernel = call_.header.reduce == ReduceOp::sum ? reduce_sum : reduce_max;
  kernel(call_.header.dtype, out, sources_, range.count);
}

void SharedCollective::gather(std::uint64_t piece) {
  const Range range = range_of(piece);
  for (int member = 0; member < members_->size(); ++member) {
    const bool own = member == members_->rank();
    const char* from = own ? call_.in + bytes(range.begin) : members_->buffer(member, group_piece(piece));
    const std::size_t at = static_cast<std::size_t>(member) * call_.header.num_elements + range.begin;
    copy(call_.out + bytes(at), from, bytes(range.count));
  }
}

void SharedCollective::copy_slices(std::uint64_t piece) {
  const Range range = range_of(piece);
  for (int member = 0; member < members_->size(); ++member) {
    const Range slice = slice_of(range, member);
    copy(call_.out + bytes(range.begin + slice.begin),
         members_->buffer(member, group_piece(piece)) + bytes(slice.begin), bytes(slice.count));
  }
}

}  // namespace hpt
