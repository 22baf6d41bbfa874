#include "runtime/plan/testing/tiny_plan.h"

#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/workspace.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_clusters.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/update_body.h"

namespace ft {
namespace {

using namespace plan_parts;

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
    *plan_.mutable_target() = RoundTarget();
    plan_.set_strategy(!options_.shard             ? "no_shard"
                       : options_.two_axes         ? "hybrid_shard"
                       : options_.whole_parameters ? "zero1"
                                                   : "full_shard");
    plan_.set_two_axes(options_.two_axes);
    plan_.set_batch(options_.batch);
    plan_.set_seq_len(options_.seq_len);
    plan_.set_vocab_size(options_.vocab);
    AddTokenInputs(plan_);
    plan_.set_block_elements(kBlock);
    plan_.set_shards_parameters(Gathers());
    plan_.set_shards_gradients(Gathers());
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

  // Whether parameters are slices at rest.
  bool Gathers() const { return options_.shard && !options_.whole_parameters; }

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

  void Lives(uint32_t buffer, uint32_t first, uint32_t last, uint32_t program = 1) {
    proto::Buffer* b = plan_.mutable_buffers(buffer);
    b->set_persistent(false);
    b->set_program(program);
    b->set_first(first);
    b->set_last(last);
  }

  // Of `kernel`, which has just been added to train_step, on either device.
  void Scratch(proto::Instruction* kernel, const std::string& name, int64_t cpu_bytes, int64_t cuda_bytes) {
    const uint32_t buffer = Constant(name, proto::WORKSPACE, cpu_bytes);
    plan_.mutable_buffers(buffer)->set_cuda_bytes(cuda_bytes);
    *kernel->mutable_workspace() = Whole(buffer);
    const uint32_t now = train_->instructions_size() - 1;
    Lives(buffer, now, now);
  }

  // --- operands ---

  proto::Operand Table(uint32_t flat) const { return At(flat, proto::F32, Matrix()); }
  proto::Operand Head(uint32_t flat) const { return At(flat, proto::F32, Matrix(), head_offset_ * 4); }
  std::vector<uint64_t> Matrix() const { return {uint64_t(options_.vocab), uint64_t(options_.hidden)}; }
  std::vector<uint64_t> Ids() const { return {uint64_t(options_.batch), uint64_t(options_.seq_len)}; }
  std::vector<uint64_t> Hidden() const {
    return {uint64_t(options_.batch), uint64_t(options_.seq_len), uint64_t(options_.hidden)};
  }

  // --- instructions ---

  proto::Instruction* Collective(proto::Opcode opcode, proto::Stream stream,
                                 std::initializer_list<uint32_t> after, const proto::Operand& in) {
    proto::Instruction* instruction = Add(train_, opcode, stream, after);
    instruction->set_axis(opcode == proto::ALL_REDUCE ? proto::AXIS_WORLD : proto::AXIS_SHARD);
    *instruction->add_in() = in;
    return instruction;
  }

  // Both moments at once, between host and device. Returns the index of the wait for it.
  uint32_t CopyMoments(proto::Program* program, proto::Stream stream, uint32_t after,
                       const std::vector<uint32_t>& from, const std::vector<uint32_t>& to) {
    proto::Instruction* copy = Add(program, proto::COPY, stream, {after});
    for (uint32_t buffer : from) *copy->add_in() = Whole(buffer);
    for (uint32_t buffer : to) *copy->add_out() = Whole(buffer);
    const uint32_t start = program->instructions_size() - 1;
    Add(program, proto::WAIT, proto::COMPUTE, {start});
    return start + 1;
  }

  // After all that stands before it. Returns the index of the wait for it.
  uint32_t Copy(proto::Program* program, proto::Stream stream, const std::vector<proto::Operand>& from,
                const std::vector<proto::Operand>& to) {
    const uint32_t start = program->instructions_size();
    proto::Instruction* copy = Add(program, proto::COPY, stream, {start - 1});
    for (const proto::Operand& operand : from) *copy->add_in() = operand;
    for (const proto::Operand& operand : to) *copy->add_out() = operand;
    Add(program, proto::WAIT, proto::COMPUTE, {start});
    return start + 1;
  }

  // What this rank updates of them.
  proto::Operand Parameters() const {
    return options_.whole_parameters ? Own(parameters_) : Whole(parameters_);
  }

