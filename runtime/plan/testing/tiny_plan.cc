#include "runtime/plan/testing/tiny_plan.h"

#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "runtime/base/flat_layout.h"
#include "runtime/base/workspace.h"
#include "runtime/plan/describe.h"

namespace ft {
namespace {

constexpr uint64_t kBlock = kBlockElements;

class Builder {
 public:
  explicit Builder(const TinyPlanOptions& options) : options_(options) {
    table_elements_ = uint64_t(options.vocab) * options.hidden;
    head_offset_ = (table_elements_ + kBlock - 1) / kBlock * kBlock;
    elements_ = 2 * head_offset_;
  }

  proto::Plan Build() {
    Describe();
    init_ = plan_.add_programs();
    train_ = plan_.add_programs();
    init_->set_name("init");
    train_->set_name("train_step");
    AddPersistent();
    BuildInit();
    BuildTrain();
    return plan_;
  }

 private:
  void Describe() {
    plan_.set_model("bigram");
    plan_.set_producer("test");
    plan_.set_strategy(options_.shard ? "full_shard" : "no_shard");
    plan_.set_batch(options_.batch);
    plan_.set_seq_len(options_.seq_len);
    plan_.set_vocab_size(options_.vocab);
    plan_.set_block_elements(kBlock);
    plan_.set_shards_parameters(options_.shard);
    plan_.set_shards_gradients(options_.shard);
    plan_.set_shards_optimizer(options_.shard);
    proto::Unit* unit = plan_.add_units();
    unit->set_name("bigram");
    unit->set_elements(elements_);
    for (const bool head : {false, true}) {
      proto::Parameter* parameter = plan_.add_parameters();
      parameter->set_name(head ? "head" : "table");
      parameter->add_shape(options_.vocab);
      parameter->add_shape(options_.hidden);
      parameter->set_offset(head ? head_offset_ : 0);
      parameter->set_decay(true);
    }
  }

  // --- buffers ---

  uint32_t Buffer(const std::string& name, proto::MemoryClass kind, proto::SizeExpr::Kind size,
                  uint64_t value) {
    proto::Buffer* buffer = plan_.add_buffers();
    buffer->set_name(name);
    buffer->set_class_(kind);
    buffer->mutable_size()->set_kind(size);
    buffer->mutable_size()->set_value(value);
    buffer->set_persistent(true);
    return plan_.buffers_size() - 1;
  }
  uint32_t Constant(const std::string& name, proto::MemoryClass kind, uint64_t bytes) {
    return Buffer(name, kind, proto::SizeExpr::CONSTANT, bytes);
  }
  uint32_t Slice(const std::string& name, proto::MemoryClass kind) {
    return Buffer(name, kind, proto::SizeExpr::UNIT_SLICE, 4);
  }
  uint32_t Full(const std::string& name, proto::MemoryClass kind) {
    return Buffer(name, kind, proto::SizeExpr::UNIT_FULL, 4);
  }

  void Lives(uint32_t buffer, uint32_t first, uint32_t last) {
    proto::Buffer* b = plan_.mutable_buffers(buffer);
    b->set_persistent(false);
    b->set_program(1);
    b->set_first(first);
    b->set_last(last);
  }

  // --- operands ---

  static proto::Operand At(uint32_t buffer, proto::DType dtype, const std::vector<uint64_t>& shape,
                           uint64_t offset = 0) {
    proto::Operand operand;
    operand.set_buffer_plus_one(buffer + 1);
    operand.set_dtype(dtype);
    operand.set_offset(offset);
    for (uint64_t extent : shape) operand.add_shape(extent);
    return operand;
  }
  static proto::Operand Whole(uint32_t buffer) {
    proto::Operand operand;
    operand.set_buffer_plus_one(buffer + 1);
    operand.set_dtype(proto::F32);
    operand.set_whole(true);
    return operand;
  }
  proto::Operand Table(uint32_t flat) const { return At(flat, proto::F32, Matrix()); }
  proto::Operand Head(uint32_t flat) const { return At(flat, proto::F32, Matrix(), head_offset_ * 4); }
  std::vector<uint64_t> Matrix() const { return {uint64_t(options_.vocab), uint64_t(options_.hidden)}; }
  std::vector<uint64_t> Ids() const { return {uint64_t(options_.batch), uint64_t(options_.seq_len)}; }
  std::vector<uint64_t> Hidden() const {
    return {uint64_t(options_.batch), uint64_t(options_.seq_len), uint64_t(options_.hidden)};
  }

