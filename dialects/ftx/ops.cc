#include "dialects/ftx/dialect.h"

#include "dialects/ftx/views.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::ftx;

//===----------------------------------------------------------------------===//
// Views as text: `%b[256] : tensor<4xf32>`, `%b : whole f32`, `none`; a list of them may be empty
//===----------------------------------------------------------------------===//

/// What follows the buffer of a view: `[offset] : type`.
static ParseResult parsePlace(OpAsmParser &parser, SmallVectorImpl<Attribute> &views) {
  int64_t offset = 0;
  Type type;
  if (succeeded(parser.parseOptionalLSquare()) && (parser.parseInteger(offset) || parser.parseRSquare()))
    return failure();
  if (parser.parseColon())
    return failure();
  llvm::SMLoc loc = parser.getCurrentLocation();
  bool own = succeeded(parser.parseOptionalKeyword("own"));
  bool whole = !own && succeeded(parser.parseOptionalKeyword("whole"));
  if (parser.parseType(type))
    return failure();
  if ((own || whole) == isa<RankedTensorType>(type) || isa<NoneType>(type))
    return parser.emitError(loc, "expected a tensor type, or 'whole' or 'own' and an element type");
  views.push_back(ViewAttr::get(parser.getContext(), offset, type, own));
  return success();
}

/// No value when no view begins here.
static OptionalParseResult parseOptionalView(OpAsmParser &parser,
                                             SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers,
                                             SmallVectorImpl<Attribute> &views) {
  if (succeeded(parser.parseOptionalKeyword("none"))) {
    views.push_back(ViewAttr::get(parser.getContext(), 0, NoneType::get(parser.getContext())));
    return success();
  }
  OpAsmParser::UnresolvedOperand buffer;
  OptionalParseResult parsed = parser.parseOptionalOperand(buffer);
  if (!parsed.has_value() || failed(*parsed))
    return parsed;
  buffers.push_back(buffer);
  return parsePlace(parser, views);
}

static ParseResult parseViews(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers,
                              ArrayAttr &views) {
  SmallVector<Attribute> attrs;
  OptionalParseResult parsed = parseOptionalView(parser, buffers, attrs);
  while (parsed.has_value() && succeeded(*parsed) && succeeded(parser.parseOptionalComma())) {
    parsed = parseOptionalView(parser, buffers, attrs);
    if (!parsed.has_value())
      return parser.emitError(parser.getCurrentLocation(), "expected a buffer or 'none'");
  }
  if (parsed.has_value() && failed(*parsed))
    return failure();
  views = parser.getBuilder().getArrayAttr(attrs);
  return success();
}

static void printViews(OpAsmPrinter &printer, Operation *, OperandRange buffers, ArrayAttr attrs) {
  llvm::interleaveComma(getViews(buffers, attrs), printer, [&](const View &view) {
    if (!view.isPresent()) {
      printer << "none";
      return;
    }
    printer << view.buffer;
    if (view.offset != 0)
      printer << '[' << view.offset << ']';
    printer << " : " << (view.isOwn() ? "own " : view.isWhole() ? "whole " : "") << view.type;
  });
}

#include "dialects/ftx/interfaces.cc.inc"

#define GET_OP_CLASSES
#include "dialects/ftx/ops.cc.inc"

//===----------------------------------------------------------------------===//
// Verification of single ops; whole schedules are verified by ftx-verify-schedule
//===----------------------------------------------------------------------===//

static BufferOp definitionOf(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }

/// Bytes of a tensor or of one element.
static uint64_t bytesOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getNumElements() * mlir::ft::elementBytes(tensor.getElementType());
  return mlir::ft::elementBytes(type);
}

static bool isOfUnit(BufferOp buffer) {
  return buffer.getSizeKind() == SizeKind::unit_full || buffer.getSizeKind() == SizeKind::unit_slice;
}

/// Views and buffers agree in number, and a view of a buffer of constant size lies inside of it.
static LogicalResult verifyViews(Operation *op, OperandRange buffers, ArrayAttr attrs, StringRef what) {
  size_t present = 0;
  for (Attribute attr : attrs) {
    auto view = dyn_cast<ViewAttr>(attr);
    if (!view)
      return op->emitOpError() << what << " views must be #ftx.view attributes";
    present += !isa<NoneType>(view.getType());
  }
  if (present != buffers.size())
    return op->emitOpError() << "has " << present << ' ' << what << " views for " << buffers.size()
                             << " buffers";
  for (auto [index, view] : llvm::enumerate(getViews(buffers, attrs))) {
    if (!view.isPresent())
      continue;
    bool isTensor = isa<RankedTensorType>(view.type);
    if (view.offset < 0 || (!isTensor && view.offset != 0))
      return op->emitOpError() << what << ' ' << index << " has offset " << view.offset;
    BufferOp buffer = definitionOf(view.buffer);
    if (buffer && view.isOwn() && buffer.getSizeKind() != SizeKind::unit_full)
      return op->emitOpError() << what << ' ' << index << " is the own slice of buffer '" << buffer.getName()
                               << "', which is no whole unit";
    if (!buffer || !isTensor || isOfUnit(buffer))
      continue;
    if (view.offset + bytesOf(view.type) > buffer.getBytes())
      return op->emitOpError() << what << ' ' << index << " ends at byte " << view.offset + bytesOf(view.type)
                               << " of buffer '" << buffer.getName() << "', which has " << buffer.getBytes();
  }
  return success();
}

