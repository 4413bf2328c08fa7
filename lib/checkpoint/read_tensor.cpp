#include "checkpoint/read_tensor.h"

#include <new>

#include "checkpoint/load_state.h"
#include "core/box_runs.h"

namespace hpt {

WholeTensor make_whole(const std::string& name, DType dtype, const Shape& shape) {
  WholeTensor whole{dtype, shape, nullptr};
  try {
    whole.bytes = std::make_unique_for_overwrite<char[]>(whole.num_bytes());
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::usage, "{} {}: its {} are more than this machine's memory", name, to_string(shape),
         counted(whole.num_bytes(), "byte"));
  }
  return whole;
}

WholeTensor read_whole(FileSystem& files, const OpenCheckpoint& checkpoint, const StoredTensor& stored) {
  WholeTensor whole = make_whole(stored.name, stored.dtype, stored.shape);
  // As the state of a rank that holds just this.
  ParameterRow row;
  row.name = stored.name;
  row.shape = stored.shape;
  StateTensor held{&row, "", {placed_whole(stored.shape).offset, stored.shape}, {}};
  held.value = {whole.bytes.get(), stored.dtype, stored.shape};
  read_state(files, checkpoint.folder, checkpoint.manifest, {held}, [](const StateTensor&) {});
  if (!is_whole(stored, hash_held(held)))
    fail(ErrorKind::usage, "{}: its {} is damaged: it has not the hash that was saved", checkpoint.folder,
         stored.name);
  return whole;
}

}  // namespace hpt