  void AddPersistent() {
    const uint64_t ids = uint64_t(options_.batch) * options_.seq_len * 4;
    tokens_ = Constant("tokens", proto::IO, ids);
    targets_ = Constant("targets", proto::IO, ids);
    lr_ = Constant("lr", proto::IO, 4);
    step_ = Constant("step", proto::IO, 8);
    rng_ = Constant("rng", proto::IO, 24);
    inverse_ranks_ = Constant("inverse_ranks", proto::IO, 4);
    loss_ = Constant("loss", proto::IO, 4);
    norm_ = Constant("grad_norm", proto::IO, 4);
    parameters_ = options_.whole_parameters ? Full("parameters", proto::PARAMETERS)
                                            : Slice("parameters", proto::PARAMETERS);
    exp_avg_ = Slice("exp_avg", proto::OPTIMIZER_STATE);
    exp_avg_sq_ = Slice("exp_avg_sq", proto::OPTIMIZER_STATE);
    for (uint32_t moment : {exp_avg_, exp_avg_sq_})
      plan_.mutable_buffers(moment)->set_space(options_.offload ? proto::HOST : proto::DEVICE);
    AddState("parameters", parameters_);
    AddState("exp_avg", exp_avg_);
    AddState("exp_avg_sq", exp_avg_sq_);
    if (!options_.host_step) return;
    master_ = OnHost(Slice("master", proto::OPTIMIZER_STATE));
    AddState("master", master_);
  }

  uint32_t OnHost(uint32_t buffer) {
    plan_.mutable_buffers(static_cast<int>(buffer))->set_space(proto::HOST);
    return buffer;
  }

  void AddState(const char* role, uint32_t buffer) {
    proto::Plan::UnitState* state = plan_.add_unit_states();
    state->set_role(role);
    state->set_buffer(buffer);
  }

  void BuildInit() {
    AddPort(init_->mutable_inputs(), "rng", At(rng_, proto::I64, {3}));
    const std::vector<uint32_t> moments = {exp_avg_, exp_avg_sq_};
    std::vector<uint32_t> here = moments;
    if (options_.offload && !options_.host_step)
      here = {Slice("zero_exp_avg", proto::WORKSPACE), Slice("zero_exp_avg_sq", proto::WORKSPACE)};
    // Memory of the host is zero from the start.
    for (uint32_t buffer :
         options_.host_step ? std::vector{parameters_} : std::vector{parameters_, here[0], here[1]})
      Float(Kernel(init_, "fill", {}, {Whole(buffer)}), "value", 0.0);
    if (options_.offload && !options_.host_step) {
      const uint32_t last = CopyMoments(init_, proto::D2H, 2, here, moments);
      for (uint32_t buffer : here) Lives(buffer, 1, last, 0);
    }
    for (const bool head : {false, true}) {
      proto::Instruction* init =
          Kernel(init_, "init_normal", {At(rng_, proto::I64, {3})}, {Whole(parameters_)});
      Int(init, "parameter", head);
      Float(init, "value", 0.2);
    }
    if (options_.host_step) Copy(init_, proto::D2H, {Parameters()}, {Whole(master_)});
  }

  void BuildTrain() {
    AddPort(train_->mutable_inputs(), "tokens", At(tokens_, proto::I32, Ids()));
    AddPort(train_->mutable_inputs(), "targets", At(targets_, proto::I32, Ids()));
    AddPort(train_->mutable_inputs(), "lr", At(lr_, proto::F32, {}));
    AddPort(train_->mutable_inputs(), "step", At(step_, proto::I64, {}));
    AddPort(train_->mutable_inputs(), "inverse_ranks", At(inverse_ranks_, proto::F32, {}));
    AddPort(train_->mutable_outputs(), "loss", At(loss_, proto::F32, {}));
    AddPort(train_->mutable_outputs(), "grad_norm", At(norm_, proto::F32, {}));
    BuildForwardBackward();
    BuildReduction();
    BuildOptimizer();
  }

