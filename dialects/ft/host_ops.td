// Activations in host memory.
#ifndef FT_HOST_OPS
#define FT_HOST_OPS

include "dialects/ft/op_base.td"

def Ft_OffloadOp : Ft_Op<"offload", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies an activation to host memory";
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_HostType:$there);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` qualified(type($there))";
}

def Ft_ReloadOp : Ft_Op<"reload", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies an activation back from host memory";
  let arguments = (ins Ft_HostType:$there);
  let results = (outs Ft_Tensor:$x);
  let assemblyFormat = "$there attr-dict `:` qualified(type($there)) `->` type($x)";
}

#endif // FT_HOST_OPS
