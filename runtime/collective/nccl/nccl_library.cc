#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cuda/libraries/dynamic_library.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/nccl/nccl_api.h"

namespace ft::nccl {
namespace {

// Addresses in the library, by the names that it has for them.
struct Functions {
  Result (*get_version)(int*);
  const char* (*get_error_string)(Result);
  const char* (*get_last_error)(CommHandle);
  Result (*get_unique_id)(UniqueId*);
  Result (*comm_init_rank_config)(CommHandle*, int, UniqueId, int, Config*);
  Result (*comm_split)(CommHandle, int, int, CommHandle*, Config*);
  Result (*comm_finalize)(CommHandle);
  Result (*comm_destroy)(CommHandle);
  Result (*comm_abort)(CommHandle);
  Result (*comm_get_async_error)(CommHandle, Result*);
  Result (*comm_register)(CommHandle, void*, size_t, void**);
  Result (*comm_deregister)(CommHandle, void*);
  Result (*comm_window_register)(CommHandle, void*, size_t, WindowHandle*, int);  // null before 2.27
  Result (*comm_window_deregister)(CommHandle, WindowHandle);                     // as well
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_gather)(const void*, void*, size_t, DataType, CommHandle, void*);
  Result (*reduce_scatter)(const void*, void*, size_t, DataType, Operation, CommHandle, void*);
  Result (*all_reduce)(const void*, void*, size_t, DataType, Operation, CommHandle, void*);
  Result (*broadcast)(const void*, void*, size_t, DataType, int, CommHandle, void*);
  Result (*send)(const void*, size_t, DataType, int, CommHandle, void*);
  Result (*recv)(void*, size_t, DataType, int, CommHandle, void*);
};

absl::Status FindAll(const cuda::DynamicLibrary& library, Functions& f) {
  FT_RETURN_IF_ERROR(library.Find("ncclGetErrorString", f.get_error_string));
  FT_RETURN_IF_ERROR(library.Find("ncclGetLastError", f.get_last_error));
  FT_RETURN_IF_ERROR(library.Find("ncclGetUniqueId", f.get_unique_id));
  FT_RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", f.comm_init_rank_config));
  FT_RETURN_IF_ERROR(library.Find("ncclCommSplit", f.comm_split));
  FT_RETURN_IF_ERROR(library.Find("ncclCommFinalize", f.comm_finalize));
  FT_RETURN_IF_ERROR(library.Find("ncclCommDestroy", f.comm_destroy));
  FT_RETURN_IF_ERROR(library.Find("ncclCommAbort", f.comm_abort));
  FT_RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", f.comm_get_async_error));
  FT_RETURN_IF_ERROR(library.Find("ncclCommRegister", f.comm_register));
  FT_RETURN_IF_ERROR(library.Find("ncclCommDeregister", f.comm_deregister));
  library.Find("ncclCommWindowRegister", f.comm_window_register).IgnoreError();
  library.Find("ncclCommWindowDeregister", f.comm_window_deregister).IgnoreError();
  FT_RETURN_IF_ERROR(library.Find("ncclGroupStart", f.group_start));
  FT_RETURN_IF_ERROR(library.Find("ncclGroupEnd", f.group_end));
  FT_RETURN_IF_ERROR(library.Find("ncclAllGather", f.all_gather));
  FT_RETURN_IF_ERROR(library.Find("ncclReduceScatter", f.reduce_scatter));
  FT_RETURN_IF_ERROR(library.Find("ncclAllReduce", f.all_reduce));
  FT_RETURN_IF_ERROR(library.Find("ncclBroadcast", f.broadcast));
  FT_RETURN_IF_ERROR(library.Find("ncclSend", f.send));
  return library.Find("ncclRecv", f.recv);
}

class NcclLibrary final : public NcclApi {
 public:
  explicit NcclLibrary(const Functions& functions) : f_(functions) {}

