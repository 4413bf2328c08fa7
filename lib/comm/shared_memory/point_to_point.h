// Sends and receives over shared memory: from each member to each other one stream of bytes, a ring buffer in
// which every message is a header and its data. A message that fits is out of the sender's hands at once; a
// larger one flows through as the receiver empties the ring.
#pragma once

#include "comm/engine/turns.h"
#include "comm/shared_memory/shared_members.h"

namespace hpt {

struct MessageCall {
  OpHeader header;
  char* data = nullptr;
  int peer = 0;
  std::uint64_t turn = 0;  // messages of one stream go in the order of their start
};

// What the two kinds have in common: where they stand in their message.
class SharedMessage : public Op {
 public:
  SharedMessage(std::shared_ptr<SharedMembers> members, std::vector<Turns>& turns)
      : Op(members->engine()), members_(std::move(members)), turns_(&turns) {}

  void set(const MessageCall& call);
  std::string describe() const final;
  OpLabel label() const final;

 protected:
  Turns& turns() { return (*turns_)[static_cast<std::size_t>(call_.peer)]; }

  std::shared_ptr<SharedMembers> members_;
  std::vector<Turns>* turns_;  // by peer
  MessageCall call_;
  bool has_header_ = false;     // it is through
  std::uint64_t num_done_ = 0;  // bytes of data that are through
};

class SharedSend final : public SharedMessage {
 public:
  using SharedMessage::SharedMessage;
  bool advance() override;

 private:
  Outbox& outbox() { return members_->own().to(call_.peer); }
  void make_ring(Outbox& box);
  std::uint64_t room(Outbox& box);
  void publish(Outbox& box, std::uint64_t written);
};

class SharedRecv final : public SharedMessage {
 public:
  using SharedMessage::SharedMessage;
  bool advance() override;

 private:
  void check(const OpHeader& sent) const;
  void free_room(Outbox& box, std::uint64_t taken);
};

}  // namespace hpt
