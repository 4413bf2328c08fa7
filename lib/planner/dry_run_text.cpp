#include <algorithm>

#include "config/schema.h"
#include "config/text.h"
#include "planner/dry_run.h"
#include "planner/text_table.h"

namespace hpt {
namespace {

constexpr std::size_t kMostRows = 24;      // of a table
constexpr std::size_t kMostColumns = 150;  // of the schedule
constexpr std::size_t kMostRanksListed = 8;

constexpr TextTable::Side kLeft = TextTable::Side::left;
constexpr TextTable::Side kRight = TextTable::Side::right;

std::string value_of(const DryRun& dry, std::string_view key) {
  return find_field(key)->dump(dry.config);
}

std::string unsupported_text(const DryRun& dry) {
  if (dry.not_supported.empty()) return "";
  std::string text = "\nnot supported yet, and planned as the nearest that this version runs:\n";
  for (const std::string& line : dry.not_supported) text += "  " + line + "\n";
  return text;
}

std::string model_text(const DryRun& dry) {
  const ModelSpec& spec = dry.spec;
  return format(
      "\nmodel: {}, {}, hidden {}, {}, {}, ffn {}, sequence {}, vocabulary {}\n"
      "  parameters: {}\n",
      value_of(dry, "model.family"), counted(spec.layers, "layer"), spec.hidden, counted(spec.heads, "head"),
      counted(spec.kv_heads, "kv head"), spec.ffn_hidden, spec.seq_length, spec.vocab_size,
      grouped(count_parameters(spec)));
}

// The ranks that rank 0 meets along an axis.
std::string first_group(const MeshLayout& mesh, const std::string& axis) {
  const std::vector<std::string> fold = {axis};
  std::vector<int> ranks = mesh.group(0, fold);
  if (ranks.size() <= kMostRanksListed) return joined(ranks, " ");
  const int last = ranks.back();
  ranks.resize(kMostRanksListed - 1);
  return format("{} ... {}", joined(ranks, " "), last);
}

std::string mesh_text(const DryRun& dry) {
  const MeshLayout& mesh = dry.plan.mesh;
  std::vector<std::string> sizes;
  for (const MeshAxis& axis : mesh.axes()) sizes.push_back(format("{} {}", axis.name, axis.size));
  const int hosts = (mesh.world_size() + dry.ranks_per_host - 1) / dry.ranks_per_host;
  TextTable table({{"axis", kLeft}, {"ranks", kRight}, {"of rank 0", kLeft}, {"reach", kLeft}});
  for (const MeshAxis& axis : mesh.axes())
    table.add({axis.name, format("{}", axis.size), first_group(mesh, axis.name),
               axis.size == 1                                      ? "alone"
               : mesh.crosses_hosts(axis.name, dry.ranks_per_host) ? "crosses hosts"
                                                                   : "inside a host"});
  return format("\nmesh: {} = {}, fastest-varying first; {} a host, {}\n", counted(mesh.world_size(), "rank"),
                joined(sizes, " x "), dry.ranks_per_host, counted(hosts, "host")) +
         table.text(kMostRows);
}

// "embedding, layers 0-3"
std::string units_text(const ModelSpec& spec, const UnitRange& chunk) {
  std::vector<std::string> parts;
  const int first = std::max(chunk.begin, 1) - 1;
  const int last = std::min(chunk.end, spec.num_units() - 1) - 2;
  if (chunk.begin == 0) parts.emplace_back("embedding");
  parts.push_back(first == last ? format("layer {}", first) : format("layers {}-{}", first, last));
  if (chunk.end == spec.num_units()) parts.emplace_back("head");
  return joined(parts);
}

std::string stages_text(const DryRun& dry) {
  TextTable table({{"pp rank", kRight},
                   {"first rank", kRight},
                   {"parameters", kRight},
                   {"bytes a rank", kRight},
                   {"holds", kLeft}});
  for (std::size_t pp_rank = 0; pp_rank < dry.ranks.size(); ++pp_rank) {
    const DryRank& rank = dry.ranks[pp_rank];
    std::vector<std::string> chunks;
    for (const UnitRange& chunk : rank.chunks) chunks.push_back(units_text(dry.spec, chunk));
    table.add({format("{}", pp_rank), format("{}", rank.rank), grouped(rank.num_parameters),
               grouped(rank.memory.arenas()), joined(chunks, "; ")});
  }
  return "\nstages: parameters over all tp ranks, a tied table with the embedding\n" + table.text(kMostRows);
}

std::string memory_text(const DryRun& dry) {
  const DryRank& rank = dry.heaviest();
  const MemoryNeeds& memory = rank.memory;
  TextTable table({{"kind", kLeft}, {"bytes", kRight}});
  table.add({"parameters", grouped(memory.parameters)});
  table.add({"gradients", grouped(memory.gradients)});
  table.add({"optimizer", grouped(memory.optimizer)});
  table.add({"activations", grouped(memory.activations)});
  table.add({"workspace", grouped(memory.workspace)});
  table.add({"staging", grouped(memory.staging)});
  table.add({"total", grouped(memory.arenas())});
  table.add({"beside it, for exchange", grouped(memory.exchange)});
  return format("\nmemory of the heaviest rank, {} ({}, {})\n", rank.rank, counted(dry.num_threads, "thread"),
                name_of(dry.plan.dtype)) +
         table.text(kMostRows);
}

std::string traffic_text(const DryRun& dry) {
  const DryRank& rank = dry.heaviest();
  if (rank.traffic.empty()) return "\nsent in a step: nothing, the run has one rank\n";
  TextTable table({{"group", kLeft},
                   {"ranks", kRight},
                   {"operations", kRight},
                   {"payload bytes", kRight},
                   {"sent bytes", kRight}});
  for (const Traffic& traffic : rank.traffic)
    table.add({traffic.group, format("{}", traffic.group_size), grouped(traffic.num_ops),
               grouped(traffic.payload_bytes), grouped(traffic.sent_bytes)});
  return format("\nsent in a step by rank {}, where sums and gathers go around a ring\n", rank.rank) +
         table.text(kMostRows);
}

// The first columns of the first and the last ranks.
std::string grid_text(const PipelineSchedule& schedule) {
  const std::string grid = print_schedule(schedule, 1, 2, kMostColumns);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < grid.size();) {
    const std::size_t end = grid.find('\n', begin) + 1;
    lines.push_back("  " + grid.substr(begin, end - begin));
    begin = end;
  }
  return cut_in_the_middle(lines, kMostRows);
}

std::string schedule_text(const DryRun& dry) {
  const PipelineShape& shape = dry.plan.train.shape;
  return format(
             "\nschedule: {}, {} of {}; the ranks idle {:.1f} % of a step, if work "
             "takes "
             "time as its FLOPs do and messages none\n",
             find_field("parallel.schedule")->dump(dry.plan.config),
             counted(shape.num_micro_batches, "micro-batch", "micro-batches"),
             counted(dry.config.batch.micro, "sequence"), 100 * dry.time.bubble_share) +
         grid_text(dry.plan.train);
}

// "blocks.3.mlp.up.weight" -> "blocks.*.mlp.up.weight"
std::string any_block(const std::string& name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return name;
  return std::string(kBlocks) + "*" + name.substr(name.find('.', kBlocks.size()));
}

std::string decay_text(const DryRun& dry) {
  std::vector<std::pair<std::string, int>> kinds;
  int num_decayed = 0;
  for (const ParameterRow& row : dry.spec.rows) {
    if (!row.weight_decay) continue;
    ++num_decayed;
    const std::string name = any_block(row.name);
    const auto known =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == name; });
    if (known == kinds.end())
      kinds.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::string text = format("\nweight decay {} on {} of {} tensors\n",
                            value_of(dry, "optimizer.weight_decay"), num_decayed, dry.spec.rows.size());
  for (const auto& [name, count] : kinds)
    text += count == 1 ? format("  {}\n", name) : format("  {} ({})\n", name, count);
  return text;
}

}  // namespace

std::string to_text(const DryRun& dry) {
  return format("{}: a dry run; nothing is trained, nothing is written\n", dry.config.run.name) +
         unsupported_text(dry) + model_text(dry) + mesh_text(dry) + stages_text(dry) + memory_text(dry) +
         traffic_text(dry) + schedule_text(dry) + decay_text(dry);
}

}  // namespace hpt