  Result GetVersion(int* version) override { return f_.get_version(version); }
  const char* GetErrorString(Result result) override { return f_.get_error_string(result); }
  const char* GetLastError(CommHandle comm) override { return f_.get_last_error(comm); }
  Result GetUniqueId(UniqueId* id) override { return f_.get_unique_id(id); }
  Result CommInitRankConfig(CommHandle* comm, int ranks, const UniqueId& id, int rank,
                            Config* config) override {
    return f_.comm_init_rank_config(comm, ranks, id, rank, config);
  }
  Result CommSplit(CommHandle comm, int color, int key, CommHandle* made, Config* config) override {
    return f_.comm_split(comm, color, key, made, config);
  }
  Result CommFinalize(CommHandle comm) override { return f_.comm_finalize(comm); }
  Result CommDestroy(CommHandle comm) override { return f_.comm_destroy(comm); }
  Result CommAbort(CommHandle comm) override { return f_.comm_abort(comm); }
  Result CommGetAsyncError(CommHandle comm, Result* error) override {
    return f_.comm_get_async_error(comm, error);
  }
  Result CommRegister(CommHandle comm, void* data, size_t bytes, void** registration) override {
    return f_.comm_register(comm, data, bytes, registration);
  }
  Result CommDeregister(CommHandle comm, void* registration) override {
    return f_.comm_deregister(comm, registration);
  }
  Result CommWindowRegister(CommHandle comm, void* data, size_t bytes, WindowHandle* window,
                            int flags) override {
    return f_.comm_window_register == nullptr ? kInvalidUsage
                                              : f_.comm_window_register(comm, data, bytes, window, flags);
  }
  Result CommWindowDeregister(CommHandle comm, WindowHandle window) override {
    return f_.comm_window_deregister == nullptr ? kInvalidUsage : f_.comm_window_deregister(comm, window);
  }
  Result GroupStart() override { return f_.group_start(); }
  Result GroupEnd() override { return f_.group_end(); }
  Result AllGather(const void* src, void* dst, size_t count, DataType type, CommHandle comm,
                   void* stream) override {
    return f_.all_gather(src, dst, count, type, comm, stream);
  }
  Result ReduceScatter(const void* src, void* dst, size_t count, DataType type, Operation operation,
                       CommHandle comm, void* stream) override {
    return f_.reduce_scatter(src, dst, count, type, operation, comm, stream);
  }
  Result AllReduce(const void* src, void* dst, size_t count, DataType type, Operation operation,
                   CommHandle comm, void* stream) override {
    return f_.all_reduce(src, dst, count, type, operation, comm, stream);
  }
  Result Broadcast(const void* src, void* dst, size_t count, DataType type, int root, CommHandle comm,
                   void* stream) override {
    return f_.broadcast(src, dst, count, type, root, comm, stream);
  }
  Result Send(const void* src, size_t count, DataType type, int peer, CommHandle comm,
              void* stream) override {
    return f_.send(src, count, type, peer, comm, stream);
  }
  Result Recv(void* dst, size_t count, DataType type, int peer, CommHandle comm, void* stream) override {
    return f_.recv(dst, count, type, peer, comm, stream);
  }

 private:
  const Functions f_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<NcclApi>> LoadNccl() {
  FT_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                      cuda::DynamicLibrary::Open("NCCL", {"libnccl.so.2"}));
  Functions functions = {};
  FT_RETURN_IF_ERROR(library.Find("ncclGetVersion", functions.get_version));
  int version = 0;
  if (functions.get_version(&version) != kSuccess || version < kOldestVersion) {
    return absl::FailedPreconditionError(absl::StrCat(library.name(), " is NCCL ", VersionText(version), "; ",
                                                      VersionText(kOldestVersion), " or newer is needed"));
  }
  FT_RETURN_IF_ERROR(FindAll(library, functions));
  return std::make_shared<NcclLibrary>(functions);
}

std::string VersionText(int version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace ft::nccl
