#include "runtime/executor/link_probe.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/load_element.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr uint64_t kLargestElement = 8;  // bytes

// Numbers that repeat themselves along a buffer, none above 255: bf16 still counts them exactly.
class KnownNumbers {
 public:
  KnownNumbers(DType dtype, int ranks) : dtype_(dtype), ranks_(ranks), gap_((ranks + 63) / 64) {}

  // What a rank gives for a gather, by element of its slice.
  std::vector<std::byte> OfSlice(int rank) const {
    constexpr uint64_t kPrime = 251;
    const auto r = static_cast<uint64_t>(rank);
    return Pattern(kPrime, [r](uint64_t at) { return static_cast<int>((at * 7 + r * 89 + 1) % kPrime); });
  }

  // What a rank gives for a sum, by element of the whole, and the sum. It is 0 to 3, and 0 on most ranks
  // where there are many. A summand that is missing, there twice or of another element shows.
  std::vector<std::byte> Summand(int rank) const {
    return Pattern(period(), [&](uint64_t at) { return OfRank(rank, at); });
  }
  std::vector<std::byte> Sum() const {
    return Pattern(period(), [&](uint64_t at) {
      int sum = 0;
      for (int rank = 0; rank < ranks_; ++rank) sum += OfRank(rank, at);
      return sum;
    });
  }

  double Get(const std::byte* from) const {
    switch (dtype_) {
      case DType::kF64:
        return LoadElement<double>(from);
      case DType::kI32:
        return LoadElement<int32_t>(from);
      case DType::kI64:
        return static_cast<double>(LoadElement<int64_t>(from));
      case DType::kU8:
        return LoadElement<uint8_t>(from);
      default:
        float value = 0;
        ConvertElements(dtype_, from, DType::kF32, reinterpret_cast<std::byte*>(&value), 1);
        return value;
    }
  }

 private:
  uint64_t period() const { return 4 * static_cast<uint64_t>(gap_); }
  int OfRank(int rank, uint64_t at) const {
    const auto r = static_cast<uint64_t>(rank);
    return (at + r) % static_cast<uint64_t>(gap_) == 0 ? static_cast<int>((at * 5 + r * 3 + 1) % 4) : 0;
  }

  // `number(at)` for one period, as elements.
  template <typename F>
  std::vector<std::byte> Pattern(uint64_t period, const F& number) const {
    std::vector<std::byte> bytes(period * SizeOf(dtype_));
    for (uint64_t at = 0; at < period; ++at) Put(number(at), bytes.data() + at * SizeOf(dtype_));
    return bytes;
  }

  template <typename T>
  static void Store(T value, std::byte* to) {
    std::memcpy(to, &value, sizeof(value));
  }

  void Put(int number, std::byte* to) const {
    switch (dtype_) {
      case DType::kF64:
        return Store<double>(number, to);
      case DType::kI32:
        return Store<int32_t>(number, to);
      case DType::kI64:
        return Store<int64_t>(number, to);
      case DType::kU8:
        return Store(static_cast<uint8_t>(number), to);
      default:
        const auto value = static_cast<float>(number);
        ConvertElements(DType::kF32, reinterpret_cast<const std::byte*>(&value), dtype_, to, 1);
    }
  }

  const DType dtype_;
  const int ranks_;
  const int gap_;
};

// `bytes` that are `pattern` again and again, from byte `first_byte` of all that on.
void Repeat(const std::vector<std::byte>& pattern, uint64_t first_byte, std::byte* to, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t from = (first_byte + at) % pattern.size();
    const uint64_t n = std::min(bytes - at, pattern.size() - from);
    std::memcpy(to + at, pattern.data() + from, n);
    at += n;
  }
}

class CallTask final : public HostTask {
 public:
  CallTask(Communicator& communicator, const LinkCall& call, const void* source, void* result,
           uint64_t elements)
      : communicator_(communicator), call_(call), source_(source), result_(result), elements_(elements) {}

  absl::Status Run() override {
    const CollectiveLabel label{.name = "the check of the links", .sequence = sequence_++};
    if (call_.opcode == proto::ALL_GATHER)
      return communicator_.AllGather(source_, result_, elements_ * SizeOf(call_.dtype), label);
    const ReducePart part{.src = source_, .dst = result_, .count = elements_, .dtype = call_.dtype};
    const auto parts = absl::MakeConstSpan(&part, 1);
    return call_.opcode == proto::ALL_REDUCE ? communicator_.AllReduce(parts, label)
                                             : communicator_.ReduceScatter(parts, label);
  }

 private:
  Communicator& communicator_;
  const LinkCall call_;
  const void* source_;
  void* result_;
  const uint64_t elements_;  // of a slice, or of an all_reduce
  uint64_t sequence_ = 0;
};

