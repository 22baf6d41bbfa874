// The only list of ops of the schedule level. It maps one to one onto plan.proto: what stands here is what runs.
#ifndef FTX_OPS
#define FTX_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "dialects/ft/enums.td"
include "dialects/ftx/enums.td"
include "dialects/ftx/interfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Ftx_Dialect : Dialect {
  let name = "ftx";
  let cppNamespace = "::mlir::ftx";
  let summary = "A training job as static schedules over buffers";
  let description = [{
    A scheduled module holds `ft.unit` and `ft.parameter` symbols, persistent buffers, `ftx.state`s
    that say which of them hold the state of a unit, and programs. A program is one list of instructions, each on a stream; the order of the list
    is a valid order of execution. Buffers inside a program are live from their first instruction to their
    last.

    The rules that make live ranges by position in the list sound although streams run at the same time: what runs
    beside `compute`, a transfer or a kernel of the host, begins after all that stands before it on `compute`; all of it is
    waited for on `compute`; no instruction between a start and its wait touches its buffers (both may read).
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

def Ftx_BufferType : TypeDef<Ftx_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Memory with a size that may depend on the mesh";
}

def Ftx_TokenType : TypeDef<Ftx_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "A transfer or a kernel of the host that has been started";
}

def Ftx_ViewAttr : AttrDef<Ftx_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "Where an operand lies in its buffer";
  let description = [{
    `offset` in bytes. `type`: a tensor type; an element type for the whole buffer as one dimension, or for this
    rank's slice of it (`own`); `none` for an optional operand that is absent and has no buffer.
  }];
  let parameters = (ins "int64_t":$offset, "::mlir::Type":$type, DefaultValuedParameter<"bool", "false">:$own);
  let builders = [AttrBuilder<(ins "int64_t":$offset, "::mlir::Type":$type), [{
    return $_get($_ctxt, offset, type, false);
  }]>];
  let assemblyFormat = "`<` $offset `,` $type (`,` $own^)? `>`";
}

class Ftx_Op<string mnemonic, list<Trait> traits = []> : Op<Ftx_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Buffers and programs
//===----------------------------------------------------------------------===//

