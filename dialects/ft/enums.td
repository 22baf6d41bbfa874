// The enumerations of the ft dialect; those that plan.proto has too have its numbers, and ftx has them from here.
#ifndef FT_ENUMS
#define FT_ENUMS

include "mlir/IR/EnumAttr.td"

class Ft_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::ft";
}

// Only as a parameter of other attributes.
class Ft_EnumParameter<string name, string summary, list<I32EnumAttrCase> cases> : Ft_Enum<name, summary, cases> {
  let genSpecializedAttr = 0;
}

def Ft_InitKind : Ft_EnumParameter<"InitKind", "how a parameter starts", [
  I32EnumAttrCase<"normal", 0>, I32EnumAttrCase<"constant", 1>, I32EnumAttrCase<"uniform", 2>]>;

def Ft_OriginKind : Ft_EnumParameter<"OriginKind", "what a composite is of an op", [
  I32EnumAttrCase<"body", 0>, I32EnumAttrCase<"derivative", 1>]>;

def Ft_Axis : Ft_Enum<"Axis", "ranks that take part", [
  I32EnumAttrCase<"shard", 1>, I32EnumAttrCase<"replica", 2>, I32EnumAttrCase<"world", 3>]>;

// runtime/base/state_shape.h says which shapes that are.
def Ft_StateLayout : Ft_Enum<"StateLayout", "what a state has elements for", [
  I32EnumAttrCase<"elements", 0>, I32EnumAttrCase<"rows", 1>, I32EnumAttrCase<"columns", 2>, I32EnumAttrCase<"vectors", 3>]>;

def Ft_Extent : Ft_EnumParameter<"Extent", "what a rank holds of something that belongs to a unit", [
  I32EnumAttrCase<"whole", 0>, I32EnumAttrCase<"slice", 1>]>;

// never: parameters are whole at rest, nothing is gathered; until_backward: one gather, kept from the first use to
// the last; released: gathered anew for every stretch of the program that uses it.
def Ft_Gathered : Ft_EnumParameter<"Gathered", "what becomes of a gathered unit after its forward use", [
  I32EnumAttrCase<"never", 0>, I32EnumAttrCase<"until_backward", 1>, I32EnumAttrCase<"released", 2>]>;

// update: the host computes it, where the optimizer's state is.
def Ft_HostParts : I32BitEnum<"HostParts", "what of a unit is in host memory", [
  I32BitEnumCaseNone<"none">, I32BitEnumCaseBit<"parameters", 0>, I32BitEnumCaseBit<"optimizer", 1>,
  I32BitEnumCaseBit<"update", 2>]> {
  let cppNamespace = "::mlir::ft";
}

#endif // FT_ENUMS
