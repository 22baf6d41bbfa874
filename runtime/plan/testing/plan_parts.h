// Operands and instructions of plans that are made by hand, for tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace ft::plan_parts {

// A tensor inside a buffer; `offset` in bytes.
inline proto::Operand At(uint32_t buffer, proto::DType dtype, const std::vector<uint64_t>& shape,
                         uint64_t offset = 0) {
  proto::Operand operand;
  operand.set_buffer_plus_one(buffer + 1);
  operand.set_dtype(dtype);
  operand.set_offset(offset);
  for (uint64_t extent : shape) operand.add_shape(extent);
  return operand;
}

// All of a buffer, in fp32.
inline proto::Operand Whole(uint32_t buffer) {
  proto::Operand operand;
  operand.set_buffer_plus_one(buffer + 1);
  operand.set_dtype(proto::F32);
  operand.set_whole(true);
  return operand;
}

// This rank's slice of a whole, in fp32.
inline proto::Operand Own(uint32_t buffer) {
  proto::Operand operand;
  operand.set_buffer_plus_one(buffer + 1);
  operand.set_dtype(proto::F32);
  operand.set_own_slice(true);
  return operand;
}

inline proto::Instruction* Add(proto::Program* program, proto::Opcode opcode, proto::Stream stream,
                               std::initializer_list<uint32_t> after) {
  proto::Instruction* instruction = program->add_instructions();
  instruction->set_opcode(opcode);
  instruction->set_stream(stream);
  for (uint32_t earlier : after) instruction->add_after(earlier);
  return instruction;
}

inline proto::Instruction* Kernel(proto::Program* program, const std::string& name,
                                  std::initializer_list<proto::Operand> in,
                                  std::initializer_list<proto::Operand> out) {
  proto::Instruction* instruction = Add(program, proto::KERNEL, proto::COMPUTE, {});
  instruction->set_kernel(name);
  instruction->set_layer("bigram");
  for (const proto::Operand& operand : in) *instruction->add_in() = operand;
  for (const proto::Operand& operand : out) *instruction->add_out() = operand;
  return instruction;
}

inline void Float(proto::Instruction* instruction, const std::string& name, double value) {
  proto::Attribute* attribute = instruction->add_attributes();
  attribute->set_name(name);
  attribute->set_f(value);
}
inline void Int(proto::Instruction* instruction, const std::string& name, int64_t value) {
  proto::Attribute* attribute = instruction->add_attributes();
  attribute->set_name(name);
  attribute->set_i(value);
}

inline void AddPort(google::protobuf::RepeatedPtrField<proto::Port>* ports, const std::string& name,
                    const proto::Operand& operand) {
  proto::Port* port = ports->Add();
  port->set_name(name);
  *port->mutable_operand() = operand;
}

// Inputs "tokens" and "targets" of plan.batch() sequences, and the ids that they choose among.
inline void AddTokenInputs(proto::Plan& plan) {
  for (const bool targets : {false, true}) {
    proto::Input* input = plan.add_inputs();
    input->set_name(targets ? "targets" : "tokens");
    input->set_dtype(proto::I32);
    input->add_shape(plan.batch());
    input->add_shape(plan.seq_len());
    input->set_filling(targets ? proto::Input::TARGETS : proto::Input::TOKENS);
    input->set_ids_below(plan.vocab_size());
    input->set_may_be_left_out(targets);
    input->set_counted(targets);
  }
}

}  // namespace ft::plan_parts