def Ftx_BufferOp : Ftx_Op<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A buffer";
  let description = [{
    `%b = ftx.buffer "lse" activations constant(4096) live [12, 40]`

    The size is constant(bytes), unit_full(@unit, bytes per element) or unit_slice(@unit, bytes per
    element), or share(bytes) `of(index, count)`: where the ranks of the shard axis, each in turn, get an `index`-th of `count` things, else none.
    `cuda(bytes)`: the size on CUDA devices, of scratch whose kernel wants another one there. `host`: in host
    memory, which only copies and ftx.launch touch. A `persistent` buffer stands outside of programs and keeps its contents; any other stands in
    its program, and `live` (set by live-range analysis) gives the first and last instruction, counted from
    0, during which it is needed.
  }];
  let arguments = (ins StrAttr:$name, Ftx_MemoryClass:$memory_class, Ftx_SizeKind:$size_kind,
                       OptionalAttr<FlatSymbolRefAttr>:$unit, I64Attr:$bytes, OptionalAttr<I64Attr>:$cuda_bytes, UnitAttr:$host, UnitAttr:$persistent,
                       OptionalAttr<I64Attr>:$first, OptionalAttr<I64Attr>:$last, OptionalAttr<StrAttr>:$layer,
                       OptionalAttr<I64Attr>:$share_index, OptionalAttr<I64Attr>:$share_count);
  let results = (outs Ftx_BufferType:$buffer);
  let assemblyFormat = [{
    $name $memory_class $size_kind `(` ($unit^ `,` ` `)? `` $bytes `)`
    (`of` `(` $share_index^ `,` $share_count `)`)? (`cuda` `(` $cuda_bytes^ `)`)? (`host` $host^)? (`persistent` $persistent^)? (`live` ` ` `[` $first^ `,` $last `]`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Ftx_StateOp : Ftx_Op<"state"> {
  let summary = "Says which persistent flat buffer holds a part of a unit's state";
  let description = [{
    `ftx.state @h "exp_avg" %h.exp_avg`

    Roles: parameters, master, gradients, accumulated, and those of the optimizer.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, StrAttr:$role, Ftx_BufferType:$buffer,
                       DefaultValuedAttr<Ft_StateLayout, "::mlir::ft::StateLayout::elements">:$layout);
  let assemblyFormat = "$unit $role $buffer (`by` $layout^)? attr-dict";
}

def Ftx_ProgramOp : Ftx_Op<"program", [Symbol, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "One schedule: init, train_micro, train_step, eval_step, sample_step";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name $body attr-dict";
  let hasRegionVerifier = 1;
}

class Ftx_PortOp<string mnemonic> : Ftx_Op<mnemonic, [HasParent<"ProgramOp">]> {
  let arguments = (ins StrAttr:$name, Ftx_BufferType:$buffer, TypeAttr:$type);
  let assemblyFormat = "$name $buffer `:` $type attr-dict";
  let hasVerifier = 1;
}

def Ftx_InputOp : Ftx_PortOp<"input"> {
  let summary = "A buffer that the executor writes before the program runs";
}

def Ftx_OutputOp : Ftx_PortOp<"output"> {
  let summary = "A buffer that the executor reads after the program has run";
  let description = [{ `counted`: of evaluation, a mean over the targets that the loss counts, not over the batch. }];
  let arguments = (ins StrAttr:$name, Ftx_BufferType:$buffer, TypeAttr:$type, UnitAttr:$counted);
  let assemblyFormat = "$name $buffer `:` $type (`counted` $counted^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

def Ftx_KernelOp : Ftx_Op<"kernel", [AttrSizedOperandSegments, HasParent<"ProgramOp">]> {
  let summary = "Runs a kernel";
  let description = [{
    `ftx.kernel "matmul" on compute ins(%x : tensor<4x8xf32>, %u[4096] : tensor<8x2xf32>, none) outs(%y : tensor<4x2xf32>)`

    Operands are views of buffers: an offset in bytes and a type, `whole f32` for all of a buffer, `own f32` for
    this rank's slice of a whole, `none` for an absent optional operand. `with` holds the attributes of the kernel.
    `model_flops` are those of `flops` that model FLOPs count.
  }];
  let arguments = (ins StrAttr:$kernel, Ftx_Stream:$stream, Variadic<Ftx_BufferType>:$ins, ArrayAttr:$in_views,
                       Variadic<Ftx_BufferType>:$outs, ArrayAttr:$out_views, Optional<Ftx_BufferType>:$workspace,
                       OptionalAttr<DictionaryAttr>:$kernel_attributes, OptionalAttr<StrAttr>:$layer,
                       OptionalAttr<StrAttr>:$phase, OptionalAttr<I64Attr>:$flops, OptionalAttr<I64Attr>:$model_flops,
                       OptionalAttr<I64Attr>:$bytes);
  let assemblyFormat = [{
    $kernel `on` $stream `ins` `(` custom<Views>($ins, $in_views) `)` `outs` `(` custom<Views>($outs, $out_views) `)`
    (`workspace` `(` $workspace^ `)`)? (`with` $kernel_attributes^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Ftx_LaunchOp : Ftx_Op<"launch", [AttrSizedOperandSegments, HasParent<"ProgramOp">, Ftx_BesideOpInterface]> {
  let summary = "Starts a kernel in host memory";
  let description = [{
    `%t = ftx.launch "update" on host_compute after compute ins(%g : whole f32, %s : tensor<2x9xf32>) outs(%p : whole f32)`

    The host's processor runs it, beside `compute`, on buffers in host memory alone. It begins when all that stands before it on the stream `after` is done.
    The rest is as in ftx.kernel.
  }];
  let arguments = (ins StrAttr:$kernel, Ftx_Stream:$stream, Ftx_Stream:$after, Variadic<Ftx_BufferType>:$ins, ArrayAttr:$in_views,
                       Variadic<Ftx_BufferType>:$outs, ArrayAttr:$out_views, OptionalAttr<DictionaryAttr>:$kernel_attributes,
                       OptionalAttr<StrAttr>:$layer, OptionalAttr<StrAttr>:$phase, OptionalAttr<I64Attr>:$flops,
                       OptionalAttr<I64Attr>:$bytes, OptionalAttr<StrAttr>:$reason);
  let results = (outs Ftx_TokenType:$token);
  let assemblyFormat = [{
    $kernel `on` $stream `after` $after `ins` `(` custom<Views>($ins, $in_views) `)` `outs` `(` custom<Views>($outs, $out_views) `)`
    (`with` $kernel_attributes^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Ftx_StartOp : Ftx_Op<"start", [AttrSizedOperandSegments, HasParent<"ProgramOp">, Ftx_BesideOpInterface]> {
  let summary = "Starts a transfer";
  let description = [{
    `%t = ftx.start all_gather on gather after compute over shard @u from (%slice : whole f32) to (%full : whole f32)`
    `%t = ftx.start copy on h2d after compute from (%there : whole f32) to (%here : whole f32)`

    It begins when all that stands before it on the stream `after` is done. Input i moves to output i; several
    pairs are a bucket that shares one latency. all_gather: from slices to wholes, the slice may be the `own`
    one of the whole. reduce_scatter: the other way round. all_reduce: `from` in place, no `to`. Reductions
    sum over the axis. all_to_all: `parameters` from slices of units to buffers of kind share, whole, or back; it makes no pairs. copy: between host and device memory, on h2d or d2h, over no axis.
  }];
  let arguments = (ins Ftx_Transfer:$transfer, Ftx_Stream:$stream, Ftx_Stream:$after, OptionalAttr<Ft_Axis>:$axis,
                       OptionalAttr<FlatSymbolRefAttr>:$unit,
                       Variadic<Ftx_BufferType>:$ins, ArrayAttr:$in_views,
                       Variadic<Ftx_BufferType>:$outs, ArrayAttr:$out_views, OptionalAttr<StrAttr>:$layer,
                       OptionalAttr<StrAttr>:$phase, OptionalAttr<StrAttr>:$reason, OptionalAttr<ArrayAttr>:$parameters);
  let results = (outs Ftx_TokenType:$token);
  let assemblyFormat = [{
    $transfer `on` $stream `after` $after (`over` $axis^)? ($unit^)?
    `from` ` ` `(` custom<Views>($ins, $in_views) `)` `to` ` ` `(` custom<Views>($outs, $out_views) `)` attr-dict
  }];
  let hasVerifier = 1;
}

def Ftx_WaitOp : Ftx_Op<"wait", [HasParent<"ProgramOp">]> {
  let summary = "A stream waits for a transfer or a kernel of the host";
  let arguments = (ins Ftx_TokenType:$token, Ftx_Stream:$stream);
  let assemblyFormat = "$token `on` $stream attr-dict";
}

def Ftx_ReleaseOp : Ftx_Op<"release", [HasParent<"ProgramOp">]> {
  let summary = "Marks where a gathered unit is given up; runs nothing";
  let arguments = (ins Ftx_BufferType:$buffer, OptionalAttr<StrAttr>:$layer, OptionalAttr<StrAttr>:$phase);
  let assemblyFormat = "$buffer attr-dict";
}

#endif // FTX_OPS
