// Ops that draw random numbers: their streams, and dropout.
#include "dialects/ft/dialect.h"

namespace mlir::ft {

SmallVector<int64_t> RandomBitsOp::getDrawnStreams() { return {static_cast<int64_t>(getStream())}; }
void RandomBitsOp::setDrawnStreams(ArrayRef<int64_t> streams) { setStream(streams[0]); }

SmallVector<int64_t> SampleBitsOp::getDrawnStreams() { return {static_cast<int64_t>(getStream())}; }
void SampleBitsOp::setDrawnStreams(ArrayRef<int64_t> streams) { setStream(streams[0]); }

SmallVector<int64_t> DropoutOp::getDrawnStreams() { return {static_cast<int64_t>(getStream())}; }
void DropoutOp::setDrawnStreams(ArrayRef<int64_t> streams) { setStream(streams[0]); }
bool DropoutOp::hasDropout() { return true; }

void DropoutOp::removeDropout() {
  replaceAllUsesWith(getX());
  erase();
}

//===----------------------------------------------------------------------===//
// Attention, of whose probabilities some may be dropped
//===----------------------------------------------------------------------===//

namespace {

template <typename Attention> SmallVector<int64_t> drawnStreamsOf(Attention op) {
  if (std::optional<uint64_t> stream = op.getStream())
    return {static_cast<int64_t>(*stream)};
  return {};
}

template <typename Attention> void setDrawnStreamsOf(Attention op, ArrayRef<int64_t> streams) {
  if (!streams.empty())
    op.setStream(static_cast<uint64_t>(streams[0]));
}

template <typename Attention> void removeDropoutOf(Attention op) {
  op.getRngMutable().clear();
  op.removeRateAttr();
  op.removeStreamAttr();
}

} // namespace

SmallVector<int64_t> AttentionOp::getDrawnStreams() { return drawnStreamsOf(*this); }
void AttentionOp::setDrawnStreams(ArrayRef<int64_t> streams) { setDrawnStreamsOf(*this, streams); }
bool AttentionOp::hasDropout() { return getRate().has_value(); }
void AttentionOp::removeDropout() { removeDropoutOf(*this); }

SmallVector<int64_t> AttentionGradOp::getDrawnStreams() { return drawnStreamsOf(*this); }
void AttentionGradOp::setDrawnStreams(ArrayRef<int64_t> streams) { setDrawnStreamsOf(*this, streams); }
bool AttentionGradOp::hasDropout() { return getRate().has_value(); }
void AttentionGradOp::removeDropout() { removeDropoutOf(*this); }

SmallVector<int64_t> QkvAttentionOp::getDrawnStreams() { return drawnStreamsOf(*this); }
void QkvAttentionOp::setDrawnStreams(ArrayRef<int64_t> streams) { setDrawnStreamsOf(*this, streams); }
bool QkvAttentionOp::hasDropout() { return getRate().has_value(); }
void QkvAttentionOp::removeDropout() { removeDropoutOf(*this); }

SmallVector<int64_t> QkvAttentionGradOp::getDrawnStreams() { return drawnStreamsOf(*this); }
void QkvAttentionGradOp::setDrawnStreams(ArrayRef<int64_t> streams) { setDrawnStreamsOf(*this, streams); }
bool QkvAttentionGradOp::hasDropout() { return getRate().has_value(); }
void QkvAttentionGradOp::removeDropout() { removeDropoutOf(*this); }

} // namespace mlir::ft
