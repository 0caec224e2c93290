#include "tests/db/exchange/samples.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>

#include "core/error.hpp"

namespace pascaline::testing {

using nlohmann::json;

std::string kernel_tuner_sample() {
  return R"({
"device_name": "A card",
"kernel_name": "stencil",
"problem_size": [64, 32],
"tune_params_keys": ["x", "opt", "scale", "layout"],
"tune_params": {"x": [4, 2, 1], "opt": [true, false], "scale": [0.5, 1], "layout": ["row", "col"]},
"objective": "time",
"cache": {
"1,True,0.5,row": {"x": 1, "opt": true, "scale": 0.5, "layout": "row", "time": 2.5, "times": [2.0, 3.0], "compile_time": 100.5, "verification_time": 1.5, "benchmark_time": 20.25, "GFLOP/s": 12.5, "strategy_time": 4, "framework_time": 0.5, "timestamp": "2023-12-22 09:53:48.691683+00:00"},
"2,True,0.5,row": {"x": 2, "opt": true, "scale": 0.5, "layout": "row", "time": "CompilationFailedConfig", "compile_time": 50, "verification_time": 0, "benchmark_time": 0, "strategy_time": 0, "framework_time": 0.25, "timestamp": "2023-12-22 10:53:49+01:00"},
"2,False,1,col": {"x": 2, "opt": false, "scale": 1, "layout": "col", "time": 1.25, "times": [1.25], "GFLOP/s": NaN},
"4,False,1,col": {"x": 4, "opt": false, "scale": 1, "layout": "col", "time": 0.75}}
}
)";
}

json t4_sample() {
  json document{{"schema_version", "1.0.0"}, {"metadata", {{"timeunit", "milliseconds"}}}, {"results", json::array()}};
  int x = 16;
  for (const char* word : {"correct", "compile", "runtime", "correctness", "constraints", "timeout"}) {
    json result{{"timestamp", "2023-12-22T09:53:48Z"},
                {"configuration", {{"x", x}, {"y", 0.5}}},
                {"times",
                 {{"compilation", 10.5},
                  {"benchmark", 3.5},
                  {"framework", 0.25},
                  {"search_algorithm", 0.125},
                  {"validation", 1}}},
                {"invalidity", word},
                {"correctness", x == 16 ? 1 : 0},
                {"objectives", {"time"}}};
    if (x == 16) {
      result["times"]["runtimes"] = {2.0, 3.0};
      result["measurements"] = {{{"name", "GFLOP/s"}, {"value", 3}, {"unit", ""}},
                                {{"name", "time"}, {"value", 2.25}, {"unit", ""}}};
    }
    document["results"].push_back(result);
    --x;
  }
  return document;
}

std::string csv_sample() {
  return "x,mode,scale,time_ms,status,eval_cost_ms\n"
         "4,a,0.5,2.5,ok,100.5\n"
         "2,b,0.25,,compile,50\n"
         "2,a,0.25,1.25,ok,\n"
         "16,a,1,,runtime,7\n";
}

std::string with(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : std::string(text).replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_recorded_space(text, "sample");
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.file(), "sample");
    return error.what();
  }
  ADD_FAILURE() << "was read: " << text.substr(0, 2000);
  return {};
}

std::string packed(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::optional<std::filesystem::path> shared_fixture(const std::string& name) {
  const char* folder = std::getenv("PASCALINE_SHARED_FIXTURES");
  if (folder == nullptr || *folder == '\0') {
    return std::nullopt;
  }
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

void expect_same_space(const RecordedSpace& a, const RecordedSpace& b) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  ASSERT_EQ(a.trials.size(), b.trials.size());
  for (std::size_t i = 0; i < a.trials.size(); ++i) {
    const RecordedTrial& left = a.trials[i];
    const RecordedTrial& right = b.trials[i];
    ASSERT_EQ(a.config(left).text(), b.config(right).text());
    ASSERT_EQ(left.status, right.status);
    ASSERT_EQ(left.reason, right.reason);
    ASSERT_DOUBLE_EQ(left.time_us, right.time_us);
    ASSERT_EQ(left.samples_us.size(), right.samples_us.size());
    for (std::size_t j = 0; j < left.samples_us.size(); ++j) {
      ASSERT_DOUBLE_EQ(left.samples_us[j], right.samples_us[j]);
    }
    ASSERT_DOUBLE_EQ(left.compile_ms, right.compile_ms);
    ASSERT_DOUBLE_EQ(left.verify_ms, right.verify_ms);
    ASSERT_DOUBLE_EQ(left.measure_ms, right.measure_ms);
    ASSERT_DOUBLE_EQ(left.framework_ms, right.framework_ms);
    ASSERT_DOUBLE_EQ(left.search_ms, right.search_ms);
    ASSERT_EQ(left.started_unix_ms, right.started_unix_ms);
  }
}

}  // namespace pascaline::testing
