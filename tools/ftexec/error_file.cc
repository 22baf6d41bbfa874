#include "tools/ftexec/error_file.h"

#include <ctime>

#include "nlohmann/json.hpp"
#include "runtime/base/atomic_file.h"

namespace ft {

void WriteErrorFile(const std::string& path, const std::string& kind, const std::string& message) {
  if (path.empty()) return;
  nlohmann::json error;
  error["message"]["message"] = kind + ": " + message;
  error["message"]["extraInfo"]["py_callstack"] = kind + ": " + message;
  error["message"]["extraInfo"]["timestamp"] = std::to_string(std::time(nullptr));
  const absl::Status ignored =
      WriteFileAtomically(path, error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  ignored.IgnoreError();
}

}  // namespace ft
