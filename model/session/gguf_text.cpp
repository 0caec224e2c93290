#include "model/session/gguf_text.hpp"

#include "model/checkpoint/gguf/gguf_config.hpp"
#include "model/text/known_templates.hpp"

namespace pascaline {

bool has_gguf_tokenizer(const GgufMetadata& metadata) {
  const auto model = metadata.find_text("tokenizer.ggml.model");
  return model && *model != "none" && *model != "no_vocab";
}

GgufTokenizerData gguf_tokenizer_data(const GgufMetadata& metadata) {
  GgufTokenizerData data;
  data.model = metadata.find_text("tokenizer.ggml.model");
  data.pre = metadata.find_text("tokenizer.ggml.pre");
  if (metadata.has("tokenizer.ggml.tokens")) {
    data.tokens = metadata.texts("tokenizer.ggml.tokens");
  }
  if (metadata.has("tokenizer.ggml.token_type")) {
    data.types = metadata.integers("tokenizer.ggml.token_type");
  }
  if (metadata.has("tokenizer.ggml.merges")) {
    data.merges = metadata.texts("tokenizer.ggml.merges");
  }
  data.bos = metadata.find_integer("tokenizer.ggml.bos_token_id");
  data.eos = metadata.find_integer("tokenizer.ggml.eos_token_id");
  data.eot = metadata.find_integer("tokenizer.ggml.eot_token_id");
  data.eom = metadata.find_integer("tokenizer.ggml.eom_token_id");
  data.pad = metadata.find_integer("tokenizer.ggml.padding_token_id");
  data.add_bos = metadata.find_boolean("tokenizer.ggml.add_bos_token");
  data.add_eos = metadata.find_boolean("tokenizer.ggml.add_eos_token");
  data.add_space_prefix = metadata.find_boolean("tokenizer.ggml.add_space_prefix");
  return data;
}

GgufTokenizer load_gguf_tokenizer(const GgufMetadata& metadata, std::size_t embedding_rows) {
  check_general_keys(metadata);  // which may be read for its tokenizer alone
  return build_gguf_tokenizer(gguf_tokenizer_data(metadata), metadata.file(), embedding_rows);
}

ChatTemplate load_gguf_chat_template(const GgufMetadata& metadata, std::string_view named) {
  return gguf_chat_template(metadata.find_text("tokenizer.chat_template"), named, metadata.file());
}

}  // namespace pascaline
