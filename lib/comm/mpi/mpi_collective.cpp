#include "comm/mpi/mpi_collective.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/reduce_kernel.h"

namespace hpt {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kSliceBytes = std::size_t{16} << 10;  // sums from here on go by slices
constexpr std::uint64_t kNotCome = std::numeric_limits<std::uint64_t>::max();

}  // namespace

MpiCollective::MpiCollective(std::shared_ptr<MpiMembers> members, Turns& turns)
    : Op(members->engine()),
      members_(std::move(members)),
      turns_(&turns),
      headers_(static_cast<std::size_t>(members_->size())),
      sources_(headers_.size()) {}

void MpiCollective::set(const OpHeader& header, const char* in, char* out) {
  turn_ = turns_->take();
  header_ = header;
  in_ = in;
  out_ = out;
  begun_ = agreed_ = sums_posted_ = false;
  begin_ = 0;
  by_slices_ = header.kind == OpKind::all_reduce && size() > 2 && header.num_bytes() >= kSliceBytes;
  const std::size_t parts = header.kind == OpKind::reduce_scatter ? headers_.size() : 1;
  piece_elements_ = kPieceBytes / parts / size_of(header.dtype);
  const bool reduces = header.kind == OpKind::reduce_scatter || header.kind == OpKind::all_reduce;
  scratch_bytes_ = reduces ? bytes(slice_of(piece(), size() - 1).count) : 0;
  scratch_.resize(std::max(scratch_.size(), scratch_bytes_ * headers_.size()));
}

bool MpiCollective::advance() {
  if (!turns_->is(turn_)) return false;
  if (!begun_) begin();
  if (!agreed_) {
    if (!header_requests_.complete()) return false;
    check_headers();
    agreed_ = true;
  }
  while (data_requests_.complete()) {
    if (finish_step()) {
      turns_->pass();
      return true;
    }
    post_step();
  }
  return false;
}

// The first that has not come; size() if all have, or nobody knows.
int MpiCollective::late_member() const {
  if (!begun_ || agreed_) return size();
  const auto late = std::find_if(headers_.begin(), headers_.end(),
                                 [](const OpHeader& theirs) { return theirs.num_elements == kNotCome; });
  return static_cast<int>(late - headers_.begin());
}

OpLabel MpiCollective::label() const {
  const int late = late_member();
  return {name_of(header_.kind), members_->members.name,
          late < size() ? members_->world_rank(late) : RankStatus::kNobody};
}

std::string MpiCollective::describe() const {
  std::string cause = begun_ ? "data" : "an earlier op";
  const int late = late_member();
  if (late < size()) cause = format("rank {}", members_->world_rank(late));
  return format("group {}: {} waits for {}", members_->members.name, to_string(header_), cause);
}

void MpiCollective::cancel() noexcept {
  header_requests_.cancel();
  data_requests_.cancel();
}

void MpiCollective::settle() noexcept {
  header_requests_.settle();
  data_requests_.settle();
}

bool MpiCollective::talks_with(int member) const {
  if (member == rank()) return false;
  return header_.kind != OpKind::broadcast || rank() == header_.root || member == header_.root;
}

void MpiCollective::begin() {
  begun_ = true;
  std::fill(headers_.begin(), headers_.end(), header_);
  const int tag = tag_of(members_->group, MpiTag::collective_header);
  const bool hears = header_.kind != OpKind::broadcast || rank() != header_.root;
  const bool tells = header_.kind != OpKind::broadcast || rank() == header_.root;
  for (int member = 0; member < size(); ++member) {
    if (!talks_with(member)) continue;
    OpHeader& theirs = headers_[static_cast<std::size_t>(member)];
    const int peer = members_->world_rank(member);
    if (hears) {
      theirs.num_elements = kNotCome;
      header_requests_.receive(*members_->rank->comm, &theirs, sizeof(theirs), peer, tag);
    }
    if (tells) header_requests_.send(*members_->rank->comm, &header_, sizeof(header_), peer, tag);
  }
  post_step();
}

void MpiCollective::check_headers() const {
  for (int member = 0; member < size(); ++member) {
    const OpHeader& theirs = headers_[static_cast<std::size_t>(member)];
    if (theirs == header_) continue;
    fail(ErrorKind::runtime, "rank {}: group {}: {} here meets {} on rank {}",
         members_->engine().world_rank(), members_->members.name, to_string(header_), to_string(theirs),
         members_->world_rank(member));
  }
}

