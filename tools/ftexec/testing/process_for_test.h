// Starts programs for tests and looks at how they end.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/testing/temp_folder.h"

namespace ft {

class TestProcess {
 public:
  // stdout and stderr go to files in `folder`. `environment` is added to this process's own.
  TestProcess(const TempFolder& folder, const std::string& name, std::vector<std::string> arguments,
              const std::vector<std::pair<std::string, std::string>>& environment = {})
      : out_(folder.Path(name + ".out")), err_(folder.Path(name + ".err")) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
    dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~TestProcess() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;

  void Signal(int number) const { kill(pid_, number); }

  // Exit status, or 1000 + signal; -1 when it has not ended within `seconds`.
  int Wait(double seconds = 60) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < deadline) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
  }

  std::string out() const { return TempFolder::Read(out_); }
  std::string err() const { return TempFolder::Read(err_); }

 private:
  std::string out_;
  std::string err_;
  pid_t pid_ = -1;
};

}  // namespace ft
