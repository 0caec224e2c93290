#include "runtime/bundle/bundle.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/db/fixtures.hpp"
#include "tests/runtime/bundle/bundle_fixture.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

class BundleTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  FakeDevice device_;
  std::string bytes_;

  BundleTest() {
    write_scale_kernel(folder_.path());
    bytes_ = encode_bundle(scale_bundle(folder_.path(), device_.info()));
  }

  static std::string refusal(const std::string& bytes) {
    return message_of([&] { (void)parse_bundle(bytes, "x.pasc"); });
  }
  static void expect_refused(const std::string& bytes, const std::string& part, const std::string& what) {
    const std::string message = refusal(bytes);
    EXPECT_TRUE(message.starts_with("cannot use bundle x.pasc: ")) << what << ": " << message;
    EXPECT_TRUE(contains(message, part)) << what << ": " << message;
    EXPECT_TRUE(contains(message, "; ")) << what << " says nothing of what to do: " << message;
  }
};

TEST_F(BundleTest, IsReadAsItWasWritten) {
  const Bundle before = scale_bundle(folder_.path(), device_.info());
  const Bundle after = parse_bundle(bytes_, "x.pasc");
  EXPECT_EQ(after.program_version, before.program_version);
  EXPECT_EQ(after.architecture, "host");
  EXPECT_EQ(after.kind, BinaryKind::host_object);
  EXPECT_EQ(after.toolkits, before.toolkits);
  EXPECT_EQ(after.device, before.device);
  for (const auto& [name, member] : limit_members()) {
    EXPECT_EQ(after.limits.*member, before.limits.*member) << name;
  }
  ASSERT_EQ(after.kernels.size(), 1U);
  const BundleKernel& kernel = after.kernels[0];
  EXPECT_EQ(kernel.source_hash, before.kernels[0].source_hash);
  EXPECT_EQ(kernel.winners[0].problem, scale_problem(8, 20));
  EXPECT_EQ(kernel.winners[0].config, scale_config(32, 2));
  EXPECT_EQ(kernel.winners[0].time.median_us, 10);
  EXPECT_EQ(kernel.winners[0].time.count, 30);
  ASSERT_EQ(kernel.codes.size(), 2U);
  EXPECT_EQ(kernel.codes[1].code, before.kernels[0].codes[1].code);
  EXPECT_EQ(kernel.codes[1].defines, before.kernels[0].codes[1].defines);
  EXPECT_EQ(encode_bundle(after), bytes_);
}

TEST_F(BundleTest, CodeOfSeveralCompilersIsKeptApart) {
  Bundle before = scale_bundle(folder_.path(), device_.info());
  ToolkitRow other = before.toolkits[0];
  other.version = "9.9";
  before.toolkits.push_back(other);
  before.kernels[0].codes.push_back(before.kernels[0].codes[0]);
  before.kernels[0].codes.back().toolkit = 1;
  before.kernels[0].codes.back().code += "x";
  const std::string bytes = encode_bundle(before);
  const Bundle after = parse_bundle(bytes, "x.pasc");
  EXPECT_EQ(after.toolkits, before.toolkits);
  EXPECT_EQ(after.kernels[0].codes.at(2).toolkit, 1U);
  EXPECT_EQ(encode_bundle(after), bytes);

  const auto refused = [&](const std::function<void(json&)>& change, const std::string& part) {
    expect_refused(with_manifest(bytes, change), part, part);
  };
  refused([](json& m) { m["kernels"][0]["codes"][2]["toolkit"] = 2; }, "is not from 0 to 1");
  refused([](json& m) { m["kernels"][0]["codes"][2]["toolkit"] = 0; }, "is a duplicate of earlier code");
  refused([](json& m) { m["kernels"][0]["codes"][2].erase("toolkit"); }, "'toolkit' is missing");
  refused([](json& m) { m["toolkits"] = json::array(); }, "names none");
  refused([](json& m) { m["toolkits"].push_back(m["toolkits"][0]); }, "is a duplicate of an earlier toolkit");
  refused([](json& m) { m["toolkits"][1]["target"] = "sm_61"; }, "is sm_61, not host");
}

