// Causal attention and its gradient, q, k and v apart as behind a rotary embedding, or side by side as they
// come from one product.
#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/status_macros.h"
#include "test/conformance/case.h"
#include "test/conformance/real_shapes.h"

namespace ft::conformance {
namespace {

constexpr DType kBF16 = DType::kBF16;
constexpr int64_t kHeads = 4;

struct Shape {
  int64_t batch, positions, heads, kv_heads, size;
  bool side_by_side;
  int64_t group() const { return heads / kv_heads; }
};

// Where the elements of q, k or v (or their gradients) of a position begin in a tensor.
struct Part {
  int64_t tensor, stride, offset;
};
struct Layout {
  explicit Layout(const Shape& s) {
    const int64_t q = s.heads * s.size, kv = s.kv_heads * s.size, all = q + 2 * kv;
    parts[0] = s.side_by_side ? Part{0, all, 0} : Part{0, q, 0};
    parts[1] = s.side_by_side ? Part{0, all, q} : Part{1, kv, 0};
    parts[2] = s.side_by_side ? Part{0, all, q + kv} : Part{2, kv, 0};
  }
  Part parts[3];
};

using Rows = std::vector<double>;  // [positions, size] of one head

double Dot(const double* a, const double* b, int64_t n) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int64_t j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

void AddScaled(double factor, const double* x, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += factor * x[i];
}

struct Head {
  Rows q = {}, k = {}, v = {}, out = {}, dout = {};
  std::vector<double> lse = {};  // [positions]
};

// out and lse from q, k and v.
void Forward(const Shape& s, Head& head) {
  const double scale = 1 / std::sqrt(static_cast<double>(s.size));
  head.out.assign(static_cast<size_t>(s.positions * s.size), 0);
  head.lse.assign(static_cast<size_t>(s.positions), 0);
  std::vector<double> weights(static_cast<size_t>(s.positions));
  for (int64_t t = 0; t < s.positions; ++t) {
    double sum = 0;
    for (int64_t u = 0; u <= t; ++u) {
      weights[u] = std::exp(scale * Dot(&head.q[t * s.size], &head.k[u * s.size], s.size));
      sum += weights[u];
    }
    head.lse[t] = std::log(sum);
    for (int64_t u = 0; u <= t; ++u)
      AddScaled(weights[u] / sum, &head.v[u * s.size], &head.out[t * s.size], s.size);
  }
}

// dq of the head, and what it adds to dk and dv.
void Backward(const Shape& s, const Head& head, Rows& dq, Rows& dk, Rows& dv) {
  const double scale = 1 / std::sqrt(static_cast<double>(s.size));
  for (int64_t t = 0; t < s.positions; ++t) {
    const double *q = &head.q[t * s.size], *dout = &head.dout[t * s.size];
    const double delta = Dot(dout, &head.out[t * s.size], s.size);
    for (int64_t u = 0; u <= t; ++u) {
      const double p = std::exp(scale * Dot(q, &head.k[u * s.size], s.size) - head.lse[t]);
      const double ds = p * (Dot(dout, &head.v[u * s.size], s.size) - delta) * scale;
      AddScaled(ds, &head.k[u * s.size], &dq[t * s.size], s.size);
      AddScaled(ds, q, &dk[u * s.size], s.size);
      AddScaled(p, dout, &dv[u * s.size], s.size);
    }
  }
}

double Size(const Rows& rows) {
  return std::sqrt(Dot(rows.data(), rows.data(), static_cast<int64_t>(rows.size())) /
                   static_cast<double>(rows.size()));
}

void CompareRows(const Shape& s, const Rows& expected, const Rows& got, double part, const std::string& where,
                 Judge& judge) {
  const double floor = Size(expected) / 16;
  for (int64_t t = 0; t < s.positions; ++t) {
    judge.Row({&expected[t * s.size], static_cast<size_t>(s.size)},
              {&got[t * s.size], static_cast<size_t>(s.size)}, part, floor,
              fmt::format("{}, position {}", where, t));
  }
}

// One run on a bench, and its comparison.
class Run {
 public:
  Run(const Shape& shape, Bench& bench) : s_(shape), layout_(shape), bench_(bench) {}

  absl::StatusOr<Findings> Do(bool twice) {
    FT_RETURN_IF_ERROR(PlaceAll());
    FT_ASSIGN_OR_RETURN(Findings findings, RunSteps(bench_, MakeSteps(), twice));
    FT_RETURN_IF_ERROR(CompareSample(findings));
    return findings;
  }