  // --- instructions ---

  static proto::Instruction* Add(proto::Program* program, proto::Opcode opcode, proto::Stream stream,
                                 std::initializer_list<uint32_t> after) {
    proto::Instruction* instruction = program->add_instructions();
    instruction->set_opcode(opcode);
    instruction->set_stream(stream);
    for (uint32_t earlier : after) instruction->add_after(earlier);
    return instruction;
  }
  static proto::Instruction* Kernel(proto::Program* program, const std::string& name,
                                    std::initializer_list<proto::Operand> in,
                                    std::initializer_list<proto::Operand> out) {
    proto::Instruction* instruction = Add(program, proto::KERNEL, proto::COMPUTE, {});
    instruction->set_kernel(name);
    instruction->set_layer("bigram");
    for (const proto::Operand& operand : in) *instruction->add_in() = operand;
    for (const proto::Operand& operand : out) *instruction->add_out() = operand;
    return instruction;
  }
  static void Float(proto::Instruction* instruction, const std::string& name, double value) {
    proto::Attribute* attribute = instruction->add_attributes();
    attribute->set_name(name);
    attribute->set_f(value);
  }
  static void Int(proto::Instruction* instruction, const std::string& name, int64_t value) {
    proto::Attribute* attribute = instruction->add_attributes();
    attribute->set_name(name);
    attribute->set_i(value);
  }
  static void Ints(proto::Instruction* instruction, const std::string& name,
                   const std::vector<int64_t>& values) {
    proto::Attribute* attribute = instruction->add_attributes();
    attribute->set_name(name);
    for (int64_t value : values) attribute->mutable_ints()->add_values(value);
  }
  proto::Instruction* Collective(proto::Opcode opcode, proto::Stream stream,
                                 std::initializer_list<uint32_t> after, const proto::Operand& in) {
    proto::Instruction* instruction = Add(train_, opcode, stream, after);
    instruction->set_axis(opcode == proto::ALL_REDUCE ? proto::AXIS_WORLD : proto::AXIS_SHARD);
    *instruction->add_in() = in;
    return instruction;
  }

  static void AddPort(google::protobuf::RepeatedPtrField<proto::Port>* ports, const std::string& name,
                      const proto::Operand& operand) {
    proto::Port* port = ports->Add();
    port->set_name(name);
    *port->mutable_operand() = operand;
  }

  void AddPersistent() {
    const uint64_t ids = uint64_t(options_.batch) * options_.seq_len * 4;
    tokens_ = Constant("tokens", proto::IO, ids);
    targets_ = Constant("targets", proto::IO, ids);
    lr_ = Constant("lr", proto::IO, 4);
    step_ = Constant("step", proto::IO, 8);
    rng_ = Constant("rng", proto::IO, 24);
    loss_ = Constant("loss", proto::IO, 4);
    norm_ = Constant("grad_norm", proto::IO, 4);
    parameters_ = Slice("parameters", proto::PARAMETERS);
    exp_avg_ = Slice("exp_avg", proto::OPTIMIZER_STATE);
    exp_avg_sq_ = Slice("exp_avg_sq", proto::OPTIMIZER_STATE);
    proto::Plan::UnitBuffers* buffers = plan_.add_unit_buffers();
    buffers->set_parameters_plus_one(parameters_ + 1);
    buffers->set_exp_avg_plus_one(exp_avg_ + 1);
    buffers->set_exp_avg_sq_plus_one(exp_avg_sq_ + 1);
  }