TEST_F(BundleTest, WinnersAreThoseOfADatabase) {
  const std::vector<Winner> winners = winners_of(parse_bundle(bytes_, "x.pasc"));
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_EQ(winners[0].trial.config, scale_config(32, 2));
  EXPECT_EQ(winners[0].trial.time->median_us, 10);
  EXPECT_EQ(winners[0].toolkit, old_toolkit());
  EXPECT_EQ(winners[0].device.name, "a processor");
  EXPECT_EQ(winners[0].kernel.name, "scale");
}

TEST_F(BundleTest, NoByteMayChange) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    std::string changed = bytes_;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    ASSERT_TRUE(refusal(changed).starts_with("cannot use bundle x.pasc: ")) << "byte " << i;
  }
}

TEST_F(BundleTest, NoByteMayLackOrBeAdded) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    ASSERT_TRUE(refusal(bytes_.substr(0, size)).starts_with("cannot use bundle x.pasc: ")) << size << " bytes";
  }
  expect_refused(bytes_ + '\0', "bytes where its header says", "one more");
  expect_refused("", "it is not a bundle", "an empty file");
}

TEST_F(BundleTest, HeaderFields) {
  const auto with_byte = [&](std::size_t offset, char byte) {
    std::string changed = bytes_;
    changed[offset] = byte;
    return changed;
  };
  expect_refused(with_byte(0, 'x'), "it is not a bundle", "magic");
  expect_refused(with_byte(8, 2), "its format is 2, this program reads 1", "version");
  expect_refused(with_byte(23, '\x7F'), "bytes of manifest", "manifest beyond the file");
  expect_refused(with_byte(18, 8), "bytes of manifest", "a large manifest");
  expect_refused(with_byte(24, static_cast<char>(bytes_[24] + 1)), "where its header says", "file size");
  expect_refused(with_byte(40, 'x'), "is not the one in its header", "hash");
}

TEST_F(BundleTest, SwappedCodeIsFound) {
  Bundle bundle = scale_bundle(folder_.path(), device_.info());
  bundle.kernels[0].codes[0].code = "first ..";
  bundle.kernels[0].codes[1].code = "second .";
  std::string bytes = encode_bundle(bundle);
  bytes.replace(bytes.find("first .."), 8, "second .");
  bytes.replace(bytes.rfind("second ."), 8, "first ..");
  expect_refused(bytes, "/codes/0/hash: does not match the code", "swapped");
}

