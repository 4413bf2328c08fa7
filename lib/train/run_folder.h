// RunFolder: <run.dir>/ as rank 0 sees it. A fresh start moves what an earlier run left to old-N/; a lock
// that lives as long as the process refuses a second live run in the same folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hpt {

// What fails in `work`, which writes to a folder of a run that has not begun, is a wrong value of the key
// (run.dir, checkpoint.dir): an Error of kind usage.
void refuse_where_it_fails(const std::string& dir, std::string_view key, const std::function<void()>& work);

class RunFolder {
 public:
  // Makes the folder where it is missing and takes the lock. Until begin() is through, everything that keeps
  // a run out of its folder, a full disk too, is an Error of kind usage, and what was made goes again.
  explicit RunFolder(const std::string& dir);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Lets `write` make a file that the run needs before it begins.
  void fill(const std::string& name, const std::function<void()>& write);
  // Whether what lies in it may be of the run that saved a checkpoint with this config: it was written in a
  // folder of the same name, by a config that may go on from that one. An empty folder may be anyone's.
  bool is_of(const std::string& saved_config) const;
  // Moves old files away and writes config.yaml, whose room on the disk is found before anything is moved.
  void begin(const std::string& config_yaml);
  // Goes on after `step`: log and metrics stay; what tells of later steps is moved away, and so is another
  // config.yaml.
  void go_on(const std::string& config_yaml, std::int64_t step);
  // Whether the metrics that stayed tell of the evaluation after `step`.
  bool is_evaluated(std::int64_t step) const { return last_evaluated_ == step; }

  // Keeps other live runs out of `folder` too, where this run saves. Makes it; if it stays empty, it goes
  // again. An Error of kind usage where another run has it, or where it is, or lies in, what runs or saves
  // make.
  void also_lock(const std::string& folder);

  std::string path(const std::string& name) const { return dir_ + "/" + name; }

 private:
  // The lock on an open file; closing it gives it back.
  struct Lock {
    int fd = -1;
    ~Lock();
  };
  // Files and folders that were not there; they are removed with it, the youngest first, folders if empty.
  struct Made {
    std::vector<std::string> paths;
    ~Made();
  };

  void make_folder(const std::string& path, std::string_view key);
  bool take_lock();
  void tell_holder();
  // old-N/, made when the first file goes there.
  const std::string& old_folder();
  void move_away(const std::vector<std::string>& names);
  void move_later_metrics(std::int64_t step);

  std::string dir_;
  std::string old_folder_;
  std::int64_t last_evaluated_ = -1;  // by the metrics of a run that goes on; -1: no step
  // What is made goes before the lock that keeps others out of it, the innermost first.
  Lock lock_;
  Made made_;
  Made made_for_saves_;
  std::shared_ptr<void> lock_of_saves_;
};

}  // namespace hpt
