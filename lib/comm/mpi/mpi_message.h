// A send or receive by MPI messages: the header on one tag, the data on another.
#pragma once

#include "comm/mpi/mpi_group.h"

namespace hpt {

// The tags of one group; the abort of the world has the numbers of group 0.
enum class MpiTag { header, data, collective_header, collective_data };
int tag_of(int group, MpiTag tag);
// Fails where MPI has no tags left for another group.
void require_tags(const MpiComm& comm, int group);

class MpiMessage final : public Op {
 public:
  explicit MpiMessage(std::shared_ptr<MpiMembers> members)
      : Op(members->engine()), members_(std::move(members)) {}

  void set(const OpHeader& header, void* data, int peer);

  bool advance() override;
  std::string describe() const override;
  OpLabel label() const override;
  bool needs_polling() const override { return true; }
  void cancel() noexcept override;
  void settle() noexcept override;

 private:
  void check_sent() const;

  std::shared_ptr<MpiMembers> members_;
  OpHeader header_;
  OpHeader sent_;  // what a receive finds
  int peer_ = 0;
  bool agreed_ = false;
  MpiRequests header_request_;
  MpiRequests data_request_;
};

}  // namespace hpt
