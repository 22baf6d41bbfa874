#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/numbers.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/plan/attributes.h"
#include "tools/ftckpt/commands.h"
#include "tools/ftckpt/find_checkpoint.h"
#include "tools/ftckpt/show_json.h"

namespace ft::ckpt {
namespace {

constexpr int kMostAttributes = 256;

std::string Short(std::string_view text) { return OneLine(text, kMaxNameBytes); }

std::string ListText(const auto& values) {
  return Short(absl::StrJoin(values.begin(), values.begin() + std::min(32, values.size()), ","));
}

std::string ValueOf(const proto::Attribute& attribute) {
  switch (attribute.value_case()) {
    case proto::Attribute::kS:
      return Short(attribute.s());
    case proto::Attribute::kF:
      return fmt::format("{}", attribute.f());
    case proto::Attribute::kI:
      return fmt::format("{}", attribute.i());
    case proto::Attribute::kInts:
      return ListText(attribute.ints().values());
    case proto::Attribute::kReals:
      return ListText(attribute.reals().values());
    case proto::Attribute::VALUE_NOT_SET:
      break;
  }
  return "";
}

template <typename Attributes>
std::string ListOf(const Attributes& attributes) {
  std::string text;
  for (int i = 0; i < std::min(kMostAttributes, attributes.size()); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", Short(attributes[i].name()), ValueOf(attributes[i]));
  if (attributes.size() > kMostAttributes)
    text += fmt::format(" and {} more", attributes.size() - kMostAttributes);
  return text;
}

// "f32", or all types that a role has.
std::string StatesOf(const StateLayout& state) {
  std::map<std::string, std::set<std::string>> dtypes;
  for (const StateBuffer& buffer : state.buffers) dtypes[buffer.role].insert(std::string(Name(buffer.dtype)));
  std::vector<std::string> words;
  for (const auto& [role, types] : dtypes) {
    if (words.size() == kMostAttributes) break;
    words.push_back(fmt::format("{} {}", Short(role), absl::StrJoin(types, "/")));
  }
  return absl::StrJoin(words, ", ");
}

// "2 files, the first 'corpus.txt'", of what runtime/data/data_identity.h writes.
// A model without sequences of tokens has a length of 1.
std::string BatchOf(const proto::Manifest::Run& run) {
  return run.seq_len() == 1 ? fmt::format("{} examples a rank", run.batch())
                            : fmt::format("{} sequences of {} tokens a rank", run.batch(), run.seq_len());
}

std::string DataOf(const google::protobuf::Struct& data) {
  std::string first;
  int files = 0;
  const auto sources = data.fields().find("sources");
  if (sources == data.fields().end()) return "not said";
  for (const auto& source : sources->second.list_value().values()) {
    const auto& fields = source.struct_value().fields();
    const auto list = fields.find("files");
    if (list == fields.end()) continue;
    for (const auto& file : list->second.list_value().values()) {
      const auto path = file.struct_value().fields().find("path");
      if (files++ == 0 && path != file.struct_value().fields().end())
        first = Quote(path->second.string_value());
    }
  }
  return fmt::format("{} source{}, {} file{}{}{}", sources->second.list_value().values_size(),
                     sources->second.list_value().values_size() == 1 ? "" : "s", files, files == 1 ? "" : "s",
                     first.empty() ? ""
                     : files == 1  ? ", "
                                   : ", the first ",
                     first);
}

using Lines = std::vector<std::pair<std::string, std::string>>;

void DescribeForm(const CheckpointReader& reader, Lines& lines) {
  const proto::Manifest& manifest = reader.manifest();
  const FileLayout& layout = reader.layout();
  uint64_t bytes = 0;
  for (const auto& file : manifest.files()) bytes += file.bytes();
  const int ranks = layout.state().world_size();
  lines.emplace_back("checkpoint", reader.folder());
  lines.emplace_back("type", fmt::format("{}, {} files, {} bytes ({})", Name(layout.type()),
                                         manifest.files_size(), Grouped(bytes), ShortBytes(bytes)));
  lines.emplace_back("written by", Short(manifest.producer()));
  lines.emplace_back(
      "model", fmt::format("{}, {} parameters, fingerprint {}", Short(manifest.model().name()),
                           Grouped(manifest.model().parameters()), Short(manifest.model().fingerprint())));
  lines.emplace_back("facts", ListOf(manifest.model().facts()));
  lines.emplace_back("ranks", fmt::format("{} ({})", ranks, MeshText(layout.state().mesh)));
  lines.emplace_back("strategy",
                     fmt::format("{}, plan {}", Short(manifest.strategy()), Short(manifest.plan_hash())));
  lines.emplace_back("states", StatesOf(layout.state()));
}

void DescribeRun(const proto::Manifest& manifest, Lines& lines) {
  const auto& position = manifest.position();
  const auto& run = manifest.run();
  const auto& health = manifest.health();
  lines.emplace_back("position", fmt::format("{} of {} steps, {} applied, {} micro-steps, {} sequences",
                                             position.steps(), run.total_steps(), position.applied(),
                                             position.micro_steps(), position.sequences()));
  std::string scaler;
  for (int i = 0; i < std::min(8, health.scaler_size()); ++i)
    scaler += fmt::format("{}{}", i == 0 ? "; loss scaling " : " ", health.scaler(i));
  lines.emplace_back("health", fmt::format("{} bad steps in a row, {} overflows{}", health.bad_in_a_row(),
                                           health.overflows_in_a_row(), scaler));
  lines.emplace_back(
      "rate", fmt::format("{} {} to {} over {} steps, {} of warm-up ({}, from {}), {}", run.lr(),
                          Short(run.lr_schedule()), run.min_lr(), run.schedule_steps(), run.warmup_steps(),
                          Short(run.warmup()), run.warmup_min_lr(), Short(run.lr_convention())));
  lines.emplace_back("step", fmt::format("{}, {} micro-steps; seed {}, shuffle {}", BatchOf(run),
                                         run.micro_steps(), run.seed(), run.shuffle() ? "on" : "off"));
  lines.emplace_back("data", DataOf(manifest.data()));
  lines.emplace_back("settings", ListOf(manifest.settings()));
  lines.emplace_back(
      "platform", fmt::format("{}, {}, {} threads", Short(manifest.platform().device()),
                              Short(manifest.platform().instruction_set()), manifest.platform().threads()));
  if (manifest.has_eval_loss())
    lines.emplace_back("evaluation", fmt::format("loss {:.9g}", manifest.eval_loss()));
}

std::string OptimizerOf(const proto::Manifest& manifest) {
  const proto::Attribute* optimizer = FindAttribute(manifest.settings(), "optimizer");
  return optimizer == nullptr ? "not said" : ValueOf(*optimizer);
}

absl::Status PrintTensors(const StateLayout& state) {
  for (const StateBuffer& buffer : state.buffers) {
    std::string text;
    state.ForEachTensor(buffer, [&](const StateParameter& parameter, ElementRange) {
      text += fmt::format("{}  {}  {}  {}\n", Short(TensorName(buffer.role, parameter.name)),
                          Short(ShapeText(*StateShape(buffer.kind, parameter.shape))), Name(buffer.dtype),
                          Short(buffer.role));
    });
    FT_RETURN_IF_ERROR(PrintOut(text));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> Show(const ShowOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(options.path));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, CheckpointReader::Open(path));
  if (options.json) {
    FT_ASSIGN_OR_RETURN(const std::string text, JsonOf(*reader, options.tensors));
    FT_RETURN_IF_ERROR(PrintOut(text));
    return kExitOk;
  }
  Lines lines;
  DescribeForm(*reader, lines);
  lines.emplace_back("optimizer", OptimizerOf(reader->manifest()));
  DescribeRun(reader->manifest(), lines);
  std::string text;
  for (const auto& [name, value] : lines)
    text += fmt::format("{:<11} {}\n", name, OneLine(value, 4 * kMaxLineBytes));
  FT_RETURN_IF_ERROR(PrintOut(text));
  if (options.tensors) FT_RETURN_IF_ERROR(PrintTensors(reader->layout().state()));
  return kExitOk;
}

}  // namespace ft::ckpt
