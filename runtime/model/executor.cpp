#include "runtime/model/executor.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/cpu/ops.hpp"
#include "runtime/device/device_failure.hpp"
#include "runtime/model/host_copies.hpp"

namespace pascaline {
namespace {

// Operations over several tensors, as one struct each.
struct AddArguments {
  TensorView a;
  TensorView b;
  TensorView y;
};

struct GatherArguments {
  TensorView table;
  TensorView indices;
  TensorView y;
};

struct AdvanceArguments {
  TensorView length;
  TensorView slots;
  TensorView positions;
};

// What each operation reads and writes.
void visit(ops::MatmulArguments& of, HostCopies& copies) {
  copies.read(of.a, of.b.values, of.b.scales, of.b.zeros, of.bias, of.residual);
  copies.write(of.c);
}
void visit(ops::AttentionPrefillArguments& of, HostCopies& copies) {
  copies.read(of.q, of.k, of.v, of.segment_starts);
  copies.write(of.out);
}
void visit(ops::AttentionDecodeArguments& of, HostCopies& copies) {
  copies.read(of.q, of.k, of.v, of.length);
  copies.write(of.out);
}
void visit(ops::RmsnormArguments& of, HostCopies& copies) {
  copies.read(of.x, of.weight);
  copies.change(of.residual);
  copies.write(of.y);
}
void visit(ops::LayernormArguments& of, HostCopies& copies) {
  copies.read(of.x, of.weight, of.bias);
  copies.change(of.residual);
  copies.write(of.y);
}
void visit(ops::QkNormRopeArguments& of, HostCopies& copies) {
  copies.read(of.qkv, of.q_weight, of.k_weight, of.cosine, of.sine, of.positions, of.slots);
  copies.change(of.k_cache, of.v_cache);
  copies.write(of.q);
}
void visit(ops::RopeVisionArguments& of, HostCopies& copies) {
  copies.read(of.cosine, of.sine, of.positions);
  copies.change(of.qkv);
}
void visit(AddArguments& of, HostCopies& copies) {
  copies.read(of.a, of.b);
  copies.write(of.y);
}
void visit(GatherArguments& of, HostCopies& copies) {
  copies.read(of.table, of.indices);
  copies.write(of.y);
}
void visit(ops::PositionEmbeddingArguments& of, HostCopies& copies) {
  copies.read(of.x, of.table);
  copies.write(of.y);
}
void visit(ops::SampleArguments& of, HostCopies& copies) {
  copies.read(of.logits, of.settings, of.top_k);
  copies.change(of.generator, of.seen);
  copies.write(of.token, of.probability);
}
void visit(AdvanceArguments& of, HostCopies& copies) { copies.change(of.length, of.slots, of.positions); }

}  // namespace

const char* name_of(Operation operation) noexcept {
  static constexpr std::array<const char*, static_cast<std::size_t>(Operation::kCount)> kNames{
      "matmul", "attention_prefill",  "attention_decode", "rmsnorm", "layernorm", "qk_norm_rope", "rope_vision", "add",
      "gather", "position_embedding", "sample",           "advance"};
  return kNames[static_cast<std::size_t>(operation)];
}

Executor::Executor(Dispatcher& dispatcher, std::FILE* warnings)
    : device_(&dispatcher.device()), dispatcher_(&dispatcher), warnings_(warnings) {}

Executor::Executor(Device& host) : device_(&host) {
  if (host.info().kind != DeviceKind::host) {
    throw Error(fmt::format("operations on the processor need memory of the host, not of {}", host.info().id));
  }
}

void Executor::warn(Operation operation, const std::string& reason) {
  falls_back_[static_cast<std::size_t>(operation)] = true;
  fell_back_ = true;
  if (warnings_ != nullptr) {
    fmt::print(warnings_, "pascaline: warning: {} cannot run on {} and runs on the processor from now on: {}\n",
               name_of(operation), device_->info().id, clean_line(reason));
  }
}

template <typename Arguments>
void Executor::run(Operation operation, const Arguments& given, void (*on_device)(Dispatcher&, const Arguments&),
                   void (*on_host)(const Arguments&)) {
  if (dispatcher_ == nullptr) {
    on_host(given);
    return;
  }
  std::string reason;
  if (!falls_back_[static_cast<std::size_t>(operation)]) {
    try {
      on_device(*dispatcher_, given);
      return;
    } catch (const Error& error) {
      if (is_device_failure(error) || device_->recording()) {
        throw;
      }
      reason = error.what();
    }
  }
  // What was started before must have ended well: if it did not, this operation is not at fault.
  device_->synchronize();
  Arguments there = given;
  HostCopies copies(device_->memory());
  visit(there, copies);
  on_host(there);
  copies.bring_back();
  if (!reason.empty()) {
    warn(operation, reason);
  }
}

void Executor::matmul(const ops::MatmulArguments& given) {
  run<ops::MatmulArguments>(Operation::matmul, given, ops::matmul, cpu::matmul);
}
void Executor::attention_prefill(const ops::AttentionPrefillArguments& given) {
  run<ops::AttentionPrefillArguments>(Operation::attention_prefill, given, ops::attention_prefill,
                                      cpu::attention_prefill);
}
void Executor::attention_decode(const ops::AttentionDecodeArguments& given) {
  run<ops::AttentionDecodeArguments>(Operation::attention_decode, given, ops::attention_decode, cpu::attention_decode);
}
void Executor::rmsnorm(const ops::RmsnormArguments& given) {
  run<ops::RmsnormArguments>(Operation::rmsnorm, given, ops::rmsnorm, cpu::rmsnorm);
}
void Executor::layernorm(const ops::LayernormArguments& given) {
  run<ops::LayernormArguments>(Operation::layernorm, given, ops::layernorm, cpu::layernorm);
}
void Executor::qk_norm_rope(const ops::QkNormRopeArguments& given) {
  run<ops::QkNormRopeArguments>(Operation::qk_norm_rope, given, ops::qk_norm_rope, cpu::qk_norm_rope);
}
void Executor::rope_vision(const ops::RopeVisionArguments& given) {
  run<ops::RopeVisionArguments>(Operation::rope_vision, given, ops::rope_vision, cpu::rope_vision);
}
void Executor::add(const TensorView& a, const TensorView& b, const TensorView& y) {
  run<AddArguments>(
      Operation::add, {a, b, y},
      [](Dispatcher& dispatcher, const AddArguments& of) { ops::add(dispatcher, of.a, of.b, of.y); },
      [](const AddArguments& of) { cpu::add(of.a, of.b, of.y); });
}
void Executor::gather(const TensorView& table, const TensorView& indices, const TensorView& y) {
  run<GatherArguments>(
      Operation::gather, {table, indices, y},
      [](Dispatcher& dispatcher, const GatherArguments& of) { ops::gather(dispatcher, of.table, of.indices, of.y); },
      [](const GatherArguments& of) { cpu::gather(of.table, of.indices, of.y); });
}
void Executor::position_embedding(const ops::PositionEmbeddingArguments& given) {
  run<ops::PositionEmbeddingArguments>(Operation::position_embedding, given, ops::position_embedding,
                                       cpu::position_embedding);
}
void Executor::sample(const ops::SampleArguments& given) {
  run<ops::SampleArguments>(Operation::sample, given, ops::sample, cpu::sample);
}
void Executor::advance(const TensorView& length, const TensorView& slots, const TensorView& positions) {
  run<AdvanceArguments>(
      Operation::advance, {length, slots, positions},
      [](Dispatcher& dispatcher, const AdvanceArguments& of) {
        ops::advance(dispatcher, of.length, of.slots, of.positions);
      },
      [](const AdvanceArguments& of) { cpu::advance(of.length, of.slots, of.positions); });
}

}  // namespace pascaline
