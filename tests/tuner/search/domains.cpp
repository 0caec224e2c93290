#include "tests/tuner/search/domains.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/space/enumeration.hpp"

namespace pascaline::testing {

nlohmann::json bare_space() {
  return nlohmann::json::parse(R"json({
    "schema": 1,
    "kernel": "bare",
    "dimensions": [{"name": "N", "varies": true, "example": 1000}],
    "types": [],
    "parameters": [],
    "constraints": [],
    "launch": {"function": "bare", "block": [32], "grid": ["N"]},
    "arguments": [{"name": "y", "buffer": "float32", "access": "out", "extent": "N"}],
    "reference": {"default": true},
    "tolerance": {"float32": 1e-6},
    "work": {"flops": "N", "bytes": "4 * N"}
  })json");
}

void add_parameter(nlohmann::json& space, const std::string& name, const nlohmann::json& values) {
  space["parameters"].push_back({{"name", name}, {"values", values}, {"default", values.at(0)}});
}

void add_constraint(nlohmann::json& space, const std::string& require) {
  space["constraints"].push_back({{"require", "N < 0 || (" + require + ")"}, {"because", "of the test: " + require}});
}

nlohmann::json chance_space(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  nlohmann::json space = bare_space();
  for (const char* name : {"A", "B", "C", "D"}) {
    nlohmann::json values = nlohmann::json::array();
    std::uint64_t value = 0;
    for (std::uint64_t i = 4 + random() % 3; i > 0; --i) {
      value += 1 + random() % 3;
      values.push_back(value);
    }
    add_parameter(space, name, values);
  }
  const std::vector<std::string> words{"A", "B", "C", "D", "2", "3"};
  const std::vector<std::string> operators{"+", "-", "*", "/", "%"};
  const std::vector<std::string> comparisons{"<=", ">", "!=", "%"};
  for (std::uint64_t i = 0; i < 1 + random() % 3; ++i) {
    const auto pick = [&](const auto& list) { return list[random() % list.size()]; };
    // One after the other: compilers differ in the order in which they evaluate operands.
    std::string text = "(" + pick(words);
    text += " " + pick(operators);
    text += " " + pick(words);
    text += ") " + pick(comparisons);
    text += " " + pick(words);
    add_constraint(space, text);
  }
  space["launch"]["block"] = {"A * 8", "D * 8"};
  return space;
}

BoundDomain::BoundDomain(const nlohmann::json& text, std::size_t most_tuples)
    : space(Space::parse(text.dump(), "bare.json")),
      bound(space, space.example_problem(), *limits_of_architecture("sm_61")),
      domain(bound, most_tuples) {}

SearchDomain full_domain(const std::vector<int>& sizes) {
  std::vector<Axis> axes;
  std::vector<Point> points{Point()};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Axis axis{"P" + std::to_string(i), {}};
    std::vector<Point> longer;
    for (int value = 0; value < sizes[i]; ++value) {
      axis.values.emplace_back(std::int64_t{value});
      for (const Point& point : points) {
        longer.push_back(point);
        longer.back().push_back(static_cast<std::uint16_t>(value));
      }
    }
    axes.push_back(std::move(axis));
    points = std::move(longer);
  }
  std::sort(points.begin(), points.end());
  return {std::move(axes), points};
}

std::vector<Point> enumerated(const BoundSpace& space) {
  std::vector<Point> out;
  Enumerator(space).for_each([&](std::span<const std::uint16_t> indices) {
    out.emplace_back(indices.begin(), indices.end());
    return true;
  });
  return out;
}

std::vector<Point> numbered(const SearchDomain& domain) {
  std::vector<Point> out;
  for (std::uint64_t number = 0; static_cast<double>(number) < domain.combinations(); ++number) {
    if (auto point = domain.at(number)) {
      out.push_back(std::move(*point));
    }
  }
  std::sort(out.begin(), out.end());
  const auto twice = std::adjacent_find(out.begin(), out.end());
  EXPECT_TRUE(twice == out.end()) << point_text(*twice) << " has two numbers";
  return out;
}

std::string point_text(const Point& point) {
  std::string text;
  for (const std::uint16_t index : point) {
    text += (text.empty() ? "" : " ") + std::to_string(index);
  }
  return text;
}

double chi_squared(const std::map<Point, int>& counts, std::size_t classes, double draws) {
  const double expected = draws / static_cast<double>(classes);
  double sum = expected * static_cast<double>(classes - counts.size());
  for (const auto& entry : counts) {
    const double off = entry.second - expected;
    sum += off * off / expected;
  }
  return sum;
}

double chi_squared_limit(double degrees) {
  constexpr double kNormalQuantile = 3.719;
  const double part = 2 / (9 * degrees);
  return degrees * std::pow(1 - part + kNormalQuantile * std::sqrt(part), 3);
}

std::vector<Point> run_search(Searcher& searcher, const SearchDomain& domain, const Outcome& outcome, std::size_t most,
                              std::size_t batch) {
  std::vector<Point> out;
  PointSet known;
  while (out.size() < most) {
    const std::size_t count = std::min(batch, most - out.size());
    const std::vector<Point> points = searcher.propose(count);
    EXPECT_LE(points.size(), count);
    if (points.empty()) {
      break;
    }
    for (const Point& point : points) {
      EXPECT_TRUE(domain.contains(point)) << point_text(point);
      EXPECT_TRUE(known.insert(point).second) << point_text(point) << " twice";
      out.push_back(point);
    }
    for (const Point& point : points) {
      searcher.observe(point, outcome(point));
    }
  }
  return out;
}

std::vector<Point> run_search(std::string_view name, const SearchDomain& domain, const Outcome& outcome,
                              std::uint64_t seed, std::size_t most, std::size_t batch) {
  SearchOptions options;
  options.seed = seed;
  return run_search(*make_searcher(name, domain, options), domain, outcome, most, batch);
}

double bowl_us(const Point& point, const Point& best) {
  double sum = 0;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double off = static_cast<double>(point[i]) - static_cast<double>(best[i]);
    sum += 0.03 * static_cast<double>(i + 1) * off * off;
  }
  return 1000 * std::exp(sum);
}

double trials_until(const std::vector<Point>& run, const Point& best) {
  return static_cast<double>(std::find(run.begin(), run.end(), best) - run.begin()) + 1;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace pascaline::testing
