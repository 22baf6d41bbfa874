#include "tools/ftc/dump_request.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "compiler/pipeline/stages.h"
#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/base/did_you_mean.h"

namespace ftc {

std::variant<DumpRequest, std::string> ParseDumpRequest(const std::string& text) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ':');
  DumpRequest request;
  request.stage = parts[0].str();
  std::vector<std::string_view> stages;
  for (const ft::compiler::Stage& stage : ft::compiler::stages())
    stages.emplace_back(stage.name.data(), stage.name.size());
  if (std::find(stages.begin(), stages.end(), request.stage) == stages.end())
    return ft::UnknownName("stage", request.stage, stages);
  for (const llvm::StringRef part : llvm::drop_begin(parts)) {
    std::string& place = part.starts_with("@") ? request.function : request.layer;
    if (part.empty() || part == "@" || !place.empty())
      return fmt::format("--dump={}: expected STAGE[:@FUNCTION][:LAYER]", text);
    place = part.ltrim('@').str();
  }
  return request;
}

}  // namespace ftc
