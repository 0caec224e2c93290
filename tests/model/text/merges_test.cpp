#include "model/text/merges.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <utility>

namespace pascaline {
namespace {

// Bytes a, b and c are tokens 0, 1 and 2; merges are drawn at random among the tokens there are.
struct RandomMerges {
  explicit RandomMerges(std::uint64_t seed, std::size_t count) : table(count) {
    std::mt19937_64 random(seed);
    while (pairs.size() < count) {
      const auto known = static_cast<TokenId>(3 + pairs.size());
      const std::pair<TokenId, TokenId> pair{static_cast<TokenId>(random() % known),
                                             static_cast<TokenId>(random() % known)};
      const auto rank = static_cast<std::uint32_t>(pairs.size());
      if (table.add(pair.first, pair.second, known)) {
        EXPECT_TRUE(pairs.try_emplace(pair, rank).second);
      } else {
        EXPECT_TRUE(pairs.count(pair) == 1);
      }
    }
    for (TokenId byte = 0; byte < 3; ++byte) {
      bytes[static_cast<std::size_t>('a' + byte)] = byte;
    }
  }
  // As the definition says: the lowest rank anywhere, the leftmost, again and again.
  [[nodiscard]] std::vector<TokenId> by_definition(std::string_view text) const {
    std::vector<TokenId> ids;
    for (const char c : text) {
      ids.push_back(c - 'a');
    }
    while (true) {
      std::size_t best = ids.size();
      std::uint32_t best_rank = MergeTable::kNoRank;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = pairs.find({ids[i], ids[i + 1]});
        if (found != pairs.end() && found->second < best_rank) {
          best_rank = found->second;
          best = i;
        }
      }
      if (best == ids.size()) {
        return ids;
      }
      ids[best] = static_cast<TokenId>(3 + best_rank);
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }

  MergeTable table;
  ByteTokens bytes{};
  std::map<std::pair<TokenId, TokenId>, std::uint32_t> pairs;
};

TEST(MergesTest, TableFindsWhatWasAddedAndNothingElse) {
  const RandomMerges merges(1, 500);
  EXPECT_EQ(merges.table.size(), 500U);
  for (TokenId left = 0; left < 503; ++left) {
    for (TokenId right = 0; right < 503; ++right) {
      const auto expected = merges.pairs.find({left, right});
      const MergeTable::Merge found = merges.table.find(left, right);
      ASSERT_EQ(found.rank, expected == merges.pairs.end() ? MergeTable::kNoRank : expected->second);
      if (found.rank != MergeTable::kNoRank) {
        ASSERT_EQ(found.result, static_cast<TokenId>(3 + found.rank));
      }
    }
  }
}

TEST(MergesTest, PiecesOfEveryLengthAreMergedAsDefined) {
  std::mt19937_64 random(2);
  std::size_t merged = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomMerges merges(seed, 1 + 10 * seed);
    PieceEncoder encoder(merges.table, merges.bytes);
    for (std::size_t length = 0; length < 140; ++length) {
      std::string text;
      for (std::size_t i = 0; i < length; ++i) {
        text += static_cast<char>('a' + random() % 3);
      }
      std::vector<TokenId> ids{77};
      encoder.append(text, ids);
      ASSERT_EQ(ids.front(), 77) << "appends";
      ids.erase(ids.begin());
      ASSERT_EQ(ids, merges.by_definition(text)) << text;
      merged += length - ids.size();
    }
  }
  EXPECT_GT(merged, 10'000U);
}

TEST(MergesTest, LongPiecesTakeNoQuadraticTime) {
  // Doubling merges: the worst number of them.
  MergeTable table(20);
  for (TokenId id = 0; id < 20; ++id) {
    ASSERT_TRUE(table.add(id, id, id + 1));
  }
  const ByteTokens all_first{};
  PieceEncoder encoder(table, all_first);
  std::vector<TokenId> ids;
  const auto start = std::chrono::steady_clock::now();
  encoder.append(std::string((1U << 20U) + 5, 'a'), ids);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(ids, (std::vector<TokenId>{20, 2, 0}));
}

}  // namespace
}  // namespace pascaline
