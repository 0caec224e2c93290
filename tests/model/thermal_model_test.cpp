#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/model.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/golden_run.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"
#include "tests/runtime/thermal/scripted_clock.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

class ThermalModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  TemporaryFolder folder_;
  ScriptedClock clock_;
  DispatcherOptions options_;

  ThermalModelTest() { options_.cache = PASCALINE_TEST_CACHE; }

  [[nodiscard]] static std::unique_ptr<Model> model(Executor& executor) {
    const ModelConfig config = golden_model_a().config;
    WeightSource source = hash_weights(config);
    ModelOptions options{.context = 64, .chunk = 16, .fusion = Fusion::off};
    options.weights = options.cache = ElementType::float32;
    return std::make_unique<Model>(executor, config, source, options);
  }
  static Tokens begin(Model& model) {
    model.append({Tokens{1, 2, 3, 5}, {}});
    model.set_sampling({});
    return {model.sample()};
  }
  // Stores, of a decoding step's norms, what was prepared as the winner by time and another configuration as that by
  // sustained time.
  void store_winners(const Dispatcher& dispatcher, const Prepared& prepared) {
    const Space& space = dispatcher.space(prepared.key.kernel);
    const BoundSpace bound(space, prepared.plan.problem, dispatcher.target().limits);
    std::optional<Config> other;
    for (const Parameter& parameter : space.parameters) {
      for (const Value& value : parameter.values) {
        std::vector<Config::Setting> settings = prepared.plan.config.settings();
        std::find_if(settings.begin(), settings.end(), [&](const auto& one) {
          return one.first == parameter.name;
        })->second = value;
        const Config config(std::move(settings));
        other = !other && config != prepared.plan.config && !bound.why_invalid(config) ? std::optional(config) : other;
      }
    }
    ASSERT_TRUE(other);
    Store store(folder_ / "tuned.db", OpenMode::create);
    for (const Objective objective : {Objective::time, Objective::sustained}) {
      Winner winner = scale_winner(prepared.plan.problem, objective == Objective::time ? prepared.plan.config : *other);
      winner.objective = objective;
      winner.device = device_row(host_->info());
      winner.toolkit = dispatcher.toolkit();
      winner.kernel = {"rmsnorm", KernelSource::load(dispatcher.kernels_folder() / "rmsnorm.cu").hash};
      add_winner(store, winner);
    }
    options_.database = folder_ / "tuned.db";
  }
};

const Prepared* row_norm(const Dispatcher& dispatcher) {
  for (const Prepared* prepared : dispatcher.prepared()) {
    const auto& dimensions = prepared->plan.problem.dimensions;
    if (prepared->plan.problem.kernel == "rmsnorm" &&
        std::find(dimensions.begin(), dimensions.end(), std::pair(std::string("ROWS"), std::int64_t{1})) !=
            dimensions.end()) {
      return prepared;
    }
  }
  return nullptr;
}

TEST_F(ThermalModelTest, StepsAreLaunchedAsTheTemperatureWantsFromTheNextOneOn) {
  Tokens expected;
  {
    Dispatcher dispatcher(*host_, options_);
    Executor executor(dispatcher);
    const auto model = ThermalModelTest::model(executor);
    expected = begin(*model);
    for (int i = 0; i < 9; ++i) {
      expected.push_back(model->step());
    }
    ASSERT_NE(row_norm(dispatcher), nullptr);
    store_winners(dispatcher, *row_norm(dispatcher));
  }
  options_.thermal.policy.period_s = 1e-4;
  options_.thermal.sources.now_s = clock_.function();
  options_.thermal.sources.trace = SensorTrace::parse(R"([
    {"at_s": 0, "temperature_c": 50, "temperature_limit_c": 83}, {"at_s": 90, "temperature_c": 80},
    {"at_s": 190, "temperature_c": 50}, {"at_s": 290, "temperature_c": 80}])",
                                                      "day");
  Dispatcher dispatcher(*host_, options_);
  Executor executor(dispatcher);
  const auto model = ThermalModelTest::model(executor);
  Tokens tokens = begin(*model);
  tokens.push_back(model->step());  // prepares the kernels
  tokens.push_back(model->step());  // recorded
  ASSERT_TRUE(dispatcher.watches());
  const Prepared& norm = *row_norm(dispatcher);
  const Prepared& hot = norm.in(ThermalState::hot);
  ASSERT_NE(&hot, &norm);
  EXPECT_EQ(hot.launches, 0U);
  const std::uint64_t cool_launches = norm.launches;
  EXPECT_EQ(dispatcher.thermal().launches[1], 0U);
  const std::size_t prepared = dispatcher.prepared().size();

  clock_.move_to(100);
  tokens.push_back(model->step());  // recorded, as it is launched when hot
  tokens.push_back(model->step());
  const std::uint64_t of_step = model->launches_of_step();
  EXPECT_EQ(dispatcher.thermal().launches[1], 2 * of_step);
  const std::uint64_t recorded = hot.launches;
  EXPECT_GT(recorded, 0U) << "in the graph";
  EXPECT_EQ(norm.launches, cool_launches);

  clock_.move_to(230);
  tokens.push_back(model->step());  // the first graph again
  clock_.move_to(300);
  tokens.push_back(model->step());
  tokens.push_back(model->step());  // the second one again
  EXPECT_EQ(hot.launches, recorded) << "neither was recorded again";
  EXPECT_EQ(norm.launches, cool_launches);
  EXPECT_EQ(dispatcher.thermal().launches[1], 4 * of_step);
  EXPECT_EQ(dispatcher.prepared().size(), prepared) << "all was prepared before";
  EXPECT_TRUE(model->uses_graph());
  model->forget_graph();
  tokens.push_back(model->step());  // launched one by one
  EXPECT_EQ(hot.launches, 2 * recorded);
  tokens.push_back(model->step());
  EXPECT_EQ(tokens, expected);
}

}  // namespace
}  // namespace pascaline::testing
