// Crafted manifests and shard headers: each is refused with a line of its own, fast, in little memory, and
// before anything of the sizes in it is allocated.
#include <catch2/catch.hpp>

#include "checkpoint/crafted.h"
#include "checkpoint/verify.h"
#include "support/cost.h"
#include "support/temp_folder.h"

namespace hpt::testing {
namespace {

using Catch::Matchers::Contains;

struct Crafted {
  std::string name;
  std::string bytes;
  std::string reason;  // a part of the refusal
};

using Refusal = std::string (*)(const std::string&);

// Each within a second; all together they leave no mountain.
void expect_refused(const std::vector<Crafted>& all, Refusal refusal, long most_mebibytes) {
  const long before = peak_mebibytes();
  for (const Crafted& crafted : all) {
    const double start = cpu_seconds();
    const std::string told = refusal(crafted.bytes);
    CAPTURE(crafted.name, told.substr(0, 300));
    CHECK(cpu_seconds() - start < kSlowdown);
    CHECK_THAT(told, Contains(crafted.reason));
    CHECK_FALSE(crafted.reason.empty());
    CHECK(is_plain_line(told));
  }
  if (kPeakIsTrue) CHECK(peak_mebibytes() - before < most_mebibytes);
}

std::string one_tensor(const std::string& value) {
  return "{\"a\":" + value + "}";
}

std::string many_keys(std::size_t count, const std::string& value) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) text += format("{}\"{}\":{}", i == 0 ? "" : ",", i, value);
  return text + "}";
}

TEST_CASE("the sound ones from which the others are made are accepted") {
  CHECK(refusal_of_manifest(to_text(small_manifest())).empty());
  CHECK(refusal_of_manifest(edited_manifest([](OrderedJson&) {})).empty());
  CHECK(refusal_of_header(safetensors_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8))
            .empty());
  CHECK(refusal_of_header(safetensors_file(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4))
            .empty());
  CHECK(refusal_of_header(safetensors_file(R"({"a":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}})", 0))
            .empty());
  CHECK(refusal_of_header(safetensors_file("{}", 0)).empty());
}

TEST_CASE("a header length that can't be is refused before it is believed") {
  std::vector<Crafted> all;
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{100'000'000},
                                     std::uint64_t{1} << 63U, ~std::uint64_t{0}, ~std::uint64_t{0} - 7})
    all.push_back({std::to_string(length), length_of_header(length) + "{      }",
                   length == 0 ? "parse error" : "its header would be"});
  all.push_back({"no length", "1234567", "it has only 7 bytes"});
  all.push_back({"nothing", "", "it has only 0 bytes"});
  all.push_back({"over the cap, in the file", safetensors_file(std::string(kMostHeaderBytes, ' '), 0),
                 "its header would be 8388608"});
  expect_refused(all, refusal_of_header, 64);
}

