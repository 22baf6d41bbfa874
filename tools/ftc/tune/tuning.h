// A search for the settings of a model on a machine, as `ftc tune` and --strategy=auto do it.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/tune/search.h"
#include "tools/ftc/command_line.h"
#include "tools/ftc/config/layers.h"

namespace ftc {

// One search, for one number of ranks.
struct Tuning {
  ft::compiler::TuneRequest request;
  std::string refused;  // why these ranks have no table; empty: all below is there
  ft::compiler::TuneSpace space;
  ft::compiler::TuneResult result;
  std::optional<ft::compiler::TuneTrial> own;  // of the configuration as the user has it
};

// What a search is to leave as it is.
enum class Decided { kByFlags, kByFlagsAndFile };

// The request for `model`; settings of `effective` that are decided and that a search could choose are fixed.
// The limit of `memory_bytes`, or 0 for what the target has, less what is better left free.
ft::compiler::TuneRequest TuneRequestOf(const std::string& model, const Effective& effective, Decided decided,
                                        uint64_t memory_bytes);

// The settings of a row of `space` over `flags`, of which those that the row has otherwise are replaced.
absl::StatusOr<std::vector<Given>> WithSettings(const ft::compiler::TuneSpace& space,
                                                const ft::compiler::TunePoint& point,
                                                std::vector<Given> flags);

// Configure, for a compilation of `model`. With --strategy=auto, or fsdp_sharding_strategy: auto, what was
// not given is chosen for the ranks and the machine first; a line on standard error says what. The variant
// holds a refusal, too, where nothing can be chosen. Errors: those of Configure and of searching.
absl::StatusOr<std::variant<Effective, Refusal>> ConfigureFor(const std::string& model,
                                                              const std::string& config,
                                                              const std::vector<Given>& flags);

// In words, that no row of `result` can be chosen.
std::string NothingFits(const ft::compiler::TuneSpace& space, const ft::compiler::TuneResult& result);

// Whether an error begins with its own place in a model, as editors expect it.
bool HasPlace(const absl::Status& status);

// What `ftc tune` prints.
std::string TuneText(const TuneCommand& command, const std::vector<Tuning>& tunings);
std::string TuneJson(const TuneCommand& command, const std::vector<Tuning>& tunings);
std::string SpaceText(const Tuning& tuning);

}  // namespace ftc
