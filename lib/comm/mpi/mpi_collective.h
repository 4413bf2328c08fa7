// A collective by MPI messages. Every rank sends each other one what that needs and adds up, in ascending
// rank order, what it gets: for a small all_reduce (and between two ranks) everything, else its own slice,
// which it then sends to all. Sums go in pieces, so that little memory holds what the others sent.
// Collectives of a group go one at a time.
#pragma once

#include "comm/engine/turns.h"
#include "comm/mpi/mpi_message.h"

namespace hpt {

class MpiCollective final : public Op {
 public:
  MpiCollective(std::shared_ptr<MpiMembers> members, Turns& turns);

  void set(const OpHeader& header, const char* in, char* out);

  bool advance() override;
  std::string describe() const override;
  OpLabel label() const override;
  bool needs_polling() const override { return true; }
  void cancel() noexcept override;
  void settle() noexcept override;

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };

  void begin();
  void check_headers() const;
  int late_member() const;
  bool talks_with(int member) const;  // about headers

  // One step: everybody's sends and receives, then what is done with what came.
  void post_step();
  bool finish_step();  // true when that was the last
  void post_broadcast();
  void post_gather();
  void post_parts();    // of a reduce_scatter
  void post_for_sum();  // all_reduce: what others add up
  void post_sums();     // all_reduce: own slice of the result to all
  void reduce(Range range);

  Range piece() const;
  Range slice_of(Range range, int member) const;
  void send(const char* data, std::size_t num_elements, int member);
  void receive(char* data, std::size_t num_elements, int member);
  char* scratch(int member) { return scratch_.data() + static_cast<std::size_t>(member) * scratch_bytes_; }
  std::size_t bytes(std::size_t num_elements) const { return num_elements * size_of(header_.dtype); }
  int rank() const { return members_->members.rank; }
  int size() const { return members_->size(); }

  std::shared_ptr<MpiMembers> members_;
  Turns* turns_;
  std::uint64_t turn_ = 0;
  OpHeader header_;
  const char* in_ = nullptr;
  char* out_ = nullptr;
  bool begun_ = false;
  bool agreed_ = false;
  bool by_slices_ = false;
  bool sums_posted_ = false;  // the second half of a piece
  std::size_t piece_elements_ = 0;
  std::size_t begin_ = 0;  // of the current piece
  std::size_t scratch_bytes_ = 0;
  MpiRequests header_requests_;
  MpiRequests data_requests_;
  std::vector<OpHeader> headers_;     // of each member
  std::vector<const void*> sources_;  // of each member, to be added up
  std::vector<char> scratch_;         // what members sent; grows to its largest use
};

}  // namespace hpt
