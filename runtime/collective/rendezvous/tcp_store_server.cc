#include "runtime/collective/rendezvous/tcp_store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/store_engine.h"

namespace ft {

class TcpStoreServer::Impl {
  struct Client {
    Fd fd;
    StoreSession session;
    bool closed = false;
  };

 public:
  Impl(Listener listener, Fd stop) : listener_(std::move(listener)), stop_(std::move(stop)) {
    entries_.reserve(64);  // here, so that a thread that starts late allocates nothing while a step runs
  }
  absl::Status StartServing() {
    FT_ASSIGN_OR_RETURN(thread_, StartThread("to serve the store", [this] { Run(); }));
    return absl::OkStatus();
  }
  ~Impl() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    // Cannot fail: the counter is far from its limit.
    [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }

  uint16_t port() const { return listener_.port; }

 private:
  void Run() {
    for (;;) {
      entries_.assign({{stop_.get(), POLLIN, 0}, {listener_.fd.get(), POLLIN, 0}});
      for (const Client& client : clients_) {
        const short events = client.session.out.empty() ? POLLIN : POLLIN | POLLOUT;
        entries_.push_back({client.fd.get(), events, 0});
      }
      if (poll(entries_.data(), entries_.size(), -1) < 0 && errno != EINTR) return;
      if (entries_[0].revents != 0) return;
      size_t i = 2;
      for (Client& client : clients_) {
        if (entries_[i++].revents != 0) Receive(&client);
      }
      // A request of one client may have answered another.
      for (Client& client : clients_) Flush(&client);
      RemoveClosed();
      if (entries_[1].revents != 0) AcceptAll();
    }
  }

  void AcceptAll() {
    for (Fd fd = Accept(listener_.fd.get()); fd.valid(); fd = Accept(listener_.fd.get())) {
      clients_.emplace_back().fd = std::move(fd);
    }
  }

  void Receive(Client* client) {
    char buffer[1 << 16];
    const ssize_t received = recv(client->fd.get(), buffer, sizeof(buffer), 0);
    if (received > 0) {
      client->session.in.append(buffer, static_cast<size_t>(received));
      client->closed = !engine_.Process(&client->session);
    } else if (received == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      client->closed = true;
    }
  }

  static void Flush(Client* client) {
    std::string& out = client->session.out;
    if (client->closed || out.empty()) return;
    const ssize_t sent = send(client->fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out.erase(0, static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      client->closed = true;
    }
  }

  void RemoveClosed() {
    for (Client& client : clients_) {
      if (client.closed) engine_.Remove(&client.session);
    }
    clients_.remove_if([](const Client& client) { return client.closed; });
  }

  Listener listener_;
  Fd stop_;
  StoreEngine engine_;
  std::list<Client> clients_;    // a list: the engine keeps pointers to sessions
  std::vector<pollfd> entries_;  // of the server's thread: stop, listener, then the clients
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<TcpStoreServer>> TcpStoreServer::Start(uint16_t port) {
  FT_ASSIGN_OR_RETURN(Listener listener, Listen(port));
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return ErrnoStatus("eventfd");
  auto impl = std::make_unique<Impl>(std::move(listener), std::move(stop));
  FT_RETURN_IF_ERROR(impl->StartServing());
  return std::unique_ptr<TcpStoreServer>(new TcpStoreServer(std::move(impl)));
}

TcpStoreServer::TcpStoreServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TcpStoreServer::~TcpStoreServer() = default;
uint16_t TcpStoreServer::port() const { return impl_->port(); }

}  // namespace ft
