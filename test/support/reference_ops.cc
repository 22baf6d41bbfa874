#include "test/support/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dialects/ft/elementwise.h"
#include "runtime/base/philox.h"

namespace mlir::ft::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double logSumExp(const double* values, int64_t count) {
  double top = *std::max_element(values, values + count), sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(values[i] - top);
  return top + std::log(sum);
}

// The number that an op's stream has at an element, in a micro-step: rng is seed, micro-step, rank.
float uniform(const Array& rng, int64_t stream, uint64_t element) {
  uint32_t word = ::ft::kFirstOpStream + stream;
  return ::ft::PhiloxUniform(::ft::Philox4x32(rng.data[0], word, rng.data[1], element / 4)[element % 4]);
}

double realOf(FloatAttr attribute) { return attribute.getValueAsDouble(); }

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

void fill(OpEvaluation& e) {
  e.out[0].data.assign(e.out[0].size(), realOf(cast<FillOp>(e.op).getValueAttr()));
}

void iota(OpEvaluation& e) { std::iota(e.out[0].data.begin(), e.out[0].data.end(), 0.0); }

void copy(OpEvaluation& e) { e.out[0] = *e.in[0]; }

void embedding(OpEvaluation& e) {
  for (int64_t i = 0; i < e.in[0]->size(); ++i)
    std::copy_n(e.in[1]->row(e.in[0]->data[i]), e.in[1]->last(), e.out[0].row(i));
}

void split(OpEvaluation& e) {
  for (int64_t r = 0; r < e.in[0]->rows(); ++r) {
    const double* from = e.in[0]->row(r);
    for (Array& part : e.out) {
      std::copy_n(from, part.last(), part.row(r));
      from += part.last();
    }
  }
}

//===----------------------------------------------------------------------===//
// Linear algebra and elementwise ops
//===----------------------------------------------------------------------===//

void matmul(OpEvaluation& e) {
  auto op = cast<MatmulOp>(e.op);
  const Array &a = *e.in[0], &b = *e.in[1];
  Array& c = e.out[0];
  int64_t n = c.last();
  if (op.getTransposeA()) {
    for (int64_t r = 0; r < a.rows(); ++r)
      for (int64_t i = 0; i < a.last(); ++i)
        for (int64_t j = 0; j < n; ++j) c.row(i)[j] += a.row(r)[i] * b.row(r)[j];
  } else {
    for (int64_t r = 0; r < a.rows(); ++r)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t k = 0; k < a.last(); ++k)
          c.row(r)[j] += a.row(r)[k] * (op.getTransposeB() ? b.row(j)[k] : b.row(k)[j]);
  }
  for (size_t extra = 2; extra < e.in.size(); ++extra)  // bias and acc; a suffix of the shape either way
    for (int64_t i = 0; i < c.size(); ++i) c.data[i] += e.in[extra]->data[i % e.in[extra]->size()];
}

template <typename Function>
OpFunction elementwise(Function function) {
  return [function](OpEvaluation& e) {
    for (int64_t i = 0; i < e.out[0].size(); ++i)
      e.out[0].data[i] = function(e.in[0]->data[i], e.in[1]->data[i % e.in[1]->size()]);
  };
}

// Kept where u >= rate; the draws do not depend on x.
void dropout(OpEvaluation& e) {
  auto op = cast<DropoutOp>(e.op);
  const Array &x = *e.in[0], &rng = *e.in[1];
  double rate = realOf(op.getRateAttr());
  for (int64_t i = 0; i < x.size(); ++i)
    e.out[0].data[i] = uniform(rng, op.getStream(), int64_t(rng.data[2]) * x.size() + i) >= rate
                           ? x.data[i] / (1 - rate)
                           : 0;
}

void gelu(OpEvaluation& e) {
  bool tanhForm = cast<GeluOp>(e.op).getApproximate() == "tanh";
  for (int64_t i = 0; i < e.out[0].size(); ++i) {
    double x = e.in[0]->data[i];
    double inner =
        tanhForm ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)) : std::erf(x / std::sqrt(2.0));
    e.out[0].data[i] = 0.5 * x * (1 + inner);
  }
}

//===----------------------------------------------------------------------===//
// Normalisation, position, attention
//===----------------------------------------------------------------------===//

