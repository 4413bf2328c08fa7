// Where the elements of a GPT lie, over whole worlds: what rows, stage layout, mesh and stores say together,
// against owners that are worked out here from the parameters' names and the mathematics alone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "models/model_spec.h"
#include "parallel/mesh_layout.h"
#include "parallel/parameter_store.h"

using namespace hpt;

namespace {

// Bit w: world rank w.
using Owners = std::uint64_t;
constexpr int kMaxWorld = 64;

struct World {
  RunConfig config;
  ModelSpec spec;
  MeshLayout layout;
  std::vector<UnitRange> stages;

  StoreShape store_shape(int rank) const {
    StoreShape shape;
    shape.tp = spec.tp;
    shape.tp_rank = layout.coordinate(rank, "tp");
    shape.num_units = spec.num_units();
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      if (static_cast<int>(stage) % config.parallel.pp == layout.coordinate(rank, "pp"))
        shape.chunks.push_back(stages[stage]);
    return shape;
  }
};

template <typename T>
T pick(std::mt19937& random, const std::vector<T>& from) {
  return from[random() % from.size()];
}

void choose_layout(RunConfig& config, std::mt19937& random) {
  ParallelSection& parallel = config.parallel;
  do {
    parallel.tp = pick<int>(random, {1, 2, 3, 4, 6, 8});
    parallel.pp = pick<int>(random, {1, 2, 3, 4});
    parallel.dp = pick<int>(random, {1, 2, 3});
  } while (parallel.tp * parallel.pp * parallel.dp > kMaxWorld);
  parallel.virtual_stages = pick<int>(random, {1, 2, 3});
  std::shuffle(parallel.order.begin(), parallel.order.end(), random);
}

// Any model that the layout can hold: heads a multiple of tp, kv heads a divisor of heads that divides tp or
// is divided by it; a vocabulary of any size, smaller than tp too.
RunConfig random_config(std::mt19937& random) {
  RunConfig config;
  choose_layout(config, random);
  const int tp = config.parallel.tp;
  ModelSection& model = config.model;
  model.layers = config.parallel.pp * config.parallel.virtual_stages + static_cast<int>(random() % 4);
  model.heads = tp * pick<int>(random, {1, 2});
  std::vector<std::int64_t> kv_heads;
  for (std::int64_t kv = 1; kv <= model.heads; ++kv)
    if (model.heads % kv == 0 && (kv % tp == 0 || tp % kv == 0)) kv_heads.push_back(kv);
  model.kv_heads = pick(random, kv_heads);
  model.hidden = model.heads * pick<int>(random, {1, 2});
  model.ffn_hidden = tp * pick<int>(random, {1, 2, 5});
  model.seq_length = 1 + static_cast<int>(random() % 5);
  model.vocab_size = pick<int>(random, {2, 3, 7, 13, 31, 61, 6, 24, 48});
  model.tie_embeddings = random() % 2 == 0;
  return config;
}

World make_world(const RunConfig& config) {
  const ParallelSection& parallel = config.parallel;
  const std::map<std::string, int> sizes = {
      {"tp", parallel.tp}, {"cp", 1}, {"pp", parallel.pp}, {"dp", parallel.dp}};
  std::vector<MeshAxis> axes;
  for (const std::string& name : parallel.order) axes.push_back({name, sizes.at(name)});
  const ModelSpec spec = make_model_spec(config);
  return {config, spec, MeshLayout(axes),
          stage_units(spec.layers, parallel.pp * parallel.virtual_stages, {}, unit_costs(spec))};
}

// Does tp rank `tp_rank` work with element (i, j) of this parameter?
bool works_with(const ModelSpec& spec, const std::string& name, int tp_rank, std::int64_t i, std::int64_t j) {
  const auto in_equal_part = [&](std::int64_t at, std::int64_t extent) {
    return at / (extent / spec.tp) == tp_rank;
  };
  const auto named = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (named("token") || named("head.weight")) {
    const std::int64_t part = (spec.vocab_size + spec.tp - 1) / spec.tp;
    return i / part == tp_rank;
  }
  if (named("query")) return in_equal_part(i / spec.head_dim, spec.heads);
  if (named("key") || named("value")) {
    // Held where a query head that reads this kv head is.
    for (std::int64_t head = 0; head < spec.heads; ++head)
      if (in_equal_part(head, spec.heads) && head / (spec.heads / spec.kv_heads) == i / spec.head_dim)
        return true;
    return false;
  }
  if (named("mlp.up")) return in_equal_part(i, spec.ffn_hidden);
  if (named("attention.out.weight")) return in_equal_part(j, spec.hidden);
  if (named("mlp.down.weight")) return in_equal_part(j, spec.ffn_hidden);
  return true;  // norms, positions, biases after a sum
}

std::vector<int> units_of(const ModelSpec& spec, const std::string& name) {
  const int head = static_cast<int>(spec.layers) + 1;
  if (name == "embedding.token.weight" && spec.tie_embeddings) return {0, head};
  if (name.starts_with("embedding.")) return {0};
  if (name.starts_with("blocks.")) return {std::stoi(name.substr(7)) + 1};
  return {head};
}

bool has_unit(const World& world, int rank, int unit) {
  for (std::size_t stage = 0; stage < world.stages.size(); ++stage)
    if (world.stages[stage].begin <= unit && unit < world.stages[stage].end)
      return static_cast<int>(stage) % world.config.parallel.pp == world.layout.coordinate(rank, "pp");
  return false;
}

// Ranks that must hold element (i, j), by tp rank: all those with that coordinate and one of the row's units.
std::vector<Owners> ranks_by_tp(const World& world, const std::string& name) {
  std::vector<Owners> ranks(static_cast<std::size_t>(world.spec.tp), 0);
  const std::vector<int> units = units_of(world.spec, name);
  for (int rank = 0; rank < world.layout.world_size(); ++rank)
    if (std::any_of(units.begin(), units.end(), [&](int unit) { return has_unit(world, rank, unit); }))
      ranks[static_cast<std::size_t>(world.layout.coordinate(rank, "tp"))] |= Owners{1} << rank;
  return ranks;
}

std::int64_t width_of(const Shape& shape) {
  return shape.num_dims() == 2 ? shape[1] : 1;
}

void mark(std::vector<Owners>& owners, const LocalParameter& parameter, int rank) {
  const Box& box = parameter.box;
  const std::int64_t width = width_of(parameter.row->shape);
  const std::int64_t first_column = box.offset.num_dims() == 2 ? box.offset[1] : 0;
  for (std::int64_t i = 0; i < box.size[0]; ++i)
    for (std::int64_t j = 0; j < width_of(box.size); ++j)
      owners[static_cast<std::size_t>((box.offset[0] + i) * width + first_column + j)] |= Owners{1} << rank;
}

// Owners of every element of every row, from the stores that all ranks would make.
std::vector<std::vector<Owners>> owners_by_stores(const World& world) {
  std::vector<std::vector<Owners>> owners;
  for (const ParameterRow& row : world.spec.rows)
    owners.emplace_back(static_cast<std::size_t>(row.shape.num_elements()), 0);
  for (int rank = 0; rank < world.layout.world_size(); ++rank) {
    Arena values("values"), gradients("gradients");
    const ParameterStore store(world.spec.rows, world.store_shape(rank), values, gradients);
    for (const LocalParameter& parameter : store.parameters())
      mark(owners[static_cast<std::size_t>(parameter.row_index)], parameter, rank);
  }
  return owners;
}

void check_owners(const World& world) {
  const std::vector<std::vector<Owners>> found = owners_by_stores(world);
  for (std::size_t row = 0; row < found.size(); ++row) {
    const std::string& name = world.spec.rows[row].name;
    CAPTURE(name);
    const std::vector<Owners> by_tp = ranks_by_tp(world, name);
    const std::int64_t width = width_of(world.spec.rows[row].shape);
    std::size_t num_wrong = 0;
    for (std::size_t at = 0; at < found[row].size(); ++at) {
      const auto flat = static_cast<std::int64_t>(at);
      Owners expected = 0;
      for (int tp_rank = 0; tp_rank < world.spec.tp; ++tp_rank)
        if (works_with(world.spec, name, tp_rank, flat / width, flat % width))
          expected |= by_tp[static_cast<std::size_t>(tp_rank)];
      num_wrong += expected == 0 || found[row][at] != expected;
    }
    REQUIRE(num_wrong == 0);
  }
}

// V h + S h + L (norms + qkv + out + mlp) + final norm, and the head's own table where it has one.
std::int64_t parameters_by_formula(const ModelSection& model) {
  const std::int64_t h = model.hidden, ffn = model.ffn_hidden;
  const std::int64_t kv = model.kv_heads * (h / model.heads);
  const std::int64_t qkv = (h + 2 * kv) * (h + 1);
  const std::int64_t block = 4 * h + qkv + h * (h + 1) + ffn * (h + 1) + h * (ffn + 1);
  const std::int64_t tables = model.tie_embeddings ? 1 : 2;
  return tables * model.vocab_size * h + model.seq_length * h + model.layers * block + 2 * h;
}

// Elements that one rank stores, padding of the vocabulary included, by the sizes of its parts.
std::int64_t stored_by_formula(const World& world, int rank) {
  const ModelSection& model = world.config.model;
  const std::int64_t h = model.hidden, tp = world.spec.tp, d = h / model.heads;
  const std::int64_t ffn = model.ffn_hidden / tp, q = h / tp;
  const std::int64_t kv = std::max<std::int64_t>(model.kv_heads / tp, 1) * d;
  const std::int64_t block = 4 * h + (q + 2 * kv) * (h + 1) + h * q + h + ffn * (h + 1) + h * ffn + h;
  const std::int64_t table = (model.vocab_size + tp - 1) / tp * h;
  const int head = static_cast<int>(model.layers) + 1;
  const bool has_embedding = has_unit(world, rank, 0), has_head = has_unit(world, rank, head);
  std::int64_t stored = 0;
  for (int unit = 1; unit < head; ++unit) stored += has_unit(world, rank, unit) ? block : 0;
  if (has_embedding) stored += table + model.seq_length * h;
  if (has_head) stored += 2 * h + (model.tie_embeddings && has_embedding ? 0 : table);
  return stored;
}

}  // namespace