void BufferOp::getAsmResultNames(function_ref<void(Value, StringRef)> setName) {
  setName(getBuffer(), getName());
}

LogicalResult BufferOp::verify() {
  if (isOfUnit(*this) != getUnit().has_value())
    return emitOpError() << "has a size " << stringifySizeKind(getSizeKind())
                         << (getUnit() ? " that names a unit" : " that names no unit");
  bool isShare = getSizeKind() == SizeKind::share;
  if (isShare != getShareIndex().has_value() || isShare != getShareCount().has_value() ||
      (isShare && (*getShareIndex() >= *getShareCount() || getPersistent() || getHost())))
    return emitOpError(
        "is a share of things, on the device and in a program, where it says which of how many");
  if (static_cast<int64_t>(getBytes()) < 0 || static_cast<int64_t>(getCudaBytes().value_or(0)) < 0)
    return emitOpError("has a negative size");
  if (getCudaBytes() &&
      (getMemoryClass() != MemoryClass::workspace || getUnit() || getPersistent() || getHost()))
    return emitOpError("has a size for CUDA; only scratch of a constant size on the device may");
  bool inProgram = isa<ProgramOp>((*this)->getParentOp());
  if (getPersistent() == inProgram)
    return emitOpError(inProgram ? "is persistent, so it must stand outside of programs"
                                 : "is not persistent, so it must stand in a program");
  if (getFirst().has_value() != getLast().has_value())
    return emitOpError("has only one end of its live range");
  if (getFirst() && (getPersistent() || *getLast() < *getFirst()))
    return emitOpError("has a live range that ends before it begins, or is persistent and needs none");
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (!isInstruction(&op) && !isa<BufferOp, InputOp, OutputOp>(op))
      return op.emitOpError("cannot stand in an ftx.program");
  return success();
}

/// Ports outlive a program's run, so their buffers are persistent.
template <typename PortOp> static LogicalResult verifyPort(PortOp port) {
  BufferOp buffer = definitionOf(port.getBuffer());
  if (buffer && !buffer.getPersistent())
    return port.emitOpError() << "'" << port.getName() << "' needs a persistent buffer";
  if (!isa<RankedTensorType>(port.getType()))
    return port.emitOpError() << "'" << port.getName() << "' needs a tensor type";
  if (buffer && buffer.getSizeKind() == SizeKind::constant && bytesOf(port.getType()) > buffer.getBytes())
    return port.emitOpError() << "'" << port.getName() << "' is larger than its buffer";
  return success();
}

LogicalResult InputOp::verify() { return verifyPort(*this); }
LogicalResult OutputOp::verify() { return verifyPort(*this); }

LogicalResult KernelOp::verify() {
  if (failed(verifyViews(*this, getIns(), getInViews(), "input")) ||
      failed(verifyViews(*this, getOuts(), getOutViews(), "output")))
    return failure();
  if (getStream() != Stream::compute)
    return emitOpError() << "runs on '" << stringifyStream(getStream()) << "'; kernels run on 'compute'";
  return success();
}

LogicalResult LaunchOp::verify() {
  if (failed(verifyViews(*this, getIns(), getInViews(), "input")) ||
      failed(verifyViews(*this, getOuts(), getOutViews(), "output")))
    return failure();
  if (getStream() != Stream::host_compute || getAfter() != Stream::compute)
    return emitOpError("runs on 'host_compute' and begins after 'compute'");
  for (OperandRange buffers : {getIns(), getOuts()})
    for (Value value : buffers)
      if (BufferOp buffer = definitionOf(value); buffer && !buffer.getHost())
        return emitOpError() << "touches buffer '" << buffer.getName() << "', which is not in host memory";
  return success();
}

LogicalResult StartOp::verify() {
  if (failed(verifyViews(*this, getIns(), getInViews(), "input")) ||
      failed(verifyViews(*this, getOuts(), getOutViews(), "output")))
    return failure();
  bool makesPairs = getTransfer() != Transfer::all_to_all;
  size_t wantedOuts = getTransfer() == Transfer::all_reduce ? 0 : getIns().size();
  if (makesPairs == getParameters().has_value())
    return emitOpError("says which parameters move where they make no pairs");
  if (!makesPairs)
    wantedOuts = getOuts().size();
  if (getIns().empty() || getOuts().size() != wantedOuts)
    return emitOpError() << "takes inputs and " << wantedOuts << " outputs";
  bool copies = getTransfer() == Transfer::copy;
  if (copies != (getStream() == Stream::h2d || getStream() == Stream::d2h) ||
      getStream() == Stream::compute || getStream() == Stream::host_compute || getAfter() != Stream::compute)
    return emitOpError("runs on a stream of its own (copies on h2d and d2h) and begins after 'compute'");
  if (copies == getAxis().has_value())
    return emitOpError(copies ? "is a copy, which goes over no axis" : "needs an axis");
  if (!copies && makesPairs && wantedOuts > 0 && !getUnit())
    return emitOpError("needs the unit that it is about");
  return success();
}
