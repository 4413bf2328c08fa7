// `hpt-train checkpoint export-hf | import-hf`, as typed: the same model, the same bits, and nothing foreign
// trusted. tests/reference/hf_gpt2.json holds a GPT-2 by its Hugging Face names and PyTorch's loss of it.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "e2e/small_run.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Dtype, shape and bytes of each tensor, by name.
using Tensors = std::map<std::string, std::string>;

Json header_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return Json::parse(file.substr(sizeof length, length));
}

void read_tensors(const std::string& path, Tensors& tensors) {
  const std::string file = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const Json header = header_of(file);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::uint64_t begin = entry["data_offsets"][0];
    const std::uint64_t end = entry["data_offsets"][1];
    tensors[name] =
        entry["dtype"].dump() + entry["shape"].dump() + file.substr(8 + length + begin, end - begin);
  }
}

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

std::string safetensors(const std::vector<Entry>& entries) {
  Json header = Json::object();
  std::string data;
  for (const Entry& entry : entries) {
    header[entry.name] = {{"dtype", entry.dtype},
                          {"shape", entry.shape},
                          {"data_offsets", {data.size(), data.size() + entry.bytes.size()}}};
    data += entry.bytes;
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text + data;
}

std::string bytes_of(const std::vector<double>& values) {
  std::string bytes(values.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// The fixture as a folder of Hugging Face's, and what a test changes of it.
struct Fixture {
  Fixture() : json(Json::parse(read_file(HPT_SOURCE_DIR "/tests/reference/hf_gpt2.json"))) {
    for (const auto& [name, tensor] : json["tensors"].items())
      entries.push_back({name, "F64", tensor["shape"], bytes_of(tensor["values"])});
  }

  void write(const std::string& folder) const {
    fs::create_directories(folder);
    write_file(folder + "/config.json", json["config"].dump());
    write_file(folder + "/model.safetensors", safetensors(entries));
  }

  Entry& entry(const std::string& name) {
    return *std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
  }

  Json json;
  std::vector<Entry> entries;
};

Outcome checkpoint(const TempFolder& folder, const std::vector<std::string>& words) {
  std::vector<std::string> all{"checkpoint"};
  all.insert(all.end(), words.begin(), words.end());
  return run({hpt_train(all), {}, folder.path()});
}

void check_done(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
}

std::map<std::string, std::string> hashes(const std::string& checkpoint_folder) {
  std::map<std::string, std::string> found;
  const Json manifest = Json::parse(read_file(checkpoint_folder + "/manifest.json"));
  for (const Json& tensor : manifest["tensors"]) found[tensor["name"]] = tensor["hash"];
  return found;
}

TEST_CASE(
    "a GPT-2 by its Hugging Face names, imported, has PyTorch's loss in every layout, and exported its "
    "bits") {
  const TempFolder folder;
  const Fixture fixture;
  fixture.write(folder / "hf");
  const auto tokens = fixture.json["tokens"].get<std::vector<std::uint16_t>>();
  write_file(folder / "tokens.bin", {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()});
  check_done(checkpoint(folder, {"import-hf", "hf", "imported"}));
  write_file(folder / "run.yaml",
             "run: {name: r, steps: 1, threads: 1, precision: fp64}\n"
             "model: {layers: 2, hidden: 12, heads: 3, ffn_hidden: 21, seq_length: 7, vocab_size: 17}\n"
             "batch: {global: 1}\noptimizer: {type: sgd, lr: 1.0e-300}\n"
             "data: {train: tokens.bin, valid: tokens.bin}\neval: {every: 1}\n"
             "checkpoint: {init_from: imported}\n");
  for (const std::string tp : {"1", "3"})
    for (const std::string pp : {"1", "2"}) {
      const std::string dir = "tp" + tp + "pp" + pp;
      const Outcome outcome = run(
          {hpt_train({"--config", "run.yaml", "--local", std::to_string(std::stoi(tp) * std::stoi(pp)),
                      "--set", "parallel.tp=" + tp, "--set", "parallel.pp=" + pp, "--set", "run.dir=" + dir}),
           {},
           folder.path()});
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      const double loss = read_metrics(folder / (dir + "/metrics.jsonl")).back()["valid_loss"];
      CHECK(std::abs(loss - fixture.json["loss"].get<double>()) < 1e-12);
    }
  check_done(checkpoint(folder, {"export-hf", "imported", "exported"}));
  Tensors before;
  Tensors after;
  read_tensors(folder / "hf/model.safetensors", before);
  read_tensors(folder / "exported/model.safetensors", after);
  CHECK(before == after);
  const Json config = Json::parse(read_file(folder / "exported/config.json"));
  for (const auto& [key, value] : fixture.json["config"].items()) CHECK(config[key] == value);
}

TEST_CASE(
    "a trained checkpoint exported in many files or one and imported back has every bit of every weight") {
  const SmallRun run;
  for (const std::string tied : {"true", "false"}) {
    const std::string dir = "out-" + tied;
    const Outcome trained =
        run.train(Ranks::threads, 4,
                  {"parallel.tp=2", "parallel.pp=2", "model.kv_heads=4", "checkpoint.every=6",
                   "model.tie_embeddings=" + tied, "run.dir=" + dir});
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    const std::string step = run.folder() / dir + "/checkpoints/step-00000006";
    check_done(checkpoint(run.folder(), {"export-hf", dir, dir + "-one"}));
    check_done(checkpoint(run.folder(), {"export-hf", step, dir + "-many", "--max-shard-bytes", "20k"}));
    Tensors one;
    read_tensors(run.folder() / dir + "-one/model.safetensors", one);
    CHECK(one.size() == (tied == "true" ? 52U : 53U));
    CHECK(one.contains("lm_head.weight") == (tied == "false"));
    Tensors many;
    const Json index = Json::parse(read_file(run.folder() / dir + "-many/model.safetensors.index.json"));
    std::map<std::string, int> files;
    for (const auto& [tensor, file] : index["weight_map"].items()) ++files[file];
    CHECK(files.size() > 5);
    for (const auto& [file, count] : files) read_tensors(run.folder() / dir + "-many/" + file, many);
    CHECK(many == one);
    for (const std::string ending : {"-one", "-many"}) {
      check_done(checkpoint(run.folder(), {"import-hf", dir + ending, dir + ending + "-back"}));
      check_done(checkpoint(run.folder(), {"verify", dir + ending + "-back"}));
      const auto original = hashes(step);
      for (const auto& [name, hash] : hashes(run.folder() / dir + ending + "-back"))
        CHECK((original.contains(name) && original.at(name) == hash));
      CHECK(hashes(run.folder() / dir + ending + "-back").size() == original.size() / 3);
    }
  }
}

TEST_CASE(
    "a dump without the prefix, with masks, and with a tied head stored is taken for the model that it is") {
  const TempFolder folder;
  Fixture fixture;
  fixture.write(folder / "hf");
  check_done(checkpoint(folder, {"import-hf", "hf", "plain"}));
  const Entry table = fixture.entry("transformer.wte.weight");
  for (Entry& entry : fixture.entries) entry.name.erase(0, std::string("transformer.").size());
  fixture.entries.push_back({"lm_head.weight", "F64", table.shape, table.bytes});
  fixture.entries.push_back({"h.0.attn.bias", "BOOL", {1, 1, 2, 2}, std::string(4, '\1')});
  fixture.entries.push_back({"h.1.attn.masked_bias", "F32", {}, std::string(4, '\0')});
  fixture.write(folder / "bare");
  check_done(checkpoint(folder, {"import-hf", "bare/", "bare-in"}));
  CHECK(hashes(folder / "bare-in") == hashes(folder / "plain"));
}

TEST_CASE("what can't be told as a GPT-2, and an OUT that is there, are refused and nothing is written") {
  const SmallRun run;
  const Outcome trained = run.train(Ranks::threads, 1, {"checkpoint.every=6"});
  REQUIRE(trained.exit_code == 0);
  const auto check_refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const std::vector<std::string> before = run.files();
    const Outcome outcome = checkpoint(run.folder(), words);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.count_err_lines("") == 1);
    CHECK_THAT(outcome.err, Contains(why));
    CHECK(run.files() == before);
  };
  check_refused({"export-hf", "out", "hf"},
                "can't be told as a GPT-2: a GPT-2 has a key and a value for each head, "
                "and this model has 2 kv heads for 4 heads");
  check_refused({"export-hf", "nowhere", "hf"}, "nowhere: is not there");
  check_refused({"export-hf", "out"}, "out is required");
  check_refused({"export-hf", "out", "hf", "--max-shard-bytes", "5x"}, "--max-shard-bytes: found 5x");
  check_refused({"import-hf", "out", "in"}, "out/config.json: can't read it");
  REQUIRE(
      run.train(Ranks::threads, 1, {"checkpoint.every=6", "model.kv_heads=4", "run.dir=full"}).exit_code ==
      0);
  check_refused({"export-hf", "full", "text"}, "text: is there already");
  fs::create_directory(run.folder() / "hf.uncommitted");
  write_file(run.folder() / "hf.uncommitted/mine.txt", "");
  check_refused({"export-hf", "full", "hf"}, "hf.uncommitted: is in the way");
  fs::remove_all(run.folder() / "hf.uncommitted");
  const std::string shard = run.folder() / "full/checkpoints/step-00000006/shard-00000.safetensors";
  std::string bytes = read_file(shard);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  bytes[sizeof header_bytes + header_bytes] ^= 1;  // of the first weight
  write_file(shard, bytes);
  check_refused({"export-hf", "full", "hf"}, "is damaged: it has not the hash that was saved");
}

TEST_CASE("what is not sound in a foreign folder is refused by its file, and nothing is written") {
  const TempFolder folder;
  const Fixture good;
  const auto check_refused = [&](
                                 const Fixture& fixture, const std::string& why,
                                 const std::function<void()>& spoil = [] {}) {
    fs::remove_all(folder / "hf");
    fixture.write(folder / "hf");
    spoil();
    const Outcome outcome = checkpoint(folder, {"import-hf", "hf", "in"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.count_err_lines("") == 1);
    CHECK_THAT(outcome.err, Contains(why));
    CHECK_FALSE(fs::exists(folder / "in"));
    CHECK_FALSE(fs::exists(folder / "in.uncommitted"));
  };
  const auto with_config = [&](const std::string& key, const Json& value) {
    Fixture changed = good;
    changed.json["config"][key] = value;
    return changed;
  };
  check_refused(with_config("activation_function", "gelu"),
                "config.json: is no config that this version can take: its "
                "activation_function is \"gelu\"");
  check_refused(with_config("model_type", "bloom"), "its model_type is \"bloom\"");
  check_refused(with_config("layer_norm_epsilon", 1e-6), "its layer_norm_epsilon is 1e-06");
  check_refused(with_config("scale_attn_by_inverse_layer_idx", true),
                "its scale_attn_by_inverse_layer_idx is true");
  check_refused(with_config("n_layer", -1), "its n_layer is -1, and no size");
  check_refused(with_config("n_layer", 1e300), "and no size");
  check_refused(with_config("n_layer", 1LL << 50), "model.layers");
  check_refused(with_config("n_layer", 3), "has no transformer.h.2.ln_1.weight");
  check_refused(with_config("n_layer", 1),
                "holds transformer.h.1.attn.c_attn.bias, which is no tensor of this GPT-2");
  check_refused(with_config("n_head", 5), "model.h");
  check_refused(with_config("n_head", nullptr), "it has no n_head");
  check_refused(with_config("n_embd", 24), "has shape [");
  check_refused(with_config("n_embd", "12\n"), "no size");
  check_refused(with_config("attn_pdrop", 0.5), "its attn_pdrop and resid_pdrop differ");
  check_refused(with_config("tie_word_embeddings", false), "has no lm_head.weight");

  const auto with_weights = [&](const std::function<void(Fixture&)>& change) {
    Fixture changed = good;
    change(changed);
    return changed;
  };
  check_refused(with_weights([](Fixture& f) { f.entries.pop_back(); }), "has no transformer.");
  check_refused(with_weights([](Fixture& f) {
                  f.entries.push_back({"extra\x1b", "F64", {1}, std::string(8, 'x')});
                }),
                "holds extra?, which is no tensor");
  check_refused(with_weights([](Fixture& f) { f.entry("transformer.ln_f.bias").dtype = "I64"; }),
                "all weights must be");
  check_refused(with_weights([](Fixture& f) { f.entry("transformer.ln_f.bias").dtype = "BF16"; }),
                "has the dtype \"BF16\", which this version does not read");
  check_refused(
      with_weights([](Fixture& f) {
        std::swap(f.entry("transformer.h.0.mlp.c_fc.weight").shape[0],
                  f.entry("transformer.h.0.mlp.c_fc.weight").shape[1]);
      }),
      "its transformer.h.0.mlp.c_fc.weight has shape [21, 12], and by config.json it would have [12, 21]");
  check_refused(with_weights([](Fixture& f) {
                  Entry head = f.entry("transformer.wte.weight");
                  head.name = "lm_head.weight";
                  head.bytes[0] ^= 1;
                  f.entries.push_back(head);
                }),
                "its lm_head.weight is not the token table");

  check_refused(with_weights([](Fixture& f) {
                  const double not_a_number = std::nan("");
                  std::memcpy(f.entry("transformer.ln_f.bias").bytes.data() + 16, &not_a_number, 8);
                }),
                "hf: its transformer.ln_f.bias holds a number that is not finite");

  const std::string weights = folder / "hf/model.safetensors";
  check_refused(good, "model.safetensors: is no safetensors file", [&] {
    const std::string whole = read_file(weights);
    write_file(weights, whole.substr(0, whole.size() - 8));
  });
  check_refused(good, "is no safetensors file", [&] { write_file(weights, "short"); });
  check_refused(good, "config.json: is no config", [&] { write_file(folder / "hf/config.json", "[{"); });
  check_refused(good, "nested too deeply",
                [&] { write_file(folder / "hf/config.json", std::string(100000, '[')); });
  check_refused(good, "holds neither model.safetensors nor model.safetensors.index.json",
                [&] { fs::remove(weights); });
  const auto with_index = [&](const std::string& text) {
    return [&, text] {
      fs::rename(weights, folder / "hf/a.safetensors");
      write_file(folder / "hf/model.safetensors.index.json", text);
    };
  };
  check_refused(good, "'../a.safetensors' is no name of a file beside it",
                with_index(R"({"weight_map": {"x": "../a.safetensors"}})"));
  check_refused(good, "x is not in a.safetensors", with_index(R"({"weight_map": {"x": "a.safetensors"}})"));
  check_refused(good, "b.safetensors: can't read it",
                with_index(R"({"weight_map": {"x": "b.safetensors"}})"));
  check_refused(good, "is no index of weights", with_index(R"({"weight_map": 3})"));
  check_refused(good, "hf: holds no weights", with_index(R"({"weight_map": {}})"));
}

}  // namespace
}  // namespace e2e
