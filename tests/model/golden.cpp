#include "tests/model/golden.hpp"

namespace pascaline::testing {
namespace {

const std::vector<std::int32_t> kTextTokens{1, 2, 3, 5, 8, 13, 21, 34};
const std::vector<std::int32_t> kImageTokens{10, 502, 500, 500, 500, 500, 500, 500, 503, 20, 30};

ModelConfig common_config() {
  ModelConfig config;
  config.text.vocab = 512;
  config.text.max_positions = 4096;
  config.text.rope_theta = 5e6;
  config.text.tied = true;
  VisionConfig& vision = config.vision.emplace();
  vision.in_channels = 3;
  vision.temporal_patch = 2;
  vision.merge = 2;
  vision.image_token = 500;
  vision.video_token = 501;
  vision.start_token = 502;
  vision.end_token = 503;
  config.eos_tokens = {504};
  return config;
}

}  // namespace

GoldenModel golden_model_a() {
  GoldenModel model;
  model.name = "A";
  model.config = common_config();
  TextConfig& text = model.config.text;
  text.hidden = 64;
  text.layers = 2;
  text.heads = 4;
  text.kv_heads = 2;
  text.head_dim = 16;
  text.intermediate = 128;
  text.mrope_section = {4, 2, 2};
  VisionConfig& vision = model.config.vision.value();
  vision.hidden = 32;
  vision.depth = 2;
  vision.heads = 2;
  vision.intermediate = 64;
  vision.patch = 4;
  vision.out_hidden = 64;
  vision.positions = 16;
  vision.deepstack_indexes = {0};
  model.text = {.tokens = kTextTokens,
                .with_image = false,
                .last = {-0.954799F, 0.056054F, 1.012809F, -0.367901F, 0.012557F, -0.489419F},
                .first = {0.327452F, -0.032838F, -0.375838F},
                .best = 217,
                .norm = 12.886344,
                .decoded = {{{-0.360169F, -0.431863F, 0.303367F, -0.306398F},
                             {0.288233F, -0.265894F, 0.045508F, -0.685157F},
                             {-0.072546F, 0.301866F, 0.139731F, -1.007615F}}}};
  model.image = {.tokens = kImageTokens,
                 .with_image = true,
                 .last = {0.758352F, -0.633485F, 0.122643F, -0.537826F, -1.266148F, -0.028905F},
                 .first = {},
                 .best = 53,
                 .norm = 12.90039,
                 .decoded = {{{-0.484207F, -0.272680F, 0.935700F, -0.137812F},
                              {0.093976F, -0.487343F, 0.387195F, -0.598492F},
                              {-0.429262F, -1.363353F, 0.103522F, -0.480582F}}}};
  model.without_deepstack = {0.332200F, -0.618224F, 0.352953F};
  model.with_plain_positions = {0.108139F, -0.715117F, -0.182583F};
  model.first_feature = {0.479347F, -0.618859F, 0.004837F, -0.120369F};
  model.last_feature = {0.236536F, -0.051285F, 0.238846F, -0.826717F};
  model.first_deepstack = {{-0.269406F, 0.228405F, 0.702995F, 0.082449F}};
  return model;
}

GoldenModel golden_model_b() {
  GoldenModel model;
  model.name = "B";
  model.config = common_config();
  TextConfig& text = model.config.text;
  text.hidden = 256;
  text.layers = 3;
  text.heads = 4;
  text.kv_heads = 2;
  text.head_dim = 128;
  text.intermediate = 512;
  text.mrope_section = {24, 20, 20};
  VisionConfig& vision = model.config.vision.value();
  vision.hidden = 128;
  vision.depth = 3;
  vision.heads = 2;
  vision.intermediate = 256;
  vision.patch = 16;
  vision.out_hidden = 256;
  vision.positions = 64;
  vision.deepstack_indexes = {0, 2};
  model.text = {.tokens = kTextTokens,
                .with_image = false,
                .last = {-0.470572F, 1.011642F, -1.607604F, -0.468093F, 0.560371F, 1.428504F},
                .first = {-1.175852F, 0.451282F, -0.428267F},
                .best = 428,
                .norm = 26.781454,
                .decoded = {{{-0.296908F, -0.984074F, -0.376663F, -0.859408F},
                             {-0.512040F, 0.893622F, -0.662296F, -0.335868F},
                             {-0.033494F, 1.154682F, -2.300957F, 0.205566F}}}};
  model.image = {.tokens = kImageTokens,
                 .with_image = true,
                 .last = {-0.508703F, -0.542699F, -1.538428F, 0.321427F, -0.910634F, -0.335414F},
                 .first = {},
                 .best = 464,
                 .norm = 26.386192,
                 .decoded = {{{0.649667F, -0.685323F, -1.548196F, -0.323829F},
                              {-0.033488F, -0.123543F, -0.678898F, 1.239850F},
                              {1.160373F, -2.050011F, -0.166721F, -0.525931F}}}};
  model.without_deepstack = {-0.516315F, 0.343815F, -1.554798F};
  model.with_plain_positions = {-0.453783F, -0.872664F, -1.558400F};
  model.first_feature = {-2.115443F, 0.581229F, 0.875637F, -0.013041F};
  model.last_feature = {1.160156F, 2.931343F, -1.473846F, -0.173351F};
  model.first_deepstack = {{-1.312743F, 0.243701F, 1.673769F, -2.821566F},
                           {-0.084908F, 1.834901F, 1.317814F, 2.405071F}};
  return model;
}

GoldenModel golden_model_c() {
  GoldenModel model = golden_model_a();
  model.name = "C";
  model.config.vision.value().hidden = 144;
  model.image.last = {-0.164878F, 0.772025F, -0.009891F, -0.158789F, 0.030397F, -0.665492F};
  model.image.best = 136;
  model.image.norm = 13.527853;
  model.image.decoded = {{{-0.197873F, 0.270717F, 0.550213F, 0.151641F},
                          {-0.856167F, -0.023130F, -0.335990F, -0.111974F},
                          {-0.562592F, 0.132882F, 0.946266F, -0.290495F}}};
  model.without_deepstack = {-0.331119F, 0.081134F, 0.369794F};
  model.with_plain_positions = {0.296099F, 0.885256F, -0.207887F};
  model.first_feature = {6.195195F, 1.636545F, -0.457285F, -3.966250F};
  model.last_feature = {-1.396676F, -1.667209F, 0.774589F, -0.449927F};
  model.first_deepstack = {{0.357064F, -1.921101F, -0.951657F, -1.341478F}};
  return model;
}

}  // namespace pascaline::testing
