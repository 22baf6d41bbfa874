// Writes buffers and instructions of ftx.
#pragma once

#include "dialects/ftx/views.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace ft::compiler {

/// Of `count` things, each of which some rank has, the `index`-th of a rank's.
struct Share {
  int64_t index, count;

  bool operator==(const Share &) const = default;
};

struct BufferSpec {
  std::string name;
  mlir::ftx::MemoryClass memoryClass;
  int64_t bytes;                         // all of them, or per element for sizes that depend on a unit
  std::optional<int64_t> cudaBytes = {}; // of scratch, where it is another size there
  mlir::ftx::SizeKind kind = mlir::ftx::SizeKind::constant;
  mlir::FlatSymbolRefAttr unit = {};
  bool persistent = false;
  bool host = false; // in host memory
  mlir::StringAttr layer = {};
  std::optional<Share> share = {}; // and then of that kind
};

mlir::Value makeBuffer(mlir::OpBuilder &builder, mlir::Location loc, const BufferSpec &spec);

/// What an instruction belongs to.
struct Tag {
  mlir::Location loc;
  mlir::StringAttr layer;
  mlir::StringAttr phase;

  /// The location and the attributes of an op of the graph level.
  static Tag of(mlir::Operation *op);
};

struct KernelSpec {
  llvm::StringRef name;
  llvm::SmallVector<mlir::ftx::View> ins = {};
  llvm::SmallVector<mlir::ftx::View> outs = {};
  mlir::Value workspace = {};
  llvm::SmallVector<mlir::NamedAttribute> attributes = {};
  uint64_t flops = 0;
  uint64_t modelFlops = 0;
  uint64_t bytes = 0;
};

struct TransferSpec {
  mlir::ftx::Transfer transfer;
  mlir::ftx::Stream stream;
  std::optional<mlir::ft::Axis> axis = {}; // none for copies
  mlir::FlatSymbolRefAttr unit = {};
  mlir::ftx::View from = {};
  mlir::ftx::View to = {}; // absent for all_reduce
};

/// Fills one ftx.program from its first instruction to its last.
class ProgramBuilder {
public:
  /// Makes the program at the place of `builder`.
  ProgramBuilder(mlir::OpBuilder builder, mlir::Location loc, llvm::StringRef name);

  /// A buffer of the program. Its name gets a number when it is taken.
  mlir::Value buffer(mlir::Location loc, BufferSpec spec);

  void kernel(const KernelSpec &spec, const Tag &tag);
  /// Starts a kernel of the host, which has no workspace, and waits for it.
  void launch(const KernelSpec &spec, const Tag &tag);
  void copy(const mlir::ftx::View &from, const mlir::ftx::View &to, const Tag &tag);

  /// Starts a transfer and waits for it.
  void transfer(const TransferSpec &spec, const Tag &tag);
  /// The same of an all_to_all: `parameters`, by name, for each view that is a share.
  void allToAll(llvm::ArrayRef<mlir::ftx::View> from, llvm::ArrayRef<mlir::ftx::View> to,
                mlir::ArrayAttr parameters, const Tag &tag);
  void release(mlir::Value buffer, const Tag &tag);

  /// Ports stand before the first instruction and after the last.
  void input(llvm::StringRef name, const mlir::ftx::View &view);
  void output(llvm::StringRef name, const mlir::ftx::View &view, bool counted = false);

private:
  mlir::OpBuilder builder;
  mlir::Operation *lastInput = nullptr;
  llvm::StringMap<unsigned> names;
};

} // namespace ft::compiler
