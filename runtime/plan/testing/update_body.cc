#include "runtime/plan/testing/update_body.h"

#include <utility>

namespace ft {
namespace {

using Kind = ClusterOpKind;

class UpdateBodyBuilder {
 public:
  UpdateBodyBuilder() {
    body.rows = 16;
    body.columns = body.last_columns = 64;
  }
  uint32_t Input(DType dtype, bool columns) {
    const auto input = static_cast<uint32_t>(body.inputs.size());
    body.inputs.push_back({.dtype = dtype, .elements = columns ? body.elements() : 1});
    body.reads.push_back({input, columns ? body.Whole() : ClusterBody::Place{}});
    return input;
  }
  uint32_t Map(Elementwise function, std::vector<uint32_t> operands, DType dtype = DType::kF32) {
    ClusterBody::Op op;
    op.function = function;
    op.operands = std::move(operands);
    op.dtype = dtype;
    return Add(std::move(op));
  }
  uint32_t Scale(uint32_t x, double factor) {
    const uint32_t result = Map(Elementwise::kScale, {x});
    body.ops.back().parameters = {static_cast<float>(factor)};
    return result;
  }
  uint32_t Shift(uint32_t x, double amount) {
    const uint32_t result = Map(Elementwise::kShift, {x});
    body.ops.back().parameters = {static_cast<float>(amount)};
    return result;
  }
  uint32_t Convert(uint32_t x, DType dtype) {
    if (body.dtype(x) == dtype) return x;
    ClusterBody::Op op;
    op.kind = Kind::kConvert;
    op.operands = {x};
    op.dtype = dtype;
    return Add(std::move(op));
  }
  void Output(uint32_t value) {
    body.outputs.push_back(
        {.value = value, .result = static_cast<uint32_t>(body.results.size()), .place = body.Whole()});
    body.results.push_back({.dtype = body.dtype(value), .elements = body.elements()});
  }

  ClusterBody body;

 private:
  uint32_t Add(ClusterBody::Op op) {
    body.ops.push_back(std::move(op));
    return static_cast<uint32_t>(body.values() - 1);
  }
};

}  // namespace

ClusterBody AdamwBody(const UpdateTypes& types) {
  using enum Elementwise;
  UpdateBodyBuilder b;
  const uint32_t gradient = b.Input(types.gradient, true), parameter = b.Input(types.parameter, true);
  const uint32_t m = b.Input(DType::kF32, true), v = b.Input(DType::kF32, true);
  const uint32_t clip = b.Input(DType::kF32, false), decay = b.Input(DType::kF32, false);
  const uint32_t rate = b.Input(DType::kF32, false), root = b.Input(DType::kF32, false);
  const uint32_t g = b.Map(kMul, {b.Convert(gradient, DType::kF32), clip}),
                 p = b.Convert(parameter, DType::kF32);
  const uint32_t new_m = b.Map(kAdd, {m, b.Scale(b.Map(kSub, {g, m}), 1 - 0.9)});
  const uint32_t new_v = b.Map(kAdd, {b.Scale(v, 0.95), b.Scale(b.Map(kMul, {g, g}), 1 - 0.95)});
  const uint32_t denominator = b.Shift(b.Map(kDiv, {b.Map(kSqrt, {new_v}), root}), 1e-8);
  const uint32_t step = b.Map(kMul, {b.Map(kDiv, {new_m, denominator}), rate});
  const uint32_t new_p = b.Map(kSub, {b.Map(kMul, {p, decay}), step});
  const uint32_t skipped = b.Map(kNe, {clip, clip}, DType::kU8);
  const uint32_t kept = b.Map(kSelect, {skipped, p, new_p});
  b.Output(b.Convert(kept, types.result));
  b.Output(b.Map(kSelect, {skipped, m, new_m}));
  b.Output(b.Map(kSelect, {skipped, v, new_v}));
  if (types.copy != DType::kF32) b.Output(b.Convert(kept, types.copy));
  return std::move(b.body);
}

}  // namespace ft
