// Settings of precision and of what is kept for backward.
#include "tools/ftc/config/setting_rows.h"

namespace ftc {
namespace {

constexpr char kPrecision[] = "Precision";
constexpr char kMemory[] = "Recomputation and offload";
const Synonyms kDtypes = {{"float32", "fp32"},  {"float", "fp32"},   {"f32", "fp32"},  {"no", "fp32"},
                          {"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"}, {"f16", "fp16"}};
const std::vector<std::string> kDtypeNames = {"fp32", "bf16", "fp16"};

// Of what other programs have and this one has not, the reason rather than a list of names.
Value WithoutFp8(Value value) {
  value.set = [set = std::move(value.set)](std::string_view text, Configuration& c) {
    const bool is_fp8 = Plain(text).starts_with("fp8") || Plain(text).starts_with("float8");
    return is_fp8 ? "fp8 is not supported here; bf16 is the nearest" : set(text, c);
  };
  return value;
}

}  // namespace

std::vector<Setting> PrecisionRows() {
  std::vector<Setting> rows = {
      {"mixed_precision",
       kPrecision,
       "P",
       WithoutFp8(Word("precision", FT_FIELD(mixed_precision), {"no", "bf16", "fp16"},
                       {{"fp32", "no"},
                        {"float32", "no"},
                        {"bfloat16", "bf16"},
                        {"float16", "fp16"},
                        {"false", "no"},
                        {"null", "no"}})),
       "Sets the three dtypes below",
       {{"fsdp.fsdp_mixed_precision", FsdpMixedPrecision()},
        {"bf16.enabled", FromBool("bf16", std::nullopt)},
        {"fp16.enabled", FromBool("fp16", std::nullopt)},
        {"bf16", FromBool("bf16", std::nullopt)},
        {"fp16", FromBool("fp16", std::nullopt)}}},
      {"param_dtype",
       kPrecision,
       "T",
       WithoutFp8(Word("dtype", FT_OPTION(precision.paramDtype), kDtypeNames, kDtypes)),
       "Gathered parameters, activations and their gradients",
       {{"fsdp.fsdp_param_dtype"}, {"fsdp.fsdp_mixed_precision.param_dtype"}}},
      {"reduce_dtype",
       kPrecision,
       "T",
       WithoutFp8(Word("dtype", FT_OPTION(precision.reduceDtype), kDtypeNames, kDtypes)),
       "Gradients of parameters, as they are reduced",
       {{"fsdp.fsdp_reduce_dtype"}, {"fsdp.fsdp_mixed_precision.reduce_dtype"}, {"communication_data_type"}}},
      {"buffer_dtype",
       kPrecision,
       "T",
       WithoutFp8(Word("dtype", FT_OPTION(precision.bufferDtype), kDtypeNames, kDtypes)),
       "Tables that are not trained",
       {{"fsdp.fsdp_buffer_dtype"}, {"fsdp.fsdp_mixed_precision.buffer_dtype"}}},
      {"master_weights", kPrecision, "on|off", Switch(FT_OPTION(precision.masterWeights)),
       "fp32 weights beside bf16 ones; off: bf16 weights are all there is"},
      {"loss_scale",
       kPrecision,
       "X",
       LossScaleValue(),
       "fp16: a fixed loss scale, or dynamic",
       {{"fp16.loss_scale"}}},
      {"initial_scale_power",
       kPrecision,
       "N",
       Integer(FT_OPTION(precision.initialScalePower), 0, 126),
       "fp16: the first dynamic scale is 2 to this power",
       {{"fp16.initial_scale_power"}}},
      {"loss_scale_window",
       kPrecision,
       "N",
       Integer(FT_OPTION(precision.lossScaleWindow), 1, kMostSteps),
       "fp16: good steps in a row after which the scale doubles",
       {{"fp16.loss_scale_window"}}},
      {"hysteresis",
       kPrecision,
       "N",
       Integer(FT_OPTION(precision.hysteresis), 1, 1 << 20),
       "fp16: overflows before the scale halves",
       {{"fp16.hysteresis"}}},
      {"min_loss_scale",
       kPrecision,
       "X",
       Number(FT_OPTION(precision.minLossScale), {.low = 0, .high = 1e30}),
       "fp16: the scale never falls below",
       {{"fp16.min_loss_scale"}}},
  };
  rows[0].stands_for = {"param_dtype", "reduce_dtype", "buffer_dtype"};
  return rows;
}

std::vector<Setting> MemoryRows() {
  const Converter optimizer = FromWords({{"cpu", "optimizer"}, {"none", ""}, {"null", ""}});
  const Converter parameters = FromWords({{"cpu", "parameters"}, {"none", ""}, {"null", ""}});
  std::vector<Setting> rows = {
      {"remat",
       kMemory,
       "R",
       RematValue(),
       "Activations computed again in backward rather than kept",
       {{"fsdp.activation_checkpointing", FromBool("every_n:1", "none")},
        {"fsdp.activation_checkpointing.enabled", ActivationCheckpointingEnabled()},
        {"fsdp.activation_checkpointing.checkpoint_every_n_layers", EveryNLayers()},
        {"activation_checkpointing", FromBool("every_n:1", "none")},
        {"activation_checkpointing.enabled", ActivationCheckpointingEnabled()},
        {"activation_checkpointing.checkpoint_every_n_layers", EveryNLayers()},
        {"activation_checkpointing.number_checkpoints", CountOf("segments")},
        {"gradient_checkpointing", FromBool("every_n:1", "none")}}},
      {"offload",
       kMemory,
       "WHAT",
       OffloadValue(),
       "What lives in host memory",
       {{"fsdp.fsdp_cpu_offload", FromBool("optimizer,parameters", std::nullopt)},
        {"fsdp.fsdp_offload_params", FromBool("optimizer,parameters", std::nullopt)},
        {"zero_optimization.offload_optimizer.device", optimizer},
        {"zero_optimization.offload_param.device", parameters},
        {"zero_optimization.cpu_offload", FromBool("optimizer", std::nullopt)},
        {"zero_optimization.cpu_offload_param", FromBool("parameters", std::nullopt)},
        {"offload_optimizer_device", optimizer},
        {"offload_param_device", parameters},
        {"activation_checkpointing.cpu_checkpointing", FromBool("activations", std::nullopt)}},
       ""},
  };
  rows[1].adds_up = true;
  return rows;
}

}  // namespace ftc
