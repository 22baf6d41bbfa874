#include "tools/ftc/config/file_view.h"

#include "runtime/base/did_you_mean.h"
#include "tools/ftc/config/key_table.h"
#include "tools/ftc/config/values.h"

namespace ftc {
namespace {

std::string OfFile(const YamlEntry& entry, std::string_view section) {
  return entry.file + "\n" + std::string(section);
}

}  // namespace

DistributedType ReadDistributedType(std::string_view text) {
  const std::string plain = Plain(text);
  if (plain == "no" || plain == "none" || plain == "false" || plain == "null" || plain.empty())
    return {Distribution::kNone, ""};
  if (plain == "fsdp") return {Distribution::kFsdp, ""};
  if (plain == "deepspeed") return {Distribution::kDeepSpeed, ""};
  for (const char* device : {"cpu", "gpu", "npu", "mlu", "sdaa", "musa", "xpu", "hpu", "neuron"}) {
    if (plain == std::string("multi_") + device) return {Distribution::kReplicated, ""};
  }
  if (plain == "megatron_lm")
    return {Distribution::kUnsaid, "Megatron-LM is not supported here; use FSDP's or DeepSpeed's strategies"};
  if (plain == "xla" || plain == "tpu") return {Distribution::kUnsaid, "there are no TPUs here"};
  if (plain == "tp") return {Distribution::kUnsaid, "tensor parallelism is not supported"};
  if (plain == "data_parallel" || plain == "model_parallel")
    return {Distribution::kUnsaid, "Amazon SageMaker is not supported; torchrun or ftrun launch ftexec"};
  return {Distribution::kUnsaid,
          ft::UnknownName("type", text, {"NO", "MULTI_GPU", "MULTI_CPU", "FSDP", "DEEPSPEED"})};
}

FileView::FileView(const TrainYaml& file) {
  for (const YamlEntry& entry : file.entries) {
    if (entry.is_section) continue;
    if (entry.path == "distributed_type") distribution_ = ReadDistributedType(entry.text).distribution;
    const std::string section = SectionOf(entry.path);
    if (!section.empty() && entry.path == section + "enabled" && ReadBool(entry.text) == false)
      off_[OfFile(entry, section)] = true;
  }
  for (const YamlEntry& entry : file.entries) {
    if (!entry.is_section && !IsLeftOut(entry)) entries_.emplace(IdentityOf(entry.path), &entry);
  }
}

const YamlEntry* FileView::Find(std::string_view key) const {
  const auto found = entries_.find(IdentityOf(std::string(key)));
  return found == entries_.end() ? nullptr : found->second;
}

const YamlEntry* FileView::FirstOf(std::string_view section) const {
  const auto found = entries_.lower_bound(std::string(section));
  return found == entries_.end() || !found->first.starts_with(section) ? nullptr : found->second;
}

bool FileView::IsLeftOut(const YamlEntry& entry) const {
  if (!UnusedSection(entry).empty()) return true;
  for (std::string section = SectionOf(entry.path); !section.empty(); section = SectionOf(section)) {
    if (entry.path != section + "enabled" && off_.contains(OfFile(entry, section))) return true;
    section.pop_back();
  }
  return false;
}

std::string FileView::UnusedSection(const YamlEntry& entry) const {
  if (distribution_ == Distribution::kUnsaid) return "";
  if (distribution_ != Distribution::kFsdp && entry.path.starts_with("fsdp_config.")) return "fsdp_config";
  if (distribution_ == Distribution::kDeepSpeed) return "";
  for (const char* section : {"deepspeed_config", "deepspeed"}) {
    if (entry.path.starts_with(std::string(section) + ".")) return section;
  }
  return "";
}

}  // namespace ftc