TEST_CASE("a header that is no object of tensors is refused") {
  const std::string ok = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  std::vector<Crafted> all = {
      {"no JSON", "hello", "parse error"},
      {"cut off", R"({"a":{"dtype":"F32")", "parse error"},
      {"no UTF-8", "{\"\xFF\xC3\":1}", "parse error"},
      {"an array", "[]", "its header is no object"},
      {"a number", "17", "its header is no object"},
      {"a tensor that is none", one_tensor("3"), "cannot use at() with"},
      {"nothing in it", one_tensor("{}"), "not found"},
      {"twice", "{\"a\":" + ok + ",\"a\":" + ok + "}", "'a' is there twice"},
      {"a name for a terminal",
       "{\"\\u001b[2J\\nx\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}",
       "'?[2J?x' has the dtype"},
      {"metadata that are none", R"({"__metadata__":{"a":3}})", "type must be string"},
      {"deep arrays", times("[", 100'000), "nested too deeply"},
      {"deep objects", times("{\"a\":", 100'000), "nested too deeply"},
      {"deep and closed", times("[", 100'000) + times("]", 100'000), "nested too deeply"},
      {"a million keys", many_keys(700'000, "1"), "made of more than"},
      {"many keys", many_keys(500'000, "1"), "cannot use at() with"},
      {"a million of one key", "{" + times("\"a\":1,", 1'000'000) + "\"a\":1}", "made of more than"},
      {"a million values", "[" + times("1,", 1'000'000) + "1]", "made of more than"},
      {"a long string", one_tensor("\"" + std::string(8'000'000, 'x') + "\""), "cannot use at() with"},
      {"a long dtype",
       one_tensor("{\"dtype\":\"" + std::string(8'000'000, 'x') + "\",\"shape\":[],\"data_offsets\":[0,0]}"),
       "has the dtype"},
      {"a long number", std::string(8'000'000, '1'), "number overflow"},
  };
  for (Crafted& crafted : all) crafted.bytes = safetensors_file(crafted.bytes, 8);
  expect_refused(all, refusal_of_header, 160);
}

TEST_CASE("shapes, dtypes and places that can't be are refused before anything is allocated") {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& places) {
    return one_tensor(format(R"({{"dtype":{},"shape":{},"data_offsets":{}}})", dtype, shape, places));
  };
  std::vector<Crafted> all = {
      {"overflow", tensor(R"("F32")", "[4294967296,4294967296]", "[0,8]"), "has 0 to 8 for its data"},
      {"overflow to the right size", tensor(R"("F32")", "[4611686018427387905,4]", "[0,8]"), "size or place"},
      {"overflow over four dims", tensor(R"("F32")", "[65536,65536,65536,65536]", "[0,0]"),
       "has 0 to 0 for its data"},
      {"2^64", tensor(R"("F32")", "[18446744073709551616]", "[0,8]"), "size or place"},
      {"negative", tensor(R"("F32")", "[-2]", "[0,8]"), "size or place -2"},
      {"two negatives", tensor(R"("F32")", "[-1,-2]", "[0,8]"), "size or place -1"},
      {"a fraction", tensor(R"("F32")", "[2.0]", "[0,8]"), "size or place 2.0"},
      {"text", tensor(R"("F32")", R"(["2"])", "[0,8]"), "size or place"},
      {"too many dims", tensor(R"("F32")", "[1,1,1,1,2]", "[0,8]"), "no shape of at most 4 dims"},
      {"unknown dtype", tensor(R"("F8_E4M3")", "[8]", "[0,8]"), "has the dtype"},
      {"a dtype that is none", tensor("7", "[2]", "[0,8]"), "type must be string"},
      {"too few bytes", tensor(R"("F32")", "[2]", "[0,4]"), "for its data"},
      {"too many bytes", tensor(R"("F32")", "[1]", "[0,8]"), "for its data"},
      {"backwards", tensor(R"("F32")", "[2]", "[8,0]"), "for its data"},
      {"one place", tensor(R"("F32")", "[2]", "[8]"), "no two places"},
      {"past the end", tensor(R"("F32")", "[4]", "[0,16]"), "and the file holds 8"},
      {"before the end", tensor(R"("F32")", "[1]", "[0,4]"), "and the file holds 8"},
      {"a hole", tensor(R"("F32")", "[1]", "[4,8]"), "begin at 4, and those before end at 0"},
      {"overlap",
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "begin at 4, and those before end at 8"},
  };
  for (Crafted& crafted : all) crafted.bytes = safetensors_file(crafted.bytes, 8);
  expect_refused(all, refusal_of_header, 16);
}

TEST_CASE("a manifest whose checksum is wrong or missing is refused") {
  const std::string good = to_text(small_manifest());
  std::vector<Crafted> all = {{"nothing", "", "does not end as a manifest does"},
                              {"cut off", good.substr(0, good.size() - 1), "does not end as a manifest does"},
                              {"a digit", good, "its checksum is wrong"},
                              {"longer", good + "\n", "does not end as a manifest does"}};
  all[2].bytes[good.find("\"step\": ") + 8] = '5';
  expect_refused(all, refusal_of_manifest, 16);
}

TEST_CASE(
    "a manifest that is no JSON, or more of it than any checkpoint needs, is refused though its checksum is "
    "right") {
  const auto key = [](const std::string& value) { return sealed("{\"format\":" + value + ",\n"); };
  expect_refused({{"no JSON", sealed("hello"), "parse error"},
                  {"an array", sealed("["), "parse error"},
                  {"no UTF-8", key("\"\xFF\""), "parse error"},
                  {"deep", sealed(times("[", 100'000)), "nested too deeply"},
                  {"deep objects", sealed(times("{\"a\":", 100'000)), "nested too deeply"},
                  {"a million keys", key(many_keys(1'000'000, "1")), "of another format"},
                  {"millions of keys", key(many_keys(2'200'000, "1")), "made of more than"},
                  {"millions of values", key("[" + times("1,", 15'000'000) + "1]"), "made of more than"},
                  {"millions of arrays", key("[" + times("[],", 10'000'000) + "1]"), "made of more than"},
                  {"another format", key("\"other\""), "of another format"},
                  {"a long format", key("\"" + times("x", 30'000'000) + "\""), "of another format"},
                  {"no more than a format", key("\"hpt-train checkpoint\""), "'version' not found"}},
                 refusal_of_manifest, 400);
}

std::vector<Crafted> edits(
    const std::vector<std::pair<std::string, std::function<void(OrderedJson&)>>>& all) {
  std::vector<Crafted> made;
  for (const auto& [reason, edit] : all) made.push_back({reason, edited_manifest(edit), reason});
  return made;
}

TEST_CASE("names in a manifest that lead anywhere else, or nowhere, are refused before a file is opened") {
  std::vector<Crafted> all;
  for (const std::string name :
       {"../shard-00000.safetensors", "/etc/passwd", "a/shard-00000.safetensors",
        "shard-00000.safetensors/../x", "shard-0000.safetensors", "shard-00000000000.safetensors",
        "shard-0000x.safetensors", "shard-00000.safetensors\n", "", ".", "..", "shard-00000.safetensor",
        "Shard-00000.safetensors"})
    all.push_back({name, edited_manifest([&](OrderedJson& json) { json["files"][0]["name"] = name; }),
                   "is no shard's name"});
  const std::string with_nul(
      "shard-00\0"
      "00.safetensors",
      23);
  all.push_back({"NUL", edited_manifest([&](OrderedJson& json) { json["files"][0]["name"] = with_nul; }),
                 "'shard-00?00.safetensors' is no shard's name"});
  for (const std::string& name : std::vector<std::string>{"../a", "a/b", "a\nb", "a b", "\x1b[2J", "",
                                                          std::string(513, 'a'), "\xC3\xA9"})
    all.push_back({name, edited_manifest([&](OrderedJson& json) { json["tensors"][0]["name"] = name; }),
                   "is no tensor's name"});
  all.push_back({"axis", edited_manifest([](OrderedJson& json) { json["mesh"][0]["axis"] = "t\np"; }),
                 "'t?p' of size 2 is no axis"});
  expect_refused(all, refusal_of_manifest, 16);
}

TEST_CASE("names that are there twice are refused") {
  expect_refused(edits({{"shard-00000.safetensors is there twice",
                         [](OrderedJson& json) { json["files"][1]["name"] = "shard-00000.safetensors"; }},
                        {"a.weight is there twice",
                         [](OrderedJson& json) { json["tensors"].push_back(json["tensors"][0]); }}}),
                 refusal_of_manifest, 16);
}

TEST_CASE("sizes in a manifest that can't be are refused before anything is allocated") {
  static constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  expect_refused(
      edits({{"is no whole number", [](OrderedJson& json) { json["step"] = -1; }},
             {"is no whole number", [](OrderedJson& json) { json["step"] = 1.5; }},
             {"is no whole number", [](OrderedJson& json) { json["step"] = ~std::uint64_t{0}; }},
             {"is no whole number",
              [](OrderedJson& json) {
                json["step"] = OrderedJson::array({1, 2});
              }},
             {"it has version 2", [](OrderedJson& json) { json["version"] = 2; }},
             {"is no hash", [](OrderedJson& json) { json["id"] = "x"; }},
             {"is no hash", [](OrderedJson& json) { json["id"] = "0123456789abcde\n"; }},
             {"is no hash", [](OrderedJson& json) { json["data"] = std::string(100'000, '\n'); }},
             {"is no axis", [](OrderedJson& json) { json["mesh"][0]["size"] = std::int64_t{1} << 32; }},
             {"is no whole number", [](OrderedJson& json) { json["files"][0]["bytes"] = kHuge; }},
             {"has 1000 bytes, its header 1001",
              [](OrderedJson& json) { json["files"][0]["header_bytes"] = 1001; }},
             {"its header 1099511627776",
              [](OrderedJson& json) {  // a file of holes may be as long
                json["files"][0]["bytes"] = std::int64_t{1} << 41;
                json["files"][0]["header_bytes"] = std::int64_t{1} << 40;
              }},
             {"is no whole number from 8", [](OrderedJson& json) { json["files"][0]["header_bytes"] = 7; }},
             {"has no hash", [](OrderedJson& json) { json["tensors"][0]["hash"] = "12"; }},
             {"a dtype that no state has", [](OrderedJson& json) { json["tensors"][0]["dtype"] = "F8"; }},
             {"a dtype that no state has", [](OrderedJson& json) { json["tensors"][0]["dtype"] = "I32"; }},
             {"is no shape", [](OrderedJson& json) { json["tensors"][0]["shape"] = OrderedJson::array(); }},
             {"is no shape",
              [](OrderedJson& json) {
                json["tensors"][0]["shape"] = {1, 1, 1, 4, 6};
              }},
             {"is no shape", [](OrderedJson& json) { json["tensors"][0]["shape"] = 24; }},
             {"is no whole number",
              [](OrderedJson& json) {
                json["tensors"][0]["shape"] = {-4, -6};
              }},
             {"larger than any memory",
              [](OrderedJson& json) {
                json["tensors"][0]["shape"] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
              }},
             {"larger than any memory",
              [](OrderedJson& json) {
                json["tensors"][0]["shape"] = {std::int64_t{1} << 32, std::int64_t{1} << 32};
              }}}),
      refusal_of_manifest, 16);
}

TEST_CASE("boxes that overlap, leave holes, or are not where they say are refused") {
  const auto box = [](OrderedJson& json, int tensor, int index) -> OrderedJson& {
    return json["tensors"][tensor]["boxes"][index];
  };
  expect_refused(
      edits({{"do not cover it once",
              [&](OrderedJson& json) {
                box(json, 0, 1)["offset"] = {0, 2};
              }},
             {"do not cover it once",
              [&](OrderedJson& json) {
                box(json, 0, 1)["size"] = {4, 2};
              }},
             {"do not cover it once",
              [&](OrderedJson& json) { json["tensors"][0]["boxes"].push_back(box(json, 0, 1)); }},
             {"do not cover it once", [&](OrderedJson& json) { json["tensors"][0]["boxes"].erase(0); }},
             {"do not cover it once",
              [&](OrderedJson& json) { json["tensors"][1]["boxes"] = OrderedJson::array(); }},
             {"do not cover it once",  // a hole and an overlap, with the right sum
              [&](OrderedJson& json) {
                box(json, 0, 1)["offset"] = {1, 2};
                box(json, 0, 1)["size"] = {3, 4};
              }},
             {"not within its shape",
              [&](OrderedJson& json) {
                box(json, 0, 1)["offset"] = {0, 4};
              }},
             {"not within its shape", [&](OrderedJson& json) { box(json, 0, 1)["offset"] = {0}; }},
             {"not within its shape",
              [&](OrderedJson& json) {
                box(json, 0, 1)["size"] = {4, std::int64_t{1} << 53};
              }},
             {"is no whole number",
              [&](OrderedJson& json) {
                box(json, 0, 1)["offset"] = {0, -3};
              }},
             {"names file 2", [&](OrderedJson& json) { box(json, 0, 1)["file"] = 2; }},
             {"names file 4294967297",
              [&](OrderedJson& json) { box(json, 0, 1)["file"] = (std::int64_t{1} << 32) + 1; }},
             {"is not within shard-00001", [&](OrderedJson& json) { box(json, 0, 1)["begin"] = 207; }},
             {"is not within shard-00001", [&](OrderedJson& json) { box(json, 0, 1)["begin"] = 953; }},
             {"is not within shard-00001",
              [&](OrderedJson& json) { box(json, 0, 1)["begin"] = std::int64_t{1} << 53; }},
             {"no list of boxes", [&](OrderedJson& json) { json["tensors"][0]["boxes"] = 3; }}}),
      refusal_of_manifest, 16);
}

// As many boxes as the text may have: every pair beside each other, or each over the other.
TEST_CASE("boxes without number are refused within a second too") {
  constexpr std::int64_t kBoxes = 100'000;
  constexpr std::int64_t kLarge = std::int64_t{1} << 50;
  std::vector<Crafted> all;
  for (const bool overlapping : {false, true})
    all.push_back(
        {overlapping ? "over each other" : "beside each other", edited_manifest([&](OrderedJson& json) {
           OrderedJson boxes = OrderedJson::array();
           for (std::int64_t i = 0; i < kBoxes; ++i)
             boxes.push_back({{"file", 0},
                              {"begin", 200},
                              {"offset", {0, overlapping ? 0 : i}},
                              {"size", {1, overlapping ? kBoxes : 1}}});
           json["files"][0]["bytes"] = kLarge;
           json["tensors"][0]["shape"] = {1, kBoxes};
           json["tensors"][0]["boxes"] = std::move(boxes);
         }),
         overlapping ? "do not cover it once" : "too many boxes lie beside each other, at a.weight"});
  expect_refused(all, refusal_of_manifest, 256);
}

TEST_CASE("as many boxes as ranks cut a tensor into are accepted") {
  constexpr std::int64_t kTp = 8;
  constexpr std::int64_t kDp = 2048;
  Manifest manifest = small_manifest();
  StoredTensor& tensor = manifest.tensors[0];
  tensor.shape = {kDp, kTp};
  tensor.boxes.clear();
  manifest.files[0].bytes = 1'000'000;
  for (std::int64_t row = 0; row < kDp; ++row)
    for (std::int64_t column = 0; column < kTp; ++column)
      tensor.boxes.push_back({0, 200, {{row, column}, {1, 1}}});
  CHECK(refusal_of_manifest(to_text(manifest)).empty());
}

TEST_CASE("a shard that is a link, and one whose manifest is, are not followed") {
  const TempFolder temp;
  const std::string folder = temp / "step-00000004";
  FileSystem& files = posix_file_system();
  files.make_folder(folder);
  write_file(temp / "outside", std::string(1000, 'x'));
  write_file(folder + "/manifest.json", to_text(small_manifest()));
  std::filesystem::create_symlink(temp / "outside", folder + "/shard-00000.safetensors");
  const Verification found = verify_checkpoint(files, folder, [] {});
  REQUIRE(found.faults.size() == 3);  // of the two shards, and of a config without a model
  CHECK_THAT(found.faults[0], Contains("shard-00000.safetensors: can't read it: it is a symbolic link"));
  std::filesystem::rename(folder + "/manifest.json", temp / "moved");
  std::filesystem::create_symlink(temp / "moved", folder + "/manifest.json");
  CHECK_THAT(verify_checkpoint(files, folder, [] {}).faults.at(0),
             Contains("manifest.json: can't read it: it is a symbolic link"));
}

}  // namespace
}  // namespace hpt::testing
