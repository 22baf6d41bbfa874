#include "runtime/collective/gloo/gloo_mesh.h"

#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "runtime/collective/rendezvous/interruptible_wait.h"
#include "runtime/collective/rendezvous/prefix_store.h"

namespace ft {
namespace {

// Gloo writes to connections that may be closed, without MSG_NOSIGNAL: that would end the process by SIGPIPE.
// This blocks the signal in the calling thread, and in threads that are started meanwhile for good (Gloo's
// own), and takes back what came.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  ~SigpipeBlocked() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec at_once{};
    while (sigtimedwait(&sigpipe_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t sigpipe_, before_;
};

// Our store as Gloo's. Gloo knows errors as exceptions only.
class StoreForGloo : public gloo::rendezvous::Store {
 public:
  StoreForGloo(ft::Store* store, const GlooMeshOptions& options)
      : store_(store, options.key),
        deadline_(absl::Now() + options.timeout),
        interrupted_(options.interrupted) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Check(store_.Set(key, absl::string_view(data.data(), data.size())), key);
  }

  std::vector<char> get(const std::string& key) override {
    Check(InterruptibleWait(&store_, {key}, deadline_, interrupted_), key);
    auto value = store_.Get(key, deadline_);
    Check(value.status(), key);
    return std::vector<char>(value->begin(), value->end());
  }

  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys)
      Check(InterruptibleWait(&store_, {key}, deadline_, interrupted_), key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    wait(keys);
  }

  // The error behind the exception, if it came from here.
  const absl::Status& error() const { return error_; }

 private:
  void Check(const absl::Status& status, const std::string& key) {
    if (status.ok()) return;
    error_ =
        absl::IsDeadlineExceeded(status)
            ? absl::UnavailableError(absl::StrCat("a rank did not offer its address (", key, ") in time"))
            : status;
    throw gloo::IoException(std::string(error_.message()));
  }

  PrefixStore store_;
  const absl::Time deadline_;
  const std::function<absl::Status()> interrupted_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<gloo::rendezvous::Context>> ConnectGlooMesh(ft::Store* store,
                                                                           const GlooMeshOptions& options) {
  if (options.address.empty()) {
    return absl::FailedPreconditionError("this host has no network address that other hosts could reach");
  }
  StoreForGloo adapter(store, options);
  std::shared_ptr<gloo::rendezvous::Context> context;
  absl::Status connected = CatchGloo([&] {
    // A numeric address: Gloo would look up the host's name otherwise, which need not resolve.
    gloo::transport::tcp::attr attributes(options.address.c_str());
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
    context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(std::chrono::milliseconds(absl::ToInt64Milliseconds(options.timeout)));
    context->connectFullMesh(adapter, device);
    return absl::OkStatus();
  });
  if (!adapter.error().ok()) return adapter.error();
  if (!connected.ok()) {
    return absl::UnavailableError(
        absl::StrCat("connecting the ranks by Gloo over ", options.address, ": ", connected.message()));
  }
  return context;
}

absl::Status CatchGloo(absl::FunctionRef<absl::Status()> body) {
  const SigpipeBlocked blocked;
  try {
    return body();
  } catch (const std::exception& error) {
    // "[file:line] message"
    absl::string_view text = error.what();
    if (const size_t end = text.find("] "); absl::StartsWith(text, "[/") && end != text.npos)
      text.remove_prefix(end + 2);
    return absl::UnavailableError(text);
  }
}

}  // namespace ft
