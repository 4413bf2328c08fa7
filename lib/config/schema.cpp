#include "config/schema.h"

#include <algorithm>

#include "config/nearest.h"
#include "config/schedule_rules.h"

namespace hpt {
namespace {

constexpr WholeNumber kMaxSeed = std::numeric_limits<std::uint64_t>::max();
constexpr WholeNumber kMaxVocab = 1 << 28;
constexpr Whole kStepInterval = {0, kMaxSteps};
constexpr Whole kDegree = {1, kMaxRanks};
constexpr bool kRequired = true;

constexpr Real positive(double max) {
  return {.min = 0, .max = max, .without_min = true};
}
constexpr Real from_zero(double max) {
  return {.min = 0, .max = max};
}

// Adds one section's fields to the table.
template <typename Section>
class SectionTable {
 public:
  SectionTable(std::vector<Field>& fields, std::string name, Section RunConfig::*section)
      : fields_(fields), name_(std::move(name)), section_(section) {}

  // `member` is what the key's value is kept in: a member of the section, or std::identity for the whole
  // section.
  template <typename Member, typename Kind>
  void add(const std::string& name, Member member, Kind kind, bool required = false) {
    const auto section = section_;
    fields_.push_back(
        {.section = name_,
         .name = name,
         .required = required,
         .about = kind.about(),
         .read = [=](const YamlNode& node,
                     RunConfig& config) { return kind.read(node, std::invoke(member, config.*section)); },
         .dump = [=](const RunConfig& config) { return kind.dump(std::invoke(member, config.*section)); }});
  }

