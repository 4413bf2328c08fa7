#include "comm/mpi/mpi_abort.h"

#include "comm/mpi/mpi_message.h"

namespace hpt {
namespace {

constexpr int kNoGroup = 0;

// Never complete: listens for as long as the rank lives.
class AbortListener final : public Op {
 public:
  AbortListener(ProgressEngine& engine, std::shared_ptr<MpiComm> comm)
      : Op(engine), engine_(engine), comm_(std::move(comm)) {
    requests_.receive(*comm_, &told_, sizeof(told_), MPI_ANY_SOURCE, tag_of(kNoGroup, MpiTag::header));
  }

  bool advance() override {
    if (heard_ || !requests_.complete()) return false;
    heard_ = true;
    engine_.abort();
    return false;
  }
  std::string describe() const override { return "the abort of the world"; }
  OpLabel label() const override { return {}; }

 private:
  ProgressEngine& engine_;
  std::shared_ptr<MpiComm> comm_;
  char told_ = 0;
  bool heard_ = false;
  MpiRequests requests_;
};

}  // namespace

void carry_aborts(const std::shared_ptr<MpiRank>& rank) {
  ProgressEngine& engine = rank->host->engine;
  engine.start_background(std::make_shared<AbortListener>(engine, rank->comm));
  engine.on_abort([comm = rank->comm, host_of = rank->host_of] {
    static constexpr char kTold = 1;
    const int here = host_of[static_cast<std::size_t>(comm->rank())];
    for (int peer = 0; peer < comm->size(); ++peer) {
      if (host_of[static_cast<std::size_t>(peer)] == here) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      // Whether it arrives or not, this rank has failed: nothing more could be done about an error.
      if (MPI_Isend(&kTold, 1, MPI_CHAR, peer, tag_of(kNoGroup, MpiTag::header), comm->get(), &request) ==
          MPI_SUCCESS)
        MPI_Request_free(&request);
    }
  });
}

}  // namespace hpt