  void BuildInit() {
    AddPort(init_->mutable_inputs(), "rng", At(rng_, proto::I64, {3}));
    for (uint32_t buffer : {parameters_, exp_avg_, exp_avg_sq_})
      Float(Kernel(init_, "fill", {}, {Whole(buffer)}), "value", 0.0);
    for (const bool head : {false, true}) {
      proto::Instruction* init =
          Kernel(init_, "init_normal", {At(rng_, proto::I64, {3})}, {Whole(parameters_)});
      Int(init, "begin", head ? head_offset_ : 0);
      Int(init, "end", (head ? head_offset_ : 0) + table_elements_);
      Float(init, "value", 0.2);
      Int(init, "stream", head);
    }
  }

  void BuildTrain() {
    AddPort(train_->mutable_inputs(), "tokens", At(tokens_, proto::I32, Ids()));
    AddPort(train_->mutable_inputs(), "targets", At(targets_, proto::I32, Ids()));
    AddPort(train_->mutable_inputs(), "lr", At(lr_, proto::F32, {}));
    AddPort(train_->mutable_inputs(), "step", At(step_, proto::I64, {}));
    AddPort(train_->mutable_outputs(), "loss", At(loss_, proto::F32, {}));
    AddPort(train_->mutable_outputs(), "grad_norm", At(norm_, proto::F32, {}));
    BuildForwardBackward();
    BuildReduction();
    BuildOptimizer();
  }

  void BuildForwardBackward() {
    const uint64_t rows = uint64_t(options_.batch) * options_.seq_len;
    uint32_t weights = parameters_;
    if (options_.shard) {
      weights = Full("gathered", proto::GATHERED);
      proto::Instruction* gather = Collective(proto::ALL_GATHER, proto::GATHER, {}, Whole(parameters_));
      *gather->add_out() = Whole(weights);
      gather->set_unit_plus_one(1);
      Add(train_, proto::WAIT, proto::COMPUTE, {0});
    }
    const uint32_t first = train_->instructions_size();
    const uint32_t x = Constant("x", proto::ACTIVATIONS, rows * options_.hidden * 4);
    const uint32_t dx = Constant("dx", proto::ACTIVATIONS, rows * options_.hidden * 4);
    const uint32_t scratch =
        Constant("scratch", proto::WORKSPACE, LinearCrossEntropyWorkspace(rows, options_.vocab));
    flat_ = options_.shard ? Full("flat_gradient", proto::STAGING) : Slice("flat_gradient", proto::GRADIENTS);
    Kernel(train_, "embedding", {At(tokens_, proto::I32, Ids()), Table(weights)},
           {At(x, proto::F32, Hidden())});
    proto::Instruction* head = Kernel(
        train_, "linear_cross_entropy_loss_grad",
        {At(x, proto::F32, Hidden()), Head(weights), At(targets_, proto::I32, Ids()), proto::Operand()},
        {At(loss_, proto::F32, {}), At(dx, proto::F32, Hidden()), Head(flat_)});
    Float(head, "dloss", 1.0);
    *head->mutable_workspace() =
        At(scratch, proto::F32, {uint64_t(LinearCrossEntropyWorkspace(rows, options_.vocab)) / 4});
    if (options_.shard) {
      *Add(train_, proto::RELEASE, proto::COMPUTE, {})->add_in() = Whole(weights);
      Lives(weights, 0, train_->instructions_size() - 1);
    }
    const uint32_t table = train_->instructions_size();
    Kernel(train_, "embedding_grad",
           {At(tokens_, proto::I32, Ids()), At(dx, proto::F32, Hidden()), proto::Operand()}, {Table(flat_)});
    Ints(Kernel(train_, "zero_padding", {}, {Whole(flat_)}), "segments",
         {0, int64_t(table_elements_), int64_t(head_offset_), int64_t(head_offset_ + table_elements_)});
    Lives(x, first, first + 1);
    Lives(scratch, first + 1, first + 1);
    Lives(dx, first + 1, table);
    Lives(flat_, first + 1, table + 2);
  }

