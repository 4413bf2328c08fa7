// BackgroundTask: one piece of work at a time in a thread of its own, which calls no MPI.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

namespace hpt {

class BackgroundTask {
 public:
  BackgroundTask() = default;
  ~BackgroundTask() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // The one before has been joined.
  void start(std::function<void()> work) {
    is_done_ = false;
    failure_ = nullptr;
    thread_ = std::thread([this, work = std::move(work)] {
      try {
        work();
      } catch (...) {
        failure_ = std::current_exception();
      }
      is_done_.store(true, std::memory_order_release);
    });
  }

  bool done() const { return is_done_.load(std::memory_order_acquire); }

  // Blocks until the work is done; returns what it threw, if anything.
  std::exception_ptr join() {
    if (thread_.joinable()) thread_.join();
    return failure_;
  }

 private:
  std::thread thread_;
  std::atomic<bool> is_done_{true};
  std::exception_ptr failure_;
};

}  // namespace hpt