  void BuildForwardBackward() {
    const uint64_t rows = uint64_t(options_.batch) * options_.seq_len;
    uint32_t weights = parameters_;
    if (Gathers()) {
      weights = Full("gathered", proto::GATHERED);
      proto::Instruction* gather = Collective(proto::ALL_GATHER, proto::GATHER, {}, Whole(parameters_));
      *gather->add_out() = Whole(weights);
      gather->set_unit_plus_one(1);
      Add(train_, proto::WAIT, proto::COMPUTE, {0});
    }
    const uint32_t first = train_->instructions_size();
    const uint32_t x = Constant("x", proto::ACTIVATIONS, rows * options_.hidden * 4);
    const uint32_t dx = Constant("dx", proto::ACTIVATIONS, rows * options_.hidden * 4);
    flat_ = options_.shard ? Full("flat_gradient", proto::STAGING) : Slice("flat_gradient", proto::GRADIENTS);
    Kernel(train_, "embedding", {At(tokens_, proto::I32, Ids()), Table(weights)},
           {At(x, proto::F32, Hidden())});
    proto::Instruction* head =
        Kernel(train_, "linear_cross_entropy_loss_grad",
               {At(x, proto::F32, Hidden()), Head(weights), At(targets_, proto::I32, Ids()), proto::Operand(),
                At(inverse_ranks_, proto::F32, {})},
               {At(loss_, proto::F32, {}), At(dx, proto::F32, Hidden()), Head(flat_)});
    Float(head, "dloss", 1.0);
    Scratch(head, "scratch", LinearCrossEntropyWorkspace(rows, options_.vocab),
            cuda_workspace::LinearCrossEntropyGrad(rows, options_.vocab, options_.hidden, DType::kF32,
                                                   DType::kF32));
    if (Gathers()) {
      *Add(train_, proto::RELEASE, proto::COMPUTE, {})->add_in() = Whole(weights);
      Lives(weights, 0, train_->instructions_size() - 1);
    }
    const uint32_t table = train_->instructions_size();
    proto::Instruction* scatter = Kernel(
        train_, "embedding_grad",
        {At(tokens_, proto::I32, Ids()), At(dx, proto::F32, Hidden()), proto::Operand()}, {Table(flat_)});
    Scratch(scatter, "positions", 0, cuda_workspace::EmbeddingGrad(rows, options_.vocab, options_.hidden));
    Kernel(train_, "zero_padding", {}, {Whole(flat_)});
    Lives(x, first, first + 1);
    Lives(dx, first + 1, table);
    Lives(flat_, first + 1, table + 2);
  }

  void BuildReduction() {
    const uint32_t packed = train_->instructions_size() - 1;
    proto::Instruction* first = Collective(options_.shard ? proto::REDUCE_SCATTER : proto::ALL_REDUCE,
                                           proto::REDUCE, {packed}, Whole(flat_));
    first->set_unit_plus_one(1);
    uint32_t reduction = packed + 1;
    gradient_ = Whole(flat_);
    if (options_.whole_parameters) *first->add_out() = gradient_ = Own(flat_);
    if (Gathers()) {
      const uint32_t slice = Slice("gradient", proto::GRADIENTS);
      *first->add_out() = gradient_ = Whole(slice);
      slice_begin_ = reduction;
    }
    if (options_.two_axes) {
      // The second reduction may begin when the first is through.
      Add(train_, proto::WAIT, proto::COMPUTE, {reduction});
      proto::Instruction* second = Collective(proto::ALL_REDUCE, proto::REPLICA, {reduction + 1}, gradient_);
      second->set_axis(proto::AXIS_REPLICA);
      second->set_unit_plus_one(1);
      reduction += 2;
    }
    Collective(proto::ALL_REDUCE, proto::REDUCE, {reduction - 1}, At(loss_, proto::F32, {}));
    Add(train_, proto::WAIT, proto::COMPUTE, {reduction, reduction + 1});
    plan_.mutable_buffers(flat_)->set_last(reduction + 2);
  }

  void BuildOptimizer() {
    const uint32_t acc = Constant("accumulator", proto::IO, kAccumulatorWords * 8);
    const uint32_t coefficient = Constant("coefficient", proto::IO, 4);
    const uint32_t sum = train_->instructions_size();
    Kernel(train_, "sum_squares", {gradient_, proto::Operand()}, {At(acc, proto::I64, {kAccumulatorWords})});
    if (options_.shard) {
      proto::Instruction* all =
          Collective(proto::ALL_REDUCE, proto::REDUCE, {sum}, At(acc, proto::I64, {kAccumulatorWords}));
      if (options_.two_axes) all->set_axis(proto::AXIS_SHARD);
      Add(train_, proto::WAIT, proto::COMPUTE, {sum + 1});
    }
    Float(Kernel(train_, "clip_coefficient",
                 {At(acc, proto::I64, {kAccumulatorWords}), proto::Operand(), proto::Operand(),
                  proto::Operand()},
                 {At(norm_, proto::F32, {}), At(coefficient, proto::F32, {})}),
          "max_norm", 1.0);
    scalars_ = Constant("scalars", proto::IO, 4 * 2 * kAdamwScalars);
    const uint32_t made = train_->instructions_size();
    proto::Instruction* scalars =
        Kernel(train_, "update_scalars",
               {At(coefficient, proto::F32, {}), At(lr_, proto::F32, {}), At(step_, proto::I64, {})},
               {At(scalars_, proto::F32, {2, kAdamwScalars})});
    proto::Attribute* formulas = scalars->add_attributes();
    formulas->set_name("formulas");
    formulas->set_s(kAdamwFormulas);
    Float(scalars, "weight_decay", 0.1);
    BuildUpdate();
    const uint32_t last = train_->instructions_size() - 1;
    Lives(acc, sum, last);
    Lives(coefficient, sum, last);
    Lives(scalars_, made, last);
    const uint32_t gradient = gradient_.buffer_plus_one() - 1;
    Lives(gradient, slice_begin_ > 0 ? slice_begin_ : plan_.buffers(gradient).first(), last);
  }