// As executors have their arenas; `memory` stays until Detach, also after an error.
absl::Status AllocateFor(Communicator& communicator, Device& device, uint64_t bytes,
                         std::unique_ptr<Memory>& memory) {
  FT_ASSIGN_OR_RETURN(memory,
                      communicator.has_windows() ? device.AllocateMappable(bytes) : device.Allocate(bytes));
  return communicator.RegisterBuffer(memory->data(), bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LinkProbe>> LinkProbe::Create(Device& device, Communicator& communicator,
                                                             uint64_t most_bytes) {
  auto probe = absl::WrapUnique(new LinkProbe(device, communicator));
  const uint64_t bytes = std::max(most_bytes, kLargestElement * static_cast<uint64_t>(communicator.size()));
  FT_RETURN_IF_ERROR(AllocateFor(communicator, device, bytes, probe->source_));
  FT_RETURN_IF_ERROR(AllocateFor(communicator, device, bytes, probe->result_));
  FT_ASSIGN_OR_RETURN(probe->stream_, device.CreateStream("check", 1));
  communicator.AttachStream(probe->stream_->native());
  communicator.Supervise([stream = probe->stream_.get()] { return stream->in_flight(); },
                         [&device](const absl::Status& status) { device.Cancel(status); });
  return probe;
}

LinkProbe::~LinkProbe() { communicator_.Detach(); }

uint64_t LinkProbe::SliceElements(const LinkCall& call) const {
  const auto slices =
      call.opcode == proto::ALL_REDUCE ? uint64_t{1} : static_cast<uint64_t>(communicator_.size());
  return std::max<uint64_t>(1, call.bytes / SizeOf(call.dtype) / slices);
}

uint64_t LinkProbe::WholeBytes(const LinkCall& call) const {
  const auto slices =
      call.opcode == proto::ALL_REDUCE ? uint64_t{1} : static_cast<uint64_t>(communicator_.size());
  return SliceElements(call) * slices * SizeOf(call.dtype);
}

std::unique_ptr<HostTask> LinkProbe::TaskOf(const LinkCall& call) {
  return std::make_unique<CallTask>(communicator_, call, source_->data(), result_->data(),
                                    SliceElements(call));
}

absl::Status LinkProbe::Run(const LinkCall& call, int64_t times) {
  const std::unique_ptr<HostTask> task = TaskOf(call);
  const CommandInfo info{.title = absl::AsciiStrToLower(proto::Opcode_Name(call.opcode)),
                         .category = "check",
                         .instruction = -1};
  const std::vector<Command> commands(static_cast<size_t>(times), Command::Call(task.get(), &info));
  stream_->Enqueue(commands);
  stream_->Synchronize();
  return device_.status();
}

absl::Status LinkProbe::Fill(const LinkCall& call) {
  const int rank = communicator_.rank();
  const KnownNumbers numbers(call.dtype, communicator_.size());
  const uint64_t slice = SliceElements(call) * SizeOf(call.dtype);
  std::vector<std::byte> host(call.opcode == proto::REDUCE_SCATTER ? WholeBytes(call) : slice);
  Repeat(call.opcode == proto::ALL_GATHER ? numbers.OfSlice(rank) : numbers.Summand(rank), 0, host.data(),
         host.size());
  FT_RETURN_IF_ERROR(device_.Write(source_->data(), host.data(), host.size()));
  // What was there before is no result.
  host.assign(call.opcode == proto::REDUCE_SCATTER ? slice : WholeBytes(call), std::byte{0xA5});
  return device_.Write(result_->data(), host.data(), host.size());
}

absl::Status LinkProbe::Compare(const LinkCall& call) {
  const int rank = communicator_.rank();
  const KnownNumbers numbers(call.dtype, communicator_.size());
  const uint64_t element = SizeOf(call.dtype), slice = SliceElements(call) * element;
  const bool gathers = call.opcode == proto::ALL_GATHER;
  std::vector<std::byte> expected(call.opcode == proto::REDUCE_SCATTER ? slice : WholeBytes(call));
  for (int from = 0; gathers && from < communicator_.size(); ++from)
    Repeat(numbers.OfSlice(from), 0, expected.data() + slice * static_cast<uint64_t>(from), slice);
  if (!gathers) {
    const bool scatters = call.opcode == proto::REDUCE_SCATTER;
    Repeat(numbers.Sum(), scatters ? slice * static_cast<uint64_t>(rank) : 0, expected.data(),
           expected.size());
  }
  std::vector<std::byte> result(expected.size());
  FT_RETURN_IF_ERROR(device_.Read(result.data(), result_->data(), result.size()));
  if (result == expected) return absl::OkStatus();
  const auto differs = std::mismatch(result.begin(), result.end(), expected.begin());
  const uint64_t at = static_cast<uint64_t>(differs.first - result.begin()) / element;
  return absl::DataLossError(absl::StrCat(
      "a wrong result: element ", at, " of ", result.size() / element, " of ", std::string(Name(call.dtype)),
      " is ", numbers.Get(result.data() + at * element), ", and should be ",
      numbers.Get(expected.data() + at * element), ", as ", gathers ? "a rank sent it" : "the ranks' sum"));
}

absl::Status LinkProbe::CheckResult(const LinkCall& call) {
  FT_RETURN_IF_ERROR(Fill(call));
  FT_RETURN_IF_ERROR(Run(call, 1));
  return Compare(call);
}

absl::StatusOr<double> LinkProbe::Measure(const LinkCall& call, int64_t times) {
  const absl::Time begin = absl::Now();
  FT_RETURN_IF_ERROR(Run(call, times));
  return absl::ToDoubleSeconds(absl::Now() - begin) / static_cast<double>(times);
}

}  // namespace ft
