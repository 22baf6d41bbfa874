// Settings as they were given: by a key of train.yaml or by a flag.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ftc {

struct Origin {
  // kProgram: absent, and what the program whose file it is makes of that. kChosen: by a search, over flags.
  enum class From { kDefault, kProgram, kFile, kFlag, kChosen };
  From from = From::kDefault;
  std::string key;   // as the user wrote it: "fsdp.fsdp_sharding_strategy", "--strategy"; the program;
                     // the search
  std::string file;  // kFile
  int line = 0;
};

// "'bf16.enabled' in train.yaml:3", "--mixed-precision"
std::string NameOf(const Origin& origin);

struct Given {
  size_t setting = 0;  // index in Settings()
  std::string text;    // as Value::show has it
  Origin origin;
};

// A mistake of the user. `usage` when a flag is to blame (exit status 2), otherwise the file (65).
struct Refusal {
  std::string message;
  bool usage = false;
};

}  // namespace ftc