 private:
  std::vector<Field>& fields_;
  std::string name_;
  Section RunConfig::*section_;
};

void add_run(std::vector<Field>& fields) {
  using S = RunSection;
  SectionTable<S> table(fields, "run", &RunConfig::run);
  table.add("name", &S::name, Text{Text::Use::name}, kRequired);
  table.add("dir", &S::dir, Text{Text::Use::path});
  table.add("device", &S::device,
            Word<DeviceChoice>{
                {"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}});
  table.add("seed", &S::seed, Whole{0, kMaxSeed});
  table.add("steps", &S::steps, Whole{1, kMaxSteps}, kRequired);
  table.add("threads", &S::threads, OrWord{"auto", Whole{1, 4096}});
  table.add("precision", &S::precision,
            Word<Precision>{{"fp32", Precision::fp32},
                            {"bf16", Precision::bf16},
                            {"fp16", Precision::fp16},
                            {"fp64", Precision::fp64}});
  table.add("watchdog_s", &S::watchdog_s, positive(1e9));
  table.add("check_replicas_every", &S::check_replicas_every, kStepInterval);
}

void add_model(std::vector<Field>& fields) {
  using S = ModelSection;
  SectionTable<S> table(fields, "model", &RunConfig::model);
  table.add("family", &S::family,
            Word<Family>{{"gpt", Family::gpt}, {"bloom", Family::bloom}, {"llama", Family::llama}});
  table.add("layers", &S::layers, Whole{1, 1 << 14}, kRequired);
  table.add("hidden", &S::hidden, Whole{1, 1 << 20}, kRequired);
  table.add("heads", &S::heads, Whole{1, 1 << 20}, kRequired);
  table.add("kv_heads", &S::kv_heads, Whole{1, 1 << 20});
  table.add("ffn_hidden", &S::ffn_hidden, Whole{1, 1 << 23});
  table.add("seq_length", &S::seq_length, Whole{1, 1 << 24}, kRequired);
  table.add("vocab_size", &S::vocab_size, Whole{1, kMaxVocab}, kRequired);
  table.add("dropout", &S::dropout, Real{.min = 0, .max = 1, .without_max = true});
  table.add("tie_embeddings", &S::tie_embeddings, Boolean{});
  table.add("init_std", &S::init_std, positive(1e3));
}

void add_parallel(std::vector<Field>& fields) {
  using S = ParallelSection;
  SectionTable<S> table(fields, "parallel", &RunConfig::parallel);
  table.add("tp", &S::tp, kDegree);
  table.add("pp", &S::pp, kDegree);
  table.add("dp", &S::dp, OrWord{"auto", kDegree});
  table.add("cp", &S::cp, kDegree);
  table.add("order", &S::order, AxisOrder{});
  Word<std::string> schedules{};
  for (const ScheduleRules& rules : kScheduleRules)
    schedules.add(std::string(rules.name), std::string(rules.name));
  table.add("schedule", &S::schedule, schedules);
  table.add("virtual_stages", &S::virtual_stages, Whole{1, 1 << 14});
  table.add("stages", &S::stages, OrWord{"auto", WholeList{Whole{1, 1 << 14}, 1}});
  table.add("sequence_parallel", &S::sequence_parallel, Boolean{});
  table.add("zero", &S::zero, Whole{0, 3});
  table.add("recompute", &S::recompute,
            Word<Recompute>{
                {"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}});
}

void add_batch(std::vector<Field>& fields) {
  using S = BatchSection;
  SectionTable<S> table(fields, "batch", &RunConfig::batch);
  table.add("micro", &S::micro, Whole{1, 1 << 20});
  table.add("global", &S::global, Whole{1, 1 << 30}, kRequired);
}

void add_optimizer(std::vector<Field>& fields) {
  using S = OptimizerSection;
  SectionTable<S> table(fields, "optimizer", &RunConfig::optimizer);
  table.add("type", &S::type,
            Word<OptimizerType>{{"adamw", OptimizerType::adamw}, {"sgd", OptimizerType::sgd}});
  table.add("lr", &S::lr, positive(1e6), kRequired);
  table.add("min_lr", &S::min_lr, from_zero(1e6));
  table.add("betas", std::identity{}, Betas{});
  table.add("eps", &S::eps, positive(1));
  table.add("weight_decay", &S::weight_decay, from_zero(1e3));
  table.add("clip_norm", &S::clip_norm, from_zero(1e9));
  table.add("schedule", &S::schedule,
            Word<LrShape>{{"constant", LrShape::constant},
                          {"linear", LrShape::linear},
                          {"cosine", LrShape::cosine},
                          {"wsd", LrShape::wsd}});
  table.add("warmup_steps", &S::warmup_steps, kStepInterval);
}

void add_data(std::vector<Field>& fields) {
  using S = DataSection;
  SectionTable<S> table(fields, "data", &RunConfig::data);
  table.add("train", &S::train, Sources{1}, kRequired);
  table.add("valid", &S::valid, OrWord{"none", Sources{0}});
}

void add_eval(std::vector<Field>& fields) {
  using S = EvalSection;
  SectionTable<S> table(fields, "eval", &RunConfig::eval);
  table.add("every", &S::every, kStepInterval);
  table.add("batches", &S::batches, Whole{1, 1 << 30});
  table.add("sample_tokens", &S::sample_tokens, Whole{0, 1 << 20});
  table.add("sample_prompt", &S::sample_prompt, Text{Text::Use::prompt});
  table.add("sample_temperature", &S::sample_temperature, from_zero(1e3));
  table.add("sample_top_k", &S::sample_top_k, Whole{0, kMaxVocab});
}

void add_checkpoint(std::vector<Field>& fields) {
  using S = CheckpointSection;
  SectionTable<S> table(fields, "checkpoint", &RunConfig::checkpoint);
  table.add("dir", &S::dir, Text{Text::Use::path});
  table.add("every", &S::every, kStepInterval);
  table.add("keep", &S::keep, Whole{1, 1 << 30});
  table.add("keep_every", &S::keep_every, kStepInterval);
  table.add("resume", &S::resume, Text{Text::Use::resume});
  table.add("async", &S::async, Boolean{});
  table.add("init_from", &S::init_from, OrWord{"none", Text{Text::Use::path}});
}

void add_log(std::vector<Field>& fields) {
  using S = LogSection;
  SectionTable<S> table(fields, "log", &RunConfig::log);
  table.add("every", &S::every, kStepInterval);
  table.add("tensorboard", &S::tensorboard, Boolean{});
  table.add("trace_steps", &S::trace_steps, WholeList{Whole{1, kMaxSteps}, 0});
  table.add("straggler_factor", &S::straggler_factor, Real{.min = 1, .max = 1e6});
}

std::vector<Field> make_schema() {
  std::vector<Field> fields;
  for (auto add_section : {add_run, add_model, add_parallel, add_batch, add_optimizer, add_data, add_eval,
                           add_checkpoint, add_log}) {
    add_section(fields);
  }
  return fields;
}

}  // namespace

const std::vector<Field>& schema() {
  static const std::vector<Field> fields = make_schema();
  return fields;
}

const Field* find_field(std::string_view key) {
  const std::vector<Field>& fields = schema();
  const auto match =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key() == key; });
  return match == fields.end() ? nullptr : &*match;
}

bool is_section(std::string_view name) {
  const std::vector<Field>& fields = schema();
  return std::any_of(fields.begin(), fields.end(), [&](const Field& f) { return f.section == name; });
}

std::string nearest_key(std::string_view section, std::string_view name) {
  // The same name in another section is nearer than a name with two wrong letters in this one.
  constexpr int kOtherSection = 3;
  std::string nearest;
  int least = std::numeric_limits<int>::max();
  for (const Field& field : schema()) {
    const int distance = 2 * edit_distance(name, field.name) +
                         std::min(kOtherSection, 2 * edit_distance(section, field.section));
    if (distance >= least) continue;
    least = distance;
    nearest = field.key();
  }
  return nearest;
}

std::string nearest_section(std::string_view name) {
  std::vector<std::string> sections = {"defaults"};
  for (const Field& field : schema()) {
    if (field.name == name) return field.key();
    if (sections.back() != field.section) sections.push_back(field.section);
  }
  return nearest_word(name, sections);
}

}  // namespace hpt
