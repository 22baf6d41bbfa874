#include "runtime/cost/instruction_kind.h"

namespace ft {

std::string KindOf(const proto::Instruction& instruction) {
  switch (instruction.opcode()) {
    case proto::ALL_GATHER:
      return "all_gather";
    case proto::REDUCE_SCATTER:
      return "reduce_scatter";
    case proto::ALL_REDUCE:
      return "all_reduce";
    case proto::ALL_TO_ALL:
      return "all_to_all";
    case proto::COPY:
      return instruction.stream() == proto::H2D ? "copy to the device" : "copy to the host";
    default:
      return instruction.kernel() + (instruction.stream() == proto::HOST_COMPUTE ? " on the host" : "");
  }
}

}  // namespace ft