void layerNorm(OpEvaluation& e) {
  double eps = realOf(cast<LayerNormOp>(e.op).getEpsAttr());
  int64_t width = e.in[0]->last();
  for (int64_t r = 0; r < e.in[0]->rows(); ++r) {
    const double* x = e.in[0]->row(r);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[i] / width;
    for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean) / width;
    for (int64_t i = 0; i < width; ++i)
      e.out[0].row(r)[i] = (x[i] - mean) / std::sqrt(variance + eps) * e.in[1]->data[i] + e.in[2]->data[i];
  }
}

void rmsNorm(OpEvaluation& e) {
  double eps = realOf(cast<RmsNormOp>(e.op).getEpsAttr());
  int64_t width = e.in[0]->last();
  for (int64_t r = 0; r < e.in[0]->rows(); ++r) {
    const double* x = e.in[0]->row(r);
    double square = 0;
    for (int64_t i = 0; i < width; ++i) square += x[i] * x[i] / width;
    for (int64_t i = 0; i < width; ++i)
      e.out[0].row(r)[i] = x[i] / std::sqrt(square + eps) * e.in[1]->data[i];
  }
}

void rope(OpEvaluation& e) {
  auto op = cast<RopeOp>(e.op);
  int64_t positions = e.in[0]->shape[1], heads = op.getHeads(), size = e.in[0]->last() / heads,
          half = size / 2;
  for (int64_t r = 0; r < e.in[0]->rows(); ++r)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < half; ++i) {
        double angle = (r % positions) * std::pow(realOf(op.getBaseAttr()), -double(i) / half);
        if (op.getInverse()) angle = -angle;
        double x0 = e.in[0]->row(r)[h * size + i], x1 = e.in[0]->row(r)[h * size + i + half];
        e.out[0].row(r)[h * size + i] = x0 * std::cos(angle) - x1 * std::sin(angle);
        e.out[0].row(r)[h * size + i + half] = x1 * std::cos(angle) + x0 * std::sin(angle);
      }
}

void rotaryTable(OpEvaluation& e) {
  auto op = cast<RotaryTableOp>(e.op);
  int64_t half = e.out[0].last();
  double scale = op.getScale() ? realOf(op.getScaleAttr()) : 1;
  for (int64_t t = 0; t < e.out[0].rows(); ++t)
    for (int64_t i = 0; i < half; ++i) {
      double frequency = op.getFrequencies() ? (*op.getFrequencies())[i]
                                             : std::pow(realOf(op.getBaseAttr()), -double(i) / half);
      e.out[0].row(t)[i] = scale * std::cos(t * frequency);
      e.out[1].row(t)[i] = scale * std::sin(t * frequency);
    }
}

// Angles are those of the positions, or of all of the batch.
void rotate(OpEvaluation& e) {
  auto op = cast<RotateOp>(e.op);
  const Array &x = *e.in[0], &cosine = *e.in[1], &sine = *e.in[2];
  int64_t half = cosine.last();
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t i = 0; i < x.last() / 2; ++i) {
      int64_t row = r % cosine.rows(), at = i / half * 2 * half + i % half;
      double c = cosine.row(row)[i % half], s = sine.row(row)[i % half] * (op.getInverse() ? -1 : 1);
      e.out[0].row(r)[at] = x.row(r)[at] * c - x.row(r)[at + half] * s;
      e.out[0].row(r)[at + half] = x.row(r)[at + half] * c + x.row(r)[at] * s;
    }
}

// Column `begin` + i of row r of `tensor` is element i of a head.
struct HeadColumns {
  const Array& tensor;
  int64_t begin;
  const double* row(int64_t r) const { return tensor.row(r) + begin; }
};

// BLOOM's slopes: half of those of twice as many heads go to the heads beyond a power of two, every other
// one.
double alibiSlope(int64_t head, int64_t heads) {
  int64_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  if (head < whole) return std::pow(2, -8.0 / whole * (head + 1));
  return std::pow(2, -8.0 / (2 * whole) * (2 * (head - whole) + 1));
}

// Whether everything from one position to another has the same id.
bool inOneSegment(const double* ids, int64_t a, int64_t b) {
  return std::all_of(ids + std::min(a, b), ids + std::max(a, b), [&](double id) { return id == ids[b]; }) &&
         ids[a] == ids[b];
}