 private:
  absl::Status PlaceAll() {
    const int64_t q = s_.heads * s_.size, kv = s_.kv_heads * s_.size;
    const std::vector<int64_t> widths = s_.side_by_side ? std::vector{q + 2 * kv} : std::vector{q, kv, kv};
    const std::vector<std::string> names =
        s_.side_by_side ? std::vector<std::string>{"qkv"} : std::vector<std::string>{"q", "k", "v"};
    for (size_t i = 0; i < widths.size(); ++i) {
      values_.push_back(LazyTensor::Normal({s_.batch, s_.positions, widths[i]}, 201 + i, 1.0));
      FT_ASSIGN_OR_RETURN(Placed input, Place(bench_, names[i], values_.back().dims(), kBF16));
      FT_ASSIGN_OR_RETURN(Placed gradient, Place(bench_, "d" + names[i], values_.back().dims(), kBF16));
      inputs_.push_back(std::move(input));
      gradients_.push_back(std::move(gradient));
    }
    dout_values_.push_back(LazyTensor::Normal({s_.batch, s_.positions, q}, 211, 1.0));
    FT_ASSIGN_OR_RETURN(dout_, Place(bench_, "dout", dout_values_[0].dims(), kBF16));
    FT_ASSIGN_OR_RETURN(out_, Place(bench_, "out", dout_values_[0].dims(), kBF16));
    FT_ASSIGN_OR_RETURN(lse_, Place(bench_, "lse", {s_.batch, s_.heads, s_.positions}, DType::kF32));
    const int64_t bytes = std::max(
        cuda_workspace::Attention({s_.batch, s_.positions, s_.heads, s_.kv_heads, s_.size, kBF16}),
        cuda_workspace::AttentionGrad({s_.batch, s_.positions, s_.heads, s_.kv_heads, s_.size, kBF16}));
    FT_ASSIGN_OR_RETURN(workspace_, PlaceWorkspace(bench_, bytes));
    return absl::OkStatus();
  }

  Steps MakeSteps() const {
    const std::string op = s_.side_by_side ? "qkv_attention" : "attention";
    const KernelAttributes attributes =
        Attributes({{"heads", s_.heads}, {"kv_heads", s_.kv_heads}, {"causal", int64_t{1}}});
    KernelStep forward{
        op, {.in = {}, .out = {out_.tensor, lse_.tensor}, .workspace = workspace_.tensor}, attributes};
    KernelStep backward{
        op + "_grad", {.in = {dout_.tensor}, .out = {}, .workspace = workspace_.tensor}, attributes};
    Steps steps{.kernels = {}, .inputs = {{&dout_values_[0], &dout_}}, .results = {&out_, &lse_}};
    for (size_t i = 0; i < inputs_.size(); ++i) {
      steps.inputs.push_back({&values_[i], &inputs_[i]});
      steps.results.push_back(&gradients_[i]);
      forward.operands.in.push_back(inputs_[i].tensor);
      backward.operands.in.push_back(inputs_[i].tensor);
      backward.operands.out.push_back(gradients_[i].tensor);
    }
    backward.operands.in.push_back(out_.tensor);
    backward.operands.in.push_back(lse_.tensor);
    for (KernelStep* step : {&forward, &backward}) step->operands.in.resize(step->operands.in.size() + 3);
    steps.kernels = {std::move(forward), std::move(backward)};
    return steps;
  }

  // Part 0, 1 or 2 (q, k, v) of a head as it was written.
  Rows Values(int64_t batch, int64_t part, int64_t head) const {
    const Part& p = layout_.parts[part];
    Rows rows(static_cast<size_t>(s_.positions * s_.size));
    for (int64_t t = 0; t < s_.positions; ++t) {
      values_[static_cast<size_t>(p.tensor)].Read(
          (batch * s_.positions + t) * p.stride + p.offset + head * s_.size, s_.size, &rows[t * s_.size]);
    }
    return rows;
  }

  absl::StatusOr<Rows> Results(const Placed& placed, const Part& part, int64_t batch, int64_t head) const {
    std::vector<double> all(static_cast<size_t>(s_.positions * part.stride));
    FT_RETURN_IF_ERROR(ReadElements(bench_, placed, batch * s_.positions * part.stride,
                                    s_.positions * part.stride, all.data()));
    Rows rows;
    for (int64_t t = 0; t < s_.positions; ++t) {
      const auto begin = all.begin() + t * part.stride + part.offset + head * s_.size;
      rows.insert(rows.end(), begin, begin + s_.size);
    }
    return rows;
  }

  // What was sampled: a head, with the others on its k and v.
  struct Sample {
    int64_t batch, head;
    std::vector<Head> group = {};    // out and lse as the device gave them
    Rows dq = {}, dk = {}, dv = {};  // of `head`, as the device gave them
    Judge of_out{"out"}, of_lse{"lse"}, of_dq{"dq"}, of_dk{"dk"}, of_dv{"dv"};
  };

