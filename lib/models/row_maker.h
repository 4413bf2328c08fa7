// RowMaker: the rows that families share, one call a part of the model. It belongs to one pipeline unit and
// adds to the model's table in the order of the calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/model_spec.h"

namespace hpt {

enum class Bias { without, with };

// Tables that more than one family has.
inline constexpr const char* kTokenTable = "embedding.token.weight";        // [V, h]
inline constexpr const char* kPositionTable = "embedding.position.weight";  // [S, h]
inline constexpr const char* kHeadTable = "head.weight";                    // [V, h], when untied
std::string block_name(int block);  // "blocks.3", for global unit block + 1

class RowMaker {
 public:
  // Weights start normal with init_std; references outlive the maker.
  RowMaker(const ModelSpec& spec, double init_std, int unit, std::vector<ParameterRow>& rows)
      : spec_(spec), std_(init_std), unit_(unit), rows_(rows) {}

  // NAME.weight [h] of ones, and NAME.bias of zeros.
  void norm(const std::string& name, Bias bias);
  // NAME.{query,key,value}: heads cut over tp, kv heads in kv_parts() parts; one local buffer, NAME.qkv.
  void attention_inputs(const std::string& name, Bias bias);
  // Rows cut over tp: [out, in]. Rows with the same `buffer` lie in one local tensor.
  void column_parallel(const std::string& name, std::int64_t out, std::int64_t in, Bias bias,
                       const std::string& buffer = "");
  // Columns cut over tp: the projections that write to the residual stream, init_std / sqrt(2 L).
  void row_parallel(const std::string& name, std::int64_t out, std::int64_t in, Bias bias);
  // [V, h], cut by vocabulary rows over tp.
  ParameterRow& vocabulary(const char* name);
  void positions();

 private:
  // Matrices decay; biases and norms, which have one dim, do not.
  ParameterRow& add(const std::string& name, const Shape& shape, const std::optional<TpSplit>& split,
                    InitKind init, double std);
  void head_projection(const std::string& attention, const char* which, std::int64_t heads, int parts,
                       Bias bias);

  const ModelSpec& spec_;
  double std_;
  int unit_;
  std::vector<ParameterRow>& rows_;
};

// The token table, which the head holds too when it is tied.
void add_token_table(const ModelSpec& spec, RowMaker& embedding);
// final_norm, and a table of its own when untied.
void add_head(const ModelSpec& spec, double init_std, Bias bias, std::vector<ParameterRow>& rows);
// norm1, attention, norm2 and a two-matrix MLP, all with biases: gpt's block and bloom's.
void add_classic_block(const ModelSpec& spec, double init_std, int block, std::vector<ParameterRow>& rows);

}  // namespace hpt
