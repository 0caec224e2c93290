#pragma once

#include "model/session/model_folder.hpp"
#include "model/text/tokenizer.hpp"

namespace pascaline::cli {

/// Throws ModelError, with the keys of config.json that differ in one line, unless the models of both folders are of
/// one architecture: the same family and sizes. How long a context may be, and whether the head is the embedding, may
/// differ.
void require_same_architecture(const ModelFolder& model, const ModelFolder& reference);

/// Checks what is left to check of a folder whose model another one is compared with, before either is run. Throws
/// ModelError if its weights are not those of its configuration, or if it has a tokenizer.json in which some token is
/// another text than in `tokenizer`, that of `model`. Warns on stderr if its weights are quantized.
void check_reference_model(const ModelFolder& model, const Tokenizer& tokenizer, const ModelFolder& reference);

/// Says on stderr if the model's weights are quantized: in float32 they are still rounded. Throws ModelError as
/// Checkpoint::open does.
void note_if_quantized(const ModelFolder& model);

}  // namespace pascaline::cli