  absl::StatusOr<Sample> Fetch(int64_t batch, int64_t number) const {
    Sample sample{.batch = batch, .head = number};
    const int64_t kv = number / s_.group();
    const Part rows{0, s_.heads * s_.size, 0};
    for (int64_t h = kv * s_.group(); h < (kv + 1) * s_.group(); ++h) {
      Head head{.q = Values(batch, 0, h), .k = Values(batch, 1, kv), .v = Values(batch, 2, kv)};
      FT_ASSIGN_OR_RETURN(head.out, Results(out_, rows, batch, h));
      head.dout.resize(head.q.size());
      for (int64_t t = 0; t < s_.positions; ++t) {
        dout_values_[0].Read((batch * s_.positions + t) * rows.stride + h * s_.size, s_.size,
                             &head.dout[t * s_.size]);
      }
      head.lse.resize(static_cast<size_t>(s_.positions));
      FT_RETURN_IF_ERROR(
          ReadElements(bench_, lse_, (batch * s_.heads + h) * s_.positions, s_.positions, head.lse.data()));
      sample.group.push_back(std::move(head));
    }
    const auto gradient = [&](int64_t part, int64_t head) {
      const Part& p = layout_.parts[part];
      return Results(gradients_[static_cast<size_t>(p.tensor)], p, batch, head);
    };
    FT_ASSIGN_OR_RETURN(sample.dq, gradient(0, number));
    FT_ASSIGN_OR_RETURN(sample.dk, gradient(1, kv));
    FT_ASSIGN_OR_RETURN(sample.dv, gradient(2, kv));
    return sample;
  }

  void Compare(Sample& sample) const {
    const std::string where = fmt::format("sequence {}, head {}", sample.batch, sample.head);
    const Head& own = sample.group[static_cast<size_t>(sample.head % s_.group())];
    Head exact = own;
    Forward(s_, exact);
    CompareRows(s_, exact.out, own.out, 0x1p-8, where, sample.of_out);
    // Scores reach sqrt(size); their rounding errors enter the exponentials absolutely.
    sample.of_lse.Elements(exact.lse, own.lse, static_cast<double>(s_.positions + s_.size),
                           2 + std::sqrt(static_cast<double>(s_.size)), DType::kF32, where);
    Rows dq(own.q.size()), dk(own.q.size()), dv(own.q.size());
    for (const Head& head : sample.group) {
      Rows others(own.q.size());
      Backward(s_, head, &head == &own ? dq : others, dk, dv);
    }
    CompareRows(s_, dq, sample.dq, 0x1p-7, where, sample.of_dq);
    CompareRows(s_, dk, sample.dk, 0x1p-7, where, sample.of_dk);
    CompareRows(s_, dv, sample.dv, 0x1p-7, where, sample.of_dv);
  }

  absl::Status CompareSample(Findings& findings) const {
    std::vector<Sample> samples;
    for (const int64_t number : SampleOf(s_.batch * s_.heads, kHeads, 3)) {
      FT_ASSIGN_OR_RETURN(Sample sample, Fetch(number / s_.heads, number % s_.heads));
      samples.push_back(std::move(sample));
    }
    InParallel(static_cast<int64_t>(samples.size()), [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i) Compare(samples[static_cast<size_t>(i)]);
    });
    for (Judge Sample::* judge :
         {&Sample::of_out, &Sample::of_lse, &Sample::of_dq, &Sample::of_dk, &Sample::of_dv}) {
      for (size_t i = 1; i < samples.size(); ++i) (samples[0].*judge).Join(samples[i].*judge);
      findings.push_back((samples[0].*judge).finding());
    }
    return absl::OkStatus();
  }

  const Shape s_;
  const Layout layout_;
  Bench& bench_;
  std::vector<LazyTensor> values_, dout_values_;
  std::vector<Placed> inputs_, gradients_;
  Placed dout_, out_, lse_, workspace_;
};

}  // namespace

std::vector<RealShape> RealAttention(ShapeScale scale) {
  const std::vector<Shape> real = {{64, 1024, 12, 12, 64, true}, {32, 1024, 12, 2, 128, false}},
                           small = {{2, 70, 3, 3, 64, true}, {1, 66, 6, 1, 128, false}};
  std::vector<RealShape> shapes;
  for (const Shape& s : scale == ShapeScale::kReal ? real : small) {
    const std::string heads =
        s.heads == s.kv_heads ? fmt::format("{}", s.heads) : fmt::format("{}_on_{}", s.heads, s.kv_heads);
    shapes.push_back({fmt::format("attention_{}x{}x{}x{}", s.batch, s.positions, heads, s.size),
                      [s](Bench& bench, bool twice) { return Run(s, bench).Do(twice); }});
  }
  return shapes;
}

}  // namespace ft::conformance
