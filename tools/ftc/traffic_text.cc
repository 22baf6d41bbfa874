// The last lines of ftc dump --kernels.
#include <string>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/memory_traffic.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/verify_plan.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

// What an H200 reaches when it copies.
constexpr double kBytesPerSecond = 4.3e12;

std::string LineOf(const std::string& program, const ft::MemoryTraffic& traffic) {
  return fmt::format(
      "{}: {} moved by products, attention, losses, look-ups, updates and transfers, {} between them: {:.2f} "
      "times the floor, {} ({} at the 4.3 TB/s of an H200)\n",
      program, ft::ShortBytes(traffic.ops), ft::ShortBytes(traffic.between),
      static_cast<double>(traffic.moved()) / static_cast<double>(traffic.floor),
      ft::ShortBytes(traffic.floor), ft::ShortSeconds(static_cast<double>(traffic.floor) / kBytesPerSecond));
}

}  // namespace

absl::StatusOr<std::string> TrafficText(const ft::proto::Plan& plan) {
  FT_RETURN_IF_ERROR(ft::VerifyPlan(plan));
  FT_ASSIGN_OR_RETURN(const ft::Mesh mesh,
                      ft::CompiledMesh(plan, static_cast<int>(plan.target().ranks_per_node())));
  std::string text;
  for (const ft::proto::Program& program : plan.programs())
    if (const ft::MemoryTraffic traffic = ft::MemoryTrafficOf(plan, program, mesh); traffic.ops > 0)
      text += LineOf(program.name(), traffic);
  return text;
}

}  // namespace ftc