TEST_CASE("every element of every GPT parameter is on exactly the ranks that work with it") {
  std::mt19937 random(31);
  int num_replicated = 0, num_padded = 0, num_tied_apart = 0;
  for (int round = 0; round < 400; ++round) {
    const World world = make_world(random_config(random));
    const RunConfig& config = world.config;
    CAPTURE(config.parallel.tp, config.parallel.pp, config.parallel.dp, config.parallel.virtual_stages,
            config.model.heads, config.model.kv_heads, config.model.vocab_size, config.model.layers);
    check_owners(world);
    num_replicated += config.model.kv_heads < config.parallel.tp;
    num_padded += config.model.vocab_size % config.parallel.tp != 0;
    num_tied_apart += config.model.tie_embeddings && config.parallel.pp > 1;
  }
  CHECK(num_replicated > 50);
  CHECK(num_padded > 50);
  CHECK(num_tied_apart > 50);
}

TEST_CASE("the number of a GPT's parameters is its closed formula, whatever the layout") {
  std::mt19937 random(32);
  for (int round = 0; round < 400; ++round) {
    const RunConfig config = random_config(random);
    REQUIRE(count_parameters(make_model_spec(config)) == parameters_by_formula(config.model));
  }
}

TEST_CASE("a rank stores its parts of the rows and not an element more") {
  std::mt19937 random(33);
  for (int round = 0; round < 200; ++round) {
    const World world = make_world(random_config(random));
    for (int rank = 0; rank < world.layout.world_size(); ++rank) {
      Arena values("values"), gradients("gradients");
      const ParameterStore store(world.spec.rows, world.store_shape(rank), values, gradients);
      std::int64_t stored = 0, real = 0;
      std::size_t bytes = 0;  // of the buffers, each rounded up to 64
      std::map<std::string, std::size_t> buffers;
      for (const LocalParameter& parameter : store.parameters()) {
        const ParameterRow& row = *parameter.row;
        stored += parameter.value.num_elements();
        real += parameter.box.num_elements();
        buffers[row.buffer.empty() ? row.name : row.buffer] += parameter.value.num_bytes();
      }
      for (const auto& [name, size] : buffers) bytes += (size + 63) / 64 * 64;
      REQUIRE(stored == stored_by_formula(world, rank));
      if (world.config.model.vocab_size % world.spec.tp == 0) REQUIRE(real == stored);
      REQUIRE(values.used() == bytes);
      REQUIRE(store.gradients().num_bytes() == bytes);
    }
  }
}