// The score of a query and a key; minus infinity where the query does not see it.
template <typename Attention>
double score(Attention op, int64_t head, int64_t query, int64_t key, double product, int64_t size) {
  if (op.getCausal() && key > query) return -INFINITY;
  if (op.getWindow() && std::abs(key - query) >= int64_t(*op.getWindow())) return -INFINITY;
  double s = product * (op.getScale() ? op.getScale()->convertToDouble() : 1 / std::sqrt(double(size)));
  if (op.getSoftcap()) {
    double cap = op.getSoftcap()->convertToDouble();
    s = cap * std::tanh(s / cap);
  }
  return op.getAlibi() ? s + alibiSlope(head, op.getHeads()) * (key - query) : s;
}

// What a probability is multiplied by: its number is that of [rank, batch, head, query, key].
template <typename Attention>
double dropoutFactor(Attention op, const Array& rng, int64_t batch, uint64_t row, uint64_t key) {
  uint64_t positions = op.getOut().getType().getShape()[1];
  uint64_t rows = batch * int64_t(op.getHeads()) * positions;
  double rate = op.getRate()->convertToDouble();
  uint64_t element = (uint64_t(rng.data[2]) * rows + row) * positions + key;
  return uniform(rng, *op.getStream(), element) >= rate ? 1 / (1 - rate) : 0;
}

// q, k and v hold all heads of a row one after the other. Operands from `next` on are those that are
// optional.
template <typename Attention>
void attend(OpEvaluation& e, Attention op, size_t next, HeadColumns q, HeadColumns k, HeadColumns v) {
  const Array* lengths = op.getLengths() ? e.in[next++] : nullptr;
  const Array* segments = op.getSegments() ? e.in[next++] : nullptr;
  const Array* rng = op.getRng() ? e.in[next++] : nullptr;
  int64_t batch = e.out[0].shape[0], positions = e.out[0].shape[1], heads = op.getHeads();
  int64_t size = e.out[0].last() / heads, group = heads / int64_t(op.getKvHeads());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < positions; ++t) {
        const double* query = q.row(b * positions + t) + h * size;
        std::vector<double> scores(positions);
        for (int64_t s = 0; s < positions; ++s) {
          const double* key = k.row(b * positions + s) + h / group * size;
          double product = 0;
          for (int64_t i = 0; i < size; ++i) product += query[i] * key[i];
          scores[s] = score(op, h, t, s, product, size);
          if ((lengths && s >= lengths->data[b]) ||
              (segments && !inOneSegment(&segments->data[b * positions], s, t)))
            scores[s] = -INFINITY;
        }
        double lse = logSumExp(scores.data(), scores.size());
        if (!std::isfinite(lse)) continue;  // no key is seen: all is 0
        int64_t row = (b * heads + h) * positions + t;
        e.out[1].data[row] = lse;
        for (size_t s = 0; s < scores.size(); ++s) {
          double factor = rng ? dropoutFactor(op, *rng, batch, row, s) : 1;
          for (int64_t i = 0; i < size; ++i)
            e.out[0].row(b * positions + t)[h * size + i] +=
                std::exp(scores[s] - lse) * factor * v.row(b * positions + s)[h / group * size + i];
        }
      }
}

void attention(OpEvaluation& e) {
  attend(e, cast<AttentionOp>(e.op), 3, {*e.in[0], 0}, {*e.in[1], 0}, {*e.in[2], 0});
}

void qkvAttention(OpEvaluation& e) {
  auto op = cast<QkvAttentionOp>(e.op);
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads(), size = e.in[0]->last() / (heads + 2 * kvHeads);
  attend(e, op, 1, {*e.in[0], 0}, {*e.in[0], heads * size}, {*e.in[0], (heads + kvHeads) * size});
}

//===----------------------------------------------------------------------===//
// Losses and the latent variable
//===----------------------------------------------------------------------===//

double meanCrossEntropy(const Array& logits, const Array& targets) {
  double sum = 0;
  int64_t counted = 0;
  for (int64_t r = 0; r < logits.rows(); ++r) {
    int64_t target = int64_t(targets.data[r]);
    if (target < 0) continue;
    sum += logSumExp(logits.row(r), logits.last()) - logits.row(r)[target];
    ++counted;
  }
  return counted == 0 ? 0 : sum / counted;
}