  void BuildReduction() {
    const uint32_t packed = train_->instructions_size() - 1;
    if (options_.shard) {
      gradient_ = Slice("gradient", proto::GRADIENTS);
      proto::Instruction* scatter = Collective(proto::REDUCE_SCATTER, proto::REDUCE, {packed}, Whole(flat_));
      *scatter->add_out() = Whole(gradient_);
      scatter->set_unit_plus_one(1);
    } else {
      gradient_ = flat_;
      Collective(proto::ALL_REDUCE, proto::REDUCE, {packed}, Whole(flat_))->set_unit_plus_one(1);
    }
    Collective(proto::ALL_REDUCE, proto::REDUCE, {packed}, At(loss_, proto::F32, {}));
    Add(train_, proto::WAIT, proto::COMPUTE, {packed + 1, packed + 2});
  }

  void BuildOptimizer() {
    const uint32_t reduced = train_->instructions_size() - 2;
    const uint32_t acc = Constant("accumulator", proto::IO, kAccumulatorWords * 8);
    const uint32_t coefficient = Constant("coefficient", proto::IO, 4);
    const uint32_t sum = train_->instructions_size();
    Kernel(train_, "sum_squares", {Whole(gradient_), proto::Operand()},
           {At(acc, proto::I64, {kAccumulatorWords})});
    if (options_.shard) {
      Collective(proto::ALL_REDUCE, proto::REDUCE, {sum}, At(acc, proto::I64, {kAccumulatorWords}));
      Add(train_, proto::WAIT, proto::COMPUTE, {sum + 1});
    }
    Float(Kernel(train_, "clip_coefficient", {At(acc, proto::I64, {kAccumulatorWords})},
                 {At(norm_, proto::F32, {}), At(coefficient, proto::F32, {})}),
          "max_norm", 1.0);
    proto::Instruction* adamw = Kernel(train_, "adamw",
                                       {Whole(gradient_), At(coefficient, proto::F32, {}),
                                        At(lr_, proto::F32, {}), At(step_, proto::I64, {})},
                                       {Whole(parameters_), Whole(exp_avg_), Whole(exp_avg_sq_)});
    Float(adamw, "beta1", 0.9);
    Float(adamw, "beta2", 0.95);
    Float(adamw, "eps", 1e-8);
    Float(adamw, "weight_decay", 0.1);
    Ints(adamw, "segments",
         {0, int64_t(table_elements_), 1, int64_t(head_offset_), int64_t(head_offset_ + table_elements_), 1});
    const uint32_t last = train_->instructions_size() - 1;
    Lives(acc, sum, last);
    Lives(coefficient, sum, last);
    Lives(gradient_, options_.shard ? reduced - 1 : plan_.buffers(flat_).first(), last);
  }

  const TinyPlanOptions options_;
  uint64_t table_elements_, head_offset_, elements_;
  proto::Plan plan_;
  proto::Program* init_ = nullptr;
  proto::Program* train_ = nullptr;
  uint32_t tokens_, targets_, lr_, step_, rng_, loss_, norm_, parameters_, exp_avg_, exp_avg_sq_, flat_,
      gradient_;
};

}  // namespace

proto::Plan TinyPlan(const TinyPlanOptions& options) { return Builder(options).Build(); }

uint32_t BufferIndex(const proto::Plan& plan, const std::string& name) {
  for (int b = 0; b < plan.buffers_size(); ++b) {
    if (plan.buffers(b).name() == name) return b;
  }
  std::abort();
}

int InstructionIndex(const proto::Plan& plan, const std::string& title) {
  const proto::Program& train = plan.programs(1);
  for (int i = 0; i < train.instructions_size(); ++i) {
    if (InstructionTitle(plan, train.instructions(i)).rfind(title, 0) == 0) return i;
  }
  std::abort();
}

}  // namespace ft