TEST_F(BundleTest, ManifestsThatMakeNoSense) {
  struct Case {
    const char* name;
    void (*change)(json&);
    const char* part;
  };
  const std::vector<Case> cases{
      {"unknown field", [](json& m) { m["more"] = 1; }, "unknown key 'more'"},
      {"missing field", [](json& m) { m.erase("toolkits"); }, "'toolkits' is missing"},
      {"kind of another architecture", [](json& m) { m["architecture"] = "sm_61"; }, "/kind: there is no code of kind"},
      {"no kind", [](json& m) { m["kind"] = "elf"; }, "'elf' is not a kind of code"},
      {"other target", [](json& m) { m["toolkits"][0]["target"] = "sm_61"; }, "/toolkits/0/target: is sm_61, not host"},
      {"limit of zero", [](json& m) { m["limits"]["sm_count"] = 0; }, "/limits/sm_count: 0 is not from 1"},
      {"limit too many", [](json& m) { m["limits"]["more"] = 1; }, "/limits: has 16 entries"},
      {"limit missing", [](json& m) { m["limits"].erase("warp_size"); }, "'warp_size' is missing"},
      {"other multiprocessors", [](json& m) { m["device"]["sm_count"] = 5; }, "differs from the number in the limits"},
      {"device of another kind", [](json& m) { m["device"]["kind"] = "cuda"; }, "do not run this code"},
      {"winners of no device", [](json& m) { m["device"] = nullptr; },
       "/winners: are there, but the bundle names no device"},
      {"two lines in an unknown field", [](json& m) { m["a\nb"] = 1; }, "unknown key 'a?b'"},
      {"kernel twice", [](json& m) { m["kernels"].push_back(m["kernels"][0]); }, "'scale' is a duplicate"},
      {"too many kernels",
       [](json& m) {
         m["kernels"] = json::array();
         for (int i = 0; i < 300; ++i) m["kernels"].push_back(1);
       },
       "has 300 entries; a bundle has at most 256"},
      {"no code", [](json& m) { m["kernels"][0]["codes"] = json::array(); }, "hold no code"},
      {"code left over", [](json& m) { m["kernels"][0]["codes"].erase(1); }, "bytes of code"},
      {"code twice", [](json& m) { m["kernels"][0]["codes"][1]["defines"] = m["kernels"][0]["codes"][0]["defines"]; },
       "is a duplicate of earlier code"},
      {"overlap", [](json& m) { m["kernels"][0]["codes"][1]["offset"] = 0; }, "/codes/1/offset: is 0"},
      {"gap", [](json& m) { m["kernels"][0]["codes"][1]["offset"] = 128; }, "/codes/1/offset: is 128"},
      {"negative size", [](json& m) { m["kernels"][0]["codes"][1]["bytes"] = -1; }, "/codes/1/bytes: -1 is not"},
      {"beyond the end", [](json& m) { m["kernels"][0]["codes"][1]["bytes"] = INT64_MAX; }, "beyond the file's end"},
      {"negative resource", [](json& m) { m["kernels"][0]["codes"][0]["resources"]["ffma"] = -1; }, "ffma: -1"},
      {"problem twice",
       [](json& m) {
         auto& w = m["kernels"][0]["winners"];
         w.push_back(w[0]);
       },
       "has a winner already"},
      {"no element type", [](json& m) { m["kernels"][0]["winners"][0]["types"][0][1] = "float12"; }, "no element type"},
      {"dimension of text", [](json& m) { m["kernels"][0]["winners"][0]["dimensions"][0][1] = "8"; }, "an integer"},
      {"configuration of lists", [](json& m) { m["kernels"][0]["winners"][0]["config"]["BLOCK"] = json::array(); },
       "not a number, a boolean or text"},
      {"no time", [](json& m) { m["kernels"][0]["winners"][0]["median_us"] = nullptr; }, "expected a number"},
      {"interval beside the median", [](json& m) { m["kernels"][0]["winners"][0]["low_us"] = 10.5; }, "/low_us: 10.5"},
      {"confidence", [](json& m) { m["kernels"][0]["winners"][0]["confidence"] = 1.5; }, "/confidence: 1.5"}};
  for (const Case& one : cases) {
    expect_refused(with_manifest(bytes_, one.change), one.part, one.name);
  }
  expect_refused(with_manifest_text(bytes_, "{"), "not valid JSON", "half a manifest");
  expect_refused(with_manifest_text(bytes_, std::string(100, '[')), "nested deeper", "deep manifest");
  expect_refused(with_manifest_text(bytes_, "[]"), "expected an object", "a list");
}

TEST_F(BundleTest, ACubinMustSayWhatItNeeds) {
  Bundle bundle = scale_bundle(folder_.path(), device_.info());
  bundle.architecture = bundle.toolkits[0].target = bundle.kernels[0].winners[0].toolkit.target = "sm_61";
  bundle.kind = BinaryKind::cubin;
  bundle.device->kind = "cuda";
  expect_refused(encode_bundle(bundle), "/kernels/0/codes/0: ", "bytes that are no cubin");
  bundle.kind = BinaryKind::ptx;
  bundle.toolkits[0].target = bundle.kernels[0].winners[0].toolkit.target = "compute_61";
  EXPECT_EQ(target_of(parse_bundle(encode_bundle(bundle), "x.pasc")), "compute_61");
}

TEST_F(BundleTest, Files) {
  const auto file = folder_ / "x.pasc";
  const auto refused = [&] { return message_of([&] { (void)load_bundle(file); }); };
  EXPECT_TRUE(contains(refused(), "cannot use bundle " + file.string() + ": No such file")) << refused();
  write_bytes(file, bytes_);
  EXPECT_EQ(load_bundle(file).kernels.size(), 1U);
  write_bytes(file, bytes_.substr(0, 100));
  EXPECT_TRUE(contains(refused(), "it has 100 bytes where its header says")) << refused();
  write_bytes(file, "SQLite format 3");
  EXPECT_TRUE(contains(refused(), "it is not a bundle")) << refused();
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_TRUE(contains(refused(), "cannot use bundle " + file.string())) << refused();
}

}  // namespace
}  // namespace pascaline::testing