void crossEntropy(OpEvaluation& e) { e.out[0].data[0] = meanCrossEntropy(*e.in[0], *e.in[1]); }

void linearCrossEntropy(OpEvaluation& e) {
  const Array &x = *e.in[0], &weight = *e.in[1];
  Array logits({x.rows(), weight.rows()});
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t v = 0; v < weight.rows(); ++v)
      for (int64_t i = 0; i < x.last(); ++i) logits.row(r)[v] += x.row(r)[i] * weight.row(v)[i];
  e.out[0].data[0] = meanCrossEntropy(logits, *e.in[2]);
}

void sampleBits(OpEvaluation& e) {
  if (!e.frozen->data.empty()) {
    e.out[0] = *e.frozen;
    return;
  }
  const Array &logits = *e.in[0], &rng = *e.in[1];
  int64_t bits = logits.last();
  int64_t stream = cast<SampleBitsOp>(e.op).getStream();
  for (int64_t t = 0; t < logits.rows(); ++t)
    for (int64_t h = 0; h < bits; ++h) {
      uint64_t element = (uint64_t(rng.data[2]) * logits.rows() + t) * bits + h;
      if (uniform(rng, stream, element) < sigmoid(logits.row(t)[h]))
        e.out[0].data[t] += double(int64_t{1} << h);
    }
  *e.frozen = e.out[0];
}

void binaryMapper(OpEvaluation& e) {
  const Array &logits = *e.in[0], &index = *e.in[1], &table = *e.in[2];
  int64_t codes = table.rows();
  Array probabilities({logits.rows(), codes});
  for (int64_t t = 0; t < logits.rows(); ++t) {
    std::vector<double> g = codeProbabilities(logits.row(t), logits.last());
    std::copy(g.begin(), g.end(), probabilities.row(t));
  }
  if (e.frozen->data.empty()) *e.frozen = probabilities;
  for (int64_t t = 0; t < logits.rows(); ++t)
    for (int64_t d = 0; d < codes; ++d) {
      double z = (d == int64_t(index.data[t])) + probabilities.row(t)[d] - e.frozen->row(t)[d];
      for (int64_t i = 0; i < table.last(); ++i) e.out[0].row(t)[i] += z * table.row(d)[i];
    }
}

void bitsKl(OpEvaluation& e) {
  const Array& logits = *e.in[0];
  double kappa = realOf(cast<BitsKlOp>(e.op).getKappaAttr());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    double kl = logits.last() * std::log(2.0);
    for (int64_t h = 0; h < logits.last(); ++h) {
      double p = sigmoid(logits.row(t)[h]);
      kl += p * std::log(p) + (1 - p) * std::log(1 - p);
    }
    e.out[0].data[0] += std::max(0.0, kl - kappa) / logits.rows();
  }
}

}  // namespace

std::vector<double> codeProbabilities(const double* logits, int64_t bits) {
  std::vector<double> g(size_t{1} << bits, 1.0);
  for (size_t d = 0; d < g.size(); ++d)
    for (int64_t h = 0; h < bits; ++h) g[d] *= (d >> h) & 1 ? sigmoid(logits[h]) : 1 - sigmoid(logits[h]);
  return g;
}

const std::map<std::string, OpFunction>& referenceOps() {
  static const auto& table = *[] {
    auto* ops = new std::map<std::string, OpFunction>{
        {"fill", fill},
        {"iota", iota},
        {"copy", copy},
        {"embedding", embedding},
        {"split", split},
        {"matmul", matmul},
        {"swiglu", elementwise([](double gate, double up) { return gate * sigmoid(gate) * up; })},
        {"dropout", dropout},
        {"gelu", gelu},
        {"layer_norm", layerNorm},
        {"rms_norm", rmsNorm},
        {"rope", rope},
        {"rotary_table", rotaryTable},
        {"rotate", rotate},
        {"attention", attention},
        {"qkv_attention", qkvAttention},
        {"cross_entropy", crossEntropy},
        {"linear_cross_entropy", linearCrossEntropy},
        {"sample_bits", sampleBits},
        {"binary_mapper", binaryMapper},
        {"bits_kl", bitsKl},
    };
    addReferencePrimitives(*ops);
    return ops;
  }();
  return table;
}

}  // namespace mlir::ft::test
