#include "runtime/executor/testing/probe_plan.h"

#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/testing/plan_parts.h"

namespace ft {
namespace {

std::function<void(const ProbeCall&)>& Callback() {
  static std::function<void(const ProbeCall&)> callback;
  return callback;
}

class ProbeKernel final : public CpuKernel {
 public:
  explicit ProbeKernel(std::string program) { call_.program = std::move(program); }

  ProbeCall call_;
  const float* lr_ = nullptr;
  const int64_t* step_ = nullptr;

  void Run() override {
    if (lr_ != nullptr) call_.lr = *lr_;
    if (step_ != nullptr) call_.step = *step_;
    Callback()(call_);
  }
};

class Builder {
 public:
  proto::Plan Build(int micro_steps, bool scaler) {
    plan_.set_model("probe");
    plan_.set_strategy("no_shard");
    plan_.set_batch(kProbeBatch);
    plan_.set_seq_len(kProbeSeqLen);
    plan_.set_vocab_size(256);
    plan_parts::AddTokenInputs(plan_);
    plan_.set_block_elements(kBlockElements);
    plan_.set_micro_steps(micro_steps);
    batch_ = {Add("tokens", proto::I32, {kProbeBatch, kProbeSeqLen}),
              Add("targets", proto::I32, {kProbeBatch, kProbeSeqLen}), Add("rng", proto::I64, {3})};
    const Named loss = Add("loss", proto::F32, {}), norm = Add("grad_norm", proto::F32, {}),
                sum = Add("loss_sum", proto::F32, {2});
    std::vector<Named> step = batch_, step_out = {loss, norm};
    for (const Named& port : {Add("lr", proto::F32, {}), Add("step", proto::I64, {})}) step.push_back(port);
    if (scaler) step_out.push_back(step.emplace_back(Add("scaler", proto::F32, {3})));
    AddProgram("init", {batch_[2]}, {});
    if (micro_steps > 1) AddProgram("train_micro", batch_, {});
    AddProgram("train_step", step, step_out);
    AddProgram("eval_step", batch_, {sum});
    return plan_;
  }

 private:
  struct Named {
    std::string name;
    proto::Operand operand;
  };

  Named Add(const std::string& name, proto::DType dtype, const std::vector<uint64_t>& shape) {
    uint64_t elements = 1;
    Named port{name, {}};
    for (const uint64_t extent : shape) {
      port.operand.add_shape(extent);
      elements *= extent;
    }
    proto::Buffer* buffer = plan_.add_buffers();
    buffer->set_name(name);
    buffer->set_class_(proto::IO);
    buffer->mutable_size()->set_value(elements * SizeOf(static_cast<DType>(dtype)));
    buffer->set_persistent(true);
    port.operand.set_dtype(dtype);
    port.operand.set_buffer_plus_one(plan_.buffers_size());
    return port;
  }

  void AddProgram(const char* name, const std::vector<Named>& in, const std::vector<Named>& out) {
    proto::Program* program = plan_.add_programs();
    program->set_name(name);
    proto::Instruction* kernel = program->add_instructions();
    kernel->set_kernel("probe");
    std::string names = name;
    for (const Named& port : in) {
      *kernel->add_in() = port.operand;
      names += " " + port.name;
      proto::Port* input = program->add_inputs();
      input->set_name(port.name);
      *input->mutable_operand() = port.operand;
    }
    for (const Named& port : out) {
      *kernel->add_out() = port.operand;
      names += " " + port.name;
      proto::Port* output = program->add_outputs();
      output->set_name(port.name);
      *output->mutable_operand() = port.operand;
    }
    proto::Attribute* attribute = kernel->add_attributes();
    attribute->set_name("ports");
    attribute->set_s(names);
  }

  proto::Plan plan_;
  std::vector<Named> batch_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeProbe(const KernelOperands& operands,
                                                  const KernelAttributes& attributes,
                                                  const KernelEnvironment&) {
  FT_ASSIGN_OR_RETURN(const std::string names, attributes.String("ports"));
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(' ', begin), names.size());
    words.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  auto kernel = std::make_unique<ProbeKernel>(words[0]);
  ProbeCall& call = kernel->call_;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t ins = operands.in.size();
    const Tensor& tensor = i <= ins ? operands.in[i - 1] : operands.out[i - 1 - ins];
    if (words[i] == "tokens") call.tokens = tensor.as<int32_t>();
    if (words[i] == "targets") call.targets = tensor.as<int32_t>();
    if (words[i] == "rng") call.rng = tensor.as<int64_t>();
    if (words[i] == "lr") kernel->lr_ = tensor.as<float>();
    if (words[i] == "step") kernel->step_ = tensor.as<int64_t>();
    if (words[i] == "scaler") call.scaler = tensor.as<float>();
    if (words[i] == "loss") call.loss = tensor.as<float>();
    if (words[i] == "grad_norm") call.grad_norm = tensor.as<float>();
    if (words[i] == "loss_sum") call.loss_sum = tensor.as<float>();
  }
  return kernel;
}

}  // namespace

proto::Plan ProbePlan(int micro_steps, bool scaler) { return Builder().Build(micro_steps, scaler); }

void RegisterProbe(KernelRegistry& registry, std::function<void(const ProbeCall&)> on_call) {
  Callback() = std::move(on_call);
  registry.Add("probe", &MakeProbe);
}

}  // namespace ft
