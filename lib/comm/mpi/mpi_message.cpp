#include "comm/mpi/mpi_message.h"

namespace hpt {

int tag_of(int group, MpiTag tag) {
  return group * 4 + static_cast<int>(tag);
}

void require_tags(const MpiComm& comm, int group) {
  int* largest = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm.get(), MPI_TAG_UB, static_cast<void*>(&largest), &found);
  if (found != 0 && tag_of(group, MpiTag::collective_data) > *largest)
    fail(ErrorKind::runtime, "MPI: its largest tag is {}, too small for group number {}", *largest, group);
}

void MpiMessage::set(const OpHeader& header, void* data, int peer) {
  header_ = header;
  peer_ = peer;
  const MpiComm& comm = *members_->rank->comm;
  const int world_peer = members_->world_rank(peer);
  const int header_tag = tag_of(members_->group, MpiTag::header);
  const int data_tag = tag_of(members_->group, MpiTag::data);
  agreed_ = header.kind == OpKind::send;  // the receiver looks
  if (header.kind == OpKind::send) {
    header_request_.send(comm, &header_, sizeof(header_), world_peer, header_tag);
    data_request_.send(comm, data, header.num_bytes(), world_peer, data_tag);
  } else {
    header_request_.receive(comm, &sent_, sizeof(sent_), world_peer, header_tag);
    data_request_.receive(comm, data, header.num_bytes(), world_peer, data_tag);
  }
}

// The header is looked at first: data that do not fit would only be told as truncated.
bool MpiMessage::advance() {
  if (!header_request_.complete()) return false;
  if (!agreed_) check_sent();
  agreed_ = true;
  return data_request_.complete();
}

void MpiMessage::cancel() noexcept {
  header_request_.cancel();
  data_request_.cancel();
}

void MpiMessage::settle() noexcept {
  header_request_.settle();
  data_request_.settle();
}

void MpiMessage::check_sent() const {
  if (sent_.num_elements == header_.num_elements && sent_.dtype == header_.dtype) return;
  fail(ErrorKind::runtime, "rank {}: group {}: {} here meets {} on rank {}", members_->engine().world_rank(),
       members_->members.name, to_string(header_), to_string(sent_), members_->world_rank(peer_));
}

OpLabel MpiMessage::label() const {
  return {name_of(header_.kind), members_->members.name, members_->world_rank(peer_)};
}

std::string MpiMessage::describe() const {
  return format("group {}: {} waits for rank {}", members_->members.name, to_string(header_),
                members_->world_rank(peer_));
}

}  // namespace hpt
