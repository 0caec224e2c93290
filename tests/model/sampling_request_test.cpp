#include "model/session/sampling_request.hpp"

#include <gtest/gtest.h>

#include <string>

#include "model/checkpoint/model_error.hpp"

namespace pascaline::testing {
namespace {

GenerationConfig recommended() {
  GenerationConfig generation = neutral_generation();
  generation.temperature = 0.5;
  generation.top_k = 900;
  generation.top_p = 0.75;
  generation.min_p = 0.25;
  generation.repetition_penalty = 1.5;
  return generation;
}

// What is said of a request if that setting of the model's makers is wrong.
std::string complaint(SamplingUse use, const SamplingRequest& request, bool do_sample = true) {
  GenerationConfig generation = recommended();
  generation.do_sample = do_sample;
  generation.faults = {{use, "it is wrong"}};
  try {
    (void)requested_sampling(request, generation, 1000);
    return "accepted";
  } catch (const ModelError& error) {
    return error.what();
  }
}

TEST(SamplingRequestTest, WhatIsLeftOutIsAsRecommended) {
  const ops::SamplingSettings settings = requested_sampling({.seed = 7}, recommended(), 100);
  EXPECT_EQ(settings.temperature, 0.5F);
  EXPECT_EQ(settings.top_k, 100) << "all there are";
  EXPECT_EQ(settings.top_p, 0.75F);
  EXPECT_EQ(settings.min_p, 0.25F);
  EXPECT_EQ(settings.repetition, 1.5F);
  EXPECT_EQ(settings.seed, 7U);
  const ops::SamplingSettings own = requested_sampling(
      {.temperature = 2.0F, .top_k = 3, .top_p = 0.5F, .min_p = 0.0F, .repetition = 1.0F, .presence = 1.0F},
      recommended(), 100);
  EXPECT_EQ(own.temperature, 2.0F);
  EXPECT_EQ(own.top_k, 3);
  EXPECT_EQ(own.top_p, 0.5F);
  EXPECT_EQ(own.min_p, 0.0F);
  EXPECT_EQ(own.repetition, 1.0F);
  EXPECT_EQ(own.presence, 1.0F);
}

TEST(SamplingRequestTest, GreedyKeepsThePenalties) {
  const ops::SamplingSettings settings = requested_sampling({.greedy = true}, recommended(), 100);
  EXPECT_EQ(settings.temperature, 0.0F);
  EXPECT_EQ(settings.min_p, 0.0F);
  EXPECT_EQ(settings.repetition, 1.5F);
}

TEST(SamplingRequestTest, OnlyWhatARequestUsesCanBeWrong) {
  EXPECT_EQ(complaint(SamplingUse::temperature, {}), "it is wrong");
  EXPECT_EQ(complaint(SamplingUse::temperature, {.temperature = 1.0F}), "accepted");
  EXPECT_EQ(complaint(SamplingUse::temperature, {}, false), "accepted") << "the file says that nothing is drawn";
  EXPECT_EQ(complaint(SamplingUse::top_k, {}), "it is wrong");
  EXPECT_EQ(complaint(SamplingUse::top_k, {.top_k = 5}), "accepted");
  EXPECT_EQ(complaint(SamplingUse::top_p, {}), "it is wrong");
  EXPECT_EQ(complaint(SamplingUse::top_p, {.top_p = 0.5F}), "accepted");
  EXPECT_EQ(complaint(SamplingUse::min_p, {}), "it is wrong");
  EXPECT_EQ(complaint(SamplingUse::min_p, {.min_p = 0.5F}), "accepted");
  for (const SamplingUse use :
       {SamplingUse::temperature, SamplingUse::top_k, SamplingUse::top_p, SamplingUse::min_p, SamplingUse::draw}) {
    EXPECT_EQ(complaint(use, {.greedy = true}), "accepted");
    EXPECT_EQ(complaint(use, {.temperature = 0.0F}), "accepted");
  }
  EXPECT_EQ(complaint(SamplingUse::draw, {.temperature = 1.0F}), "it is wrong");
  EXPECT_EQ(complaint(SamplingUse::repetition_penalty, {.greedy = true}), "it is wrong");
  EXPECT_EQ(complaint(SamplingUse::repetition_penalty, {.repetition = 1.0F}), "accepted");
  EXPECT_EQ(complaint(SamplingUse::presence_penalty, {.presence = 1.0F}), "accepted");
  EXPECT_EQ(complaint(SamplingUse::answer, {.greedy = true}), "it is wrong");
}

}  // namespace
}  // namespace pascaline::testing