  // The update itself; the caller says where.
  proto::Instruction* Update(const proto::Operand& gradient, const proto::Operand& scalars,
                             const std::vector<proto::Operand>& updated) {
    proto::Instruction* update =
        Kernel(train_, "update", {gradient, scalars}, {updated[0], updated[1], updated[2]});
    update->set_phase("optimizer");
    *plan_.add_clusters() = ToProto(AdamwBody());
    update->set_cluster_plus_one(1);
    return update;
  }

  void BuildHostUpdate() {
    const uint32_t begin = train_->instructions_size();
    const uint32_t gradient = OnHost(Slice("gradient_there", proto::GRADIENTS));
    const uint32_t scalars = OnHost(Constant("scalars_there", proto::IO, 4 * 2 * kAdamwScalars));
    const proto::Operand scalars_there = At(scalars, proto::F32, {2, kAdamwScalars});
    const uint32_t ready = Copy(train_, proto::D2H, {gradient_, At(scalars_, proto::F32, {2, kAdamwScalars})},
                                {Whole(gradient), scalars_there});
    proto::Instruction* update =
        Update(Whole(gradient), scalars_there, {Whole(master_), Whole(exp_avg_), Whole(exp_avg_sq_)});
    update->set_stream(proto::HOST_COMPUTE);
    update->add_after(ready);
    Add(train_, proto::WAIT, proto::COMPUTE, {ready + 1});
    for (const uint32_t buffer : {gradient, scalars}) Lives(buffer, begin, ready + 2);
    Copy(train_, proto::H2D, {Whole(master_)}, {Parameters()});
  }

  void BuildUpdate() {
    if (options_.host_step) {
      BuildHostUpdate();
    } else {
      BuildDeviceUpdate();
    }
    if (options_.whole_parameters) {
      const uint32_t start = train_->instructions_size();
      proto::Instruction* refresh =
          Collective(proto::ALL_GATHER, proto::GATHER, {start - 1}, Own(parameters_));
      *refresh->add_out() = Whole(parameters_);
      refresh->set_unit_plus_one(1);
      Add(train_, proto::WAIT, proto::COMPUTE, {start});
    }
  }

  void BuildDeviceUpdate() {
    const uint32_t before = train_->instructions_size() - 1;
    const std::vector<uint32_t> moments = {exp_avg_, exp_avg_sq_};
    std::vector<uint32_t> here = moments;
    if (options_.offload) {
      here = {Slice("exp_avg_here", proto::OPTIMIZER_STATE),
              Slice("exp_avg_sq_here", proto::OPTIMIZER_STATE)};
      CopyMoments(train_, proto::H2D, before, moments, here);
    }
    Update(gradient_, At(scalars_, proto::F32, {2, kAdamwScalars}),
           {Parameters(), Whole(here[0]), Whole(here[1])});
    const uint32_t updated = train_->instructions_size() - 1;
    if (options_.offload) {
      const uint32_t last = CopyMoments(train_, proto::D2H, updated, here, moments);
      for (uint32_t buffer : here) Lives(buffer, before + 1, last);
    }
  }

  const TinyPlanOptions options_;
  uint64_t table_elements_, head_offset_, elements_;
  proto::Plan plan_;
  proto::Program* init_ = nullptr;
  proto::Program* train_ = nullptr;
  uint32_t tokens_, targets_, lr_, step_, rng_, inverse_ranks_, loss_, norm_, scalars_, parameters_, exp_avg_,
      exp_avg_sq_, flat_, master_;
  proto::Operand gradient_;   // reduced
  uint32_t slice_begin_ = 0;  // where its buffer begins to live, when it has one of its own
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
    if ((InstructionTitle(plan, train.instructions(i)) + " ").rfind(title + " ", 0) == 0) return i;
  }
  std::abort();
}

}  // namespace ft
