#include "compiler/schedule/timeline.h"

#include "dialects/ft/dialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/size_expr.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <numeric>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

Sizes::Sizes(ModuleOp module, const Mesh &mesh, const Target &target)
    : shard(mesh.shard), device(DeviceOf(target)) {
  for (int axis = 0; axis < proto::Axis_ARRAYSIZE; ++axis)
    layouts[axis] =
        LayoutOnNodes(mesh, static_cast<proto::Axis>(axis), static_cast<int>(target.ranks_per_node()));
  for (auto unit : module.getOps<mlir::ft::UnitOp>())
    elements[unit.getSymName()] = unit.getElements();
}

uint64_t Sizes::bytesOf(BufferOp buffer) const {
  if (buffer.getSizeKind() == SizeKind::constant)
    return device == DeviceClass::kCuda ? buffer.getCudaBytes().value_or(buffer.getBytes())
                                        : buffer.getBytes();
  uint64_t slice = SliceElements(elements.lookup(*buffer.getUnit()), mlir::ft::kBlockElements, shard);
  return buffer.getBytes() * (buffer.getSizeKind() == SizeKind::unit_slice ? slice : slice * shard);
}

uint64_t Sizes::bytesOf(const View &view) const {
  auto buffer = view.buffer.getDefiningOp<BufferOp>();
  return view.isOwn() ? bytesOf(buffer) / shard : bytesOf(buffer);
}

double Sizes::shareOf(StringRef unit) const {
  uint64_t whole = elements.lookup(unit);
  return static_cast<double>(SliceElements(whole, mlir::ft::kBlockElements, shard)) /
         static_cast<double>(whole);
}

uint64_t Sizes::roundedBytesOf(BufferOp buffer) const { return RoundUp(bytesOf(buffer)); }

const NodeLayout &Sizes::layoutOf(std::optional<mlir::ft::Axis> axis) const {
  return layouts[axis ? static_cast<proto::Axis>(*axis) : proto::AXIS_NONE];
}

/// A kernel over slices costs its share; the compiler has written down that of the whole unit.
static double shareOf(ArrayRef<View> ins, const Sizes &sizes) {
  for (const View &view : ins) {
    auto buffer = view.isPresent() ? view.buffer.getDefiningOp<BufferOp>() : BufferOp();
    if (buffer && (view.isOwn() || buffer.getSizeKind() == SizeKind::unit_slice))
      return sizes.shareOf(*buffer.getUnit());
  }
  return 1.0;
}

static uint64_t partOf(double share, std::optional<uint64_t> whole) {
  return static_cast<uint64_t>(share * static_cast<double>(whole.value_or(0)));
}

static double transferSeconds(StartOp start, const Sizes &sizes, const Target &target) {
  // The whole is what an all-gather makes, and what the others take.
  bool gathers = start.getTransfer() == Transfer::all_gather;
  uint64_t bytes = 0;
  for (const View &view : gathers ? getViews(start.getOuts(), start.getOutViews())
                                  : getViews(start.getIns(), start.getInViews()))
    bytes += sizes.bytesOf(view);
  auto opcode = static_cast<proto::Opcode>(start.getTransfer());
  return opcode == proto::COPY ? CopySeconds(target, bytes)
                               : CollectiveSeconds(target, opcode, bytes, sizes.layoutOf(start.getAxis()));
}

double secondsBeside(BesideOpInterface beside, const Sizes &sizes, const Target &target) {
  if (auto start = dyn_cast<StartOp>(beside.getOperation()))
    return transferSeconds(start, sizes, target);
  auto launch = cast<LaunchOp>(beside.getOperation());
  double share = shareOf(getViews(launch.getIns(), launch.getInViews()), sizes);
  return HostKernelSeconds(target, partOf(share, launch.getBytes()));
}

//===----------------------------------------------------------------------===//
// Timeline
//===----------------------------------------------------------------------===//

/// Of the first operand of 16 bits, if there is one.
static proto::DType computeType(KernelOp kernel) {
  for (const View &view : getViews(kernel.getIns(), kernel.getInViews())) {
    if (!view.isPresent())
      continue;
    Type element = getElementTypeOrSelf(view.type);
    if (element.isBF16() || element.isF16())
      return element.isBF16() ? proto::BF16 : proto::F16;
  }
  return proto::F32;
}

Timeline::Timeline(const InstructionOrder &order, const Sizes &sizes, const Target &target) {
  double now = 0;
  for (size_t number = 0; number < order.size(); ++number) {
    begins.push_back(now);
    auto kernel = dyn_cast<KernelOp>(order[number]);
    if (!kernel)
      continue;
    double share = shareOf(getViews(kernel.getIns(), kernel.getInViews()), sizes);
    now += KernelSeconds(target, partOf(share, kernel.getFlops()), partOf(share, kernel.getBytes()),
                         computeType(kernel));
  }
  begins.push_back(now);
}

std::optional<size_t> Timeline::lastBeginningBy(double latest) const {
  auto it = std::upper_bound(begins.begin(), std::prev(begins.end()), latest);
  return it == begins.begin() ? std::nullopt : std::optional<size_t>(it - begins.begin() - 1);
}

size_t Timeline::firstBeginningAt(double earliest) const {
  return std::lower_bound(begins.begin(), std::prev(begins.end()), earliest) - begins.begin();
}

//===----------------------------------------------------------------------===//
// Live bytes
//===----------------------------------------------------------------------===//

RangeMax liveBytes(const InstructionOrder &order, ProgramOp program, const Sizes &sizes) {
  struct Range {
    size_t first, last;
  };
  llvm::MapVector<Value, Range> ranges;
  for (size_t number = 0; number < order.size(); ++number) {
    auto touch = [&](Operation *op) {
      forEachAccess(op, [&](Value buffer, bool) {
        ranges.insert({buffer, {number, number}}).first->second.last = number;
      });
    };
    if (auto wait = dyn_cast<WaitOp>(order[number]))
      touch(wait.getToken().getDefiningOp());
    touch(order[number]);
  }
  int64_t persistent = 0;
  for (BufferOp buffer : program->getParentOfType<ModuleOp>().getOps<BufferOp>())
    if (!buffer.getHost())
      persistent += static_cast<int64_t>(sizes.roundedBytesOf(buffer));
  llvm::SmallVector<int64_t, 0> live(order.size() + 1, 0);
  live[0] = persistent;
  for (const auto &[value, range] : ranges) {
    auto buffer = value.getDefiningOp<BufferOp>();
    if (buffer.getPersistent() || buffer.getHost())
      continue;
    live[range.first] += static_cast<int64_t>(sizes.roundedBytesOf(buffer));
    live[range.last + 1] -= static_cast<int64_t>(sizes.roundedBytesOf(buffer));
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return RangeMax(ArrayRef(live).drop_back());
}

} // namespace ft::compiler
