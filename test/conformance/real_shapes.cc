#include "test/conformance/real_shapes.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "test/conformance/array.h"

namespace ft::conformance {
namespace {

double RootMeanSquare(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

absl::StatusOr<std::vector<Scan>> RunOnce(Bench& bench, const Steps& steps) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const KernelStep& step : steps.kernels) {
    FT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                        bench.Create(step.op, step.operands, step.attributes));
    kernels.push_back(std::move(kernel));
  }
  // Only now: who creates a kernel may try algorithms on its operands.
  for (const Input& input : steps.inputs)
    FT_RETURN_IF_ERROR(WriteValues(bench, *input.values, *input.placed));
  for (const Placed* result : steps.results) FT_RETURN_IF_ERROR(Spoil(bench, *result));
  for (const auto& kernel : kernels) FT_RETURN_IF_ERROR(bench.Run(*kernel));
  std::vector<Scan> scans;
  for (const Placed* result : steps.results) {
    FT_ASSIGN_OR_RETURN(const Scan scan, ScanAll(bench, *result));
    scans.push_back(scan);
  }
  return scans;
}

}  // namespace

void Judge::Take(double of_allowed, const std::function<std::string()>& text) {
  if (of_allowed <= 1) {
    finding_.of_allowed = std::max(finding_.of_allowed, of_allowed);
    return;
  }
  if (finding_.wrong.empty()) finding_.wrong = text();
  finding_.of_allowed = std::isnan(of_allowed) ? INFINITY : std::max(finding_.of_allowed, of_allowed);
}

void Judge::Row(std::span<const double> expected, std::span<const double> got, double part, double floor,
                const std::string& where) {
  std::vector<double> errors(expected.size());
  for (size_t i = 0; i < errors.size(); ++i) errors[i] = got[i] - expected[i];
  const double error = RootMeanSquare(errors), size = RootMeanSquare(expected),
               allowed = part * (size + floor);
  Take(error == 0 ? 0 : error / allowed, [&] {
    return fmt::format("{} at {}: off by {:.3g} on average, {:.3g} of {:.3g} is allowed", finding_.what,
                       where, error, allowed, size);
  });
}

void Judge::Elements(std::span<const double> expected, std::span<const double> got, double reduction,
                     double scale, DType dtype, const std::string& where) {
  const double in_f32 = 8 * 0x1p-24 * (4 + std::sqrt(reduction)) * scale;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double allowed = in_f32 + Rounding(dtype, std::abs(expected[i]) + in_f32);
    Take(std::abs(got[i] - expected[i]) / allowed, [&] {
      return fmt::format("{} at {}, element {}: {:.9g}, expected {:.9g}, tolerance {:.2g}", finding_.what,
                         where, i, got[i], expected[i], allowed);
    });
  }
}

void Judge::Join(const Judge& other) {
  finding_.of_allowed = std::max(finding_.of_allowed, other.finding_.of_allowed);
  if (finding_.wrong.empty()) finding_.wrong = other.finding_.wrong;
}

absl::StatusOr<Findings> RunSteps(Bench& bench, const Steps& steps, bool twice) {
  FT_ASSIGN_OR_RETURN(const std::vector<Scan> first, RunOnce(bench, steps));
  std::vector<Scan> second = first;
  if (twice) {
    FT_ASSIGN_OR_RETURN(second, RunOnce(bench, steps));
  }
  Findings findings;
  for (size_t i = 0; i < first.size(); ++i) {
    Finding finding{.what =
                        steps.results[i]->name + (twice ? ", finite and the same bits twice" : ", finite")};
    if (first[i].not_finite >= 0)
      finding.wrong = fmt::format("element {} is not finite", first[i].not_finite);
    if (first[i].hash != second[i].hash) finding.wrong += " a second run gave other bits";
    if (!finding.wrong.empty()) finding.wrong = steps.results[i]->name + ": " + finding.wrong;
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<RealShape> RealShapes(ShapeScale scale) {
  std::vector<RealShape> shapes;
  for (const auto& list : {RealAttention(scale), RealLoss(scale)})
    shapes.insert(shapes.end(), list.begin(), list.end());
  return shapes;
}

}  // namespace ft::conformance