void MpiCollective::post_step() {
  switch (header_.kind) {
    case OpKind::broadcast:
      return post_broadcast();
    case OpKind::all_gather:
      return post_gather();
    case OpKind::reduce_scatter:
      return post_parts();
    case OpKind::all_reduce:
      return sums_posted_ ? post_sums() : post_for_sum();
    default:
      return;  // a barrier is over when all headers have come
  }
}

bool MpiCollective::finish_step() {
  const bool reduces = header_.kind == OpKind::reduce_scatter || header_.kind == OpKind::all_reduce;
  if (!reduces) return true;
  if (!sums_posted_) reduce(slice_of(piece(), rank()));
  if (by_slices_ && !sums_posted_) {
    sums_posted_ = true;
    return false;
  }
  sums_posted_ = false;
  begin_ += piece().count;
  return begin_ >= header_.num_elements;
}

void MpiCollective::post_broadcast() {
  for (int member = 0; member < size(); ++member) {
    if (!talks_with(member)) continue;
    if (rank() == header_.root)
      send(in_, header_.num_elements, member);
    else
      receive(out_, header_.num_elements, member);
  }
}

void MpiCollective::post_gather() {
  for (int member = 0; member < size(); ++member) {
    char* part = out_ + bytes(static_cast<std::size_t>(member) * header_.num_elements);
    if (member != rank()) {
      receive(part, header_.num_elements, member);
      send(in_, header_.num_elements, member);
    } else if (part != in_ && header_.num_elements > 0) {
      std::memcpy(part, in_, header_.num_bytes());
    }
  }
}

void MpiCollective::post_parts() {
  const Range range = piece();
  for (int member = 0; member < size(); ++member) {
    if (member == rank()) continue;
    receive(scratch(member), range.count, member);
    send(in_ + bytes(static_cast<std::size_t>(member) * header_.num_elements + range.begin), range.count,
         member);
  }
}

void MpiCollective::post_for_sum() {
  const Range own = slice_of(piece(), rank());
  for (int member = 0; member < size(); ++member) {
    if (member == rank()) continue;
    const Range theirs = slice_of(piece(), member);
    receive(scratch(member), own.count, member);
    send(in_ + bytes(theirs.begin), theirs.count, member);
  }
}

void MpiCollective::post_sums() {
  const Range own = slice_of(piece(), rank());
  for (int member = 0; member < size(); ++member) {
    if (member == rank()) continue;
    const Range theirs = slice_of(piece(), member);
    receive(out_ + bytes(theirs.begin), theirs.count, member);
    send(out_ + bytes(own.begin), own.count, member);
  }
}

// out := the sum (or maximum) over all ranks of elements `range` of the own part.
void MpiCollective::reduce(Range range) {
  const auto own = static_cast<std::size_t>(rank());
  for (int member = 0; member < size(); ++member)
    sources_[static_cast<std::size_t>(member)] = scratch(member);
  const std::size_t part = header_.kind == OpKind::reduce_scatter ? own * header_.num_elements : 0;
  sources_[own] = in_ + bytes(part + range.begin);
  const auto kernel = header_.reduce == ReduceOp::sum ? reduce_sum : reduce_max;
  kernel(header_.dtype, out_ + bytes(range.begin), sources_, range.count);
}

MpiCollective::Range MpiCollective::piece() const {
  return {begin_, std::min(piece_elements_, header_.num_elements - begin_)};
}

// What `member` adds up of `range`; all of it, unless slices are made. The last slice is the largest.
MpiCollective::Range MpiCollective::slice_of(Range range, int member) const {
  if (!by_slices_) return range;
  const std::size_t slice = range.count / headers_.size();
  const std::size_t begin = slice * static_cast<std::size_t>(member);
  return {range.begin + begin, member + 1 == size() ? range.count - begin : slice};
}

void MpiCollective::send(const char* data, std::size_t num_elements, int member) {
  data_requests_.send(*members_->rank->comm, data, bytes(num_elements), members_->world_rank(member),
                      tag_of(members_->group, MpiTag::collective_data));
}

void MpiCollective::receive(char* data, std::size_t num_elements, int member) {
  data_requests_.receive(*members_->rank->comm, data, bytes(num_elements), members_->world_rank(member),
                         tag_of(members_->group, MpiTag::collective_data));
}

}  // namespace hpt
