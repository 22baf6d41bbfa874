// Ranks for tests: threads of this process, or forked processes where one has to die.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/collective/rendezvous/rendezvous.h"
#include "runtime/collective/rendezvous/tcp_store_server.h"

namespace ft::testing {

class TestWorld {
 public:
  explicit TestWorld(int size) : size_(size), server_(TcpStoreServer::Start(0).value()) {}

  LaunchEnvironment EnvironmentOf(int rank) const {
    LaunchEnvironment environment;
    environment.rank = environment.local_rank = rank;
    environment.world_size = environment.local_world_size = size_;
    environment.master_addr = "127.0.0.1";
    environment.master_port = server_->port();
    environment.agent_store = true;
    return environment;
  }

  static RendezvousOptions Options(std::string fingerprint = "same") {
    RendezvousOptions options;
    options.fingerprint = std::move(fingerprint);
    options.timeout = absl::Seconds(30);
    return options;
  }

  // Runs `body` once per rank, each in a thread of its own.
  void RunThreads(const std::function<void(const Rendezvous&)>& body) const {
    EachRank([&](int rank) {
      auto rendezvous = Rendezvous::Join(EnvironmentOf(rank), Options());
      ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
      body(**rendezvous);
    });
  }

  void EachRank(const std::function<void(int)>& body) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) threads.emplace_back([&body, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  const int size_;
  std::unique_ptr<TcpStoreServer> server_;
};

// A forked rank. What its body writes to the given descriptor can be read here.
class ForkedRank {
 public:
  explicit ForkedRank(const std::function<int(int out)>& body) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      _exit(body(ends[1]));
    }
    close(ends[1]);
    in_ = ends[0];
  }
  ForkedRank(ForkedRank&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), in_(std::exchange(other.in_, -1)) {}
  ~ForkedRank() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (in_ >= 0) close(in_);
  }

  pid_t pid() const { return pid_; }

  // One line of the body's words.
  std::string ReadLine() const {
    std::string line;
    char c = 0;
    while (read(in_, &c, 1) == 1 && c != '\n') line.push_back(c);
    return line;
  }
  // Returns when all of its threads stand still.
  void Stop() const {
    int status = 0;
    kill(pid_, SIGSTOP);
    waitpid(pid_, &status, WUNTRACED);
  }
  // Waits for its end and returns waitpid's status.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
};

inline void WriteLine(int out, std::string line) {
  line.push_back('\n');
  [[maybe_unused]] const ssize_t written = write(out, line.data(), line.size());
}

}  // namespace ft::testing
