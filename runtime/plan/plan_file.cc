#include "runtime/plan/plan_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

static_assert(std::endian::native == std::endian::little, "the header is written as it lies in memory");

constexpr char kMagic[12] = {'F', 'T', 'P', 'L', 'A', 'N', '\r', '\n', '\x1a', '\n', '\0', '\0'};
// Depth of messages inside messages: a Plan has 6 levels.
constexpr int kMaxDepth = 16;

struct Header {
  char magic[12];
  uint32_t version;
  uint64_t length;
  uint64_t hash;
};
static_assert(sizeof(Header) == kPlanHeaderBytes);

std::string Quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

}  // namespace

bool BeginsLikePlan(std::string_view bytes) {
  return bytes.size() >= 6 && std::memcmp(bytes.data(), kMagic, 6) == 0;
}

namespace {

absl::Status CheckMagic(std::string_view bytes, std::string_view name) {
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is empty, not a plan"));
  const size_t known = std::min(bytes.size(), sizeof(kMagic));
  if (std::memcmp(bytes.data(), kMagic, known) == 0) return absl::OkStatus();
  if (BeginsLikePlan(bytes)) {
    return absl::DataLossError(absl::StrCat(
        Quoted(name),
        " is a plan whose first bytes were changed, as a transfer in text mode does; copy it as binary"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(name), " is not a plan; make one with: ftc compile model.mlir -o plan.bin"));
}

absl::Status CheckVersion(uint32_t version, std::string_view name) {
  if (version == kPlanVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "'%s' has plan version %u, this program reads version %u; %s", std::string(name), version, kPlanVersion,
      version > kPlanVersion ? "it was made by a newer ftc: update this program"
                             : "compile the model again"));
}

absl::StatusOr<proto::Plan> ParsePayload(std::string_view payload, std::string_view name) {
  google::protobuf::io::ArrayInputStream array(payload.data(), static_cast<int>(payload.size()));
  google::protobuf::io::CodedInputStream input(&array);
  input.SetRecursionLimit(kMaxDepth);
  const google::protobuf::LogSilencer silencer;  // the one line is ours to write
  proto::Plan plan;
  if (!plan.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return absl::DataLossError(
        absl::StrCat(Quoted(name), " does not hold a well-formed plan; compile the model again"));
  }
  return plan;
}

}  // namespace

uint64_t PlanHash(std::string_view payload) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : payload) hash = (hash ^ byte) * 0x100000001b3u;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

std::string PlanHashText(uint64_t hash) { return absl::StrFormat("%016x", hash); }

absl::StatusOr<std::string> SerializePlan(proto::Plan plan) {
  plan.set_version(kPlanVersion);
  const size_t length = plan.ByteSizeLong();
  if (length > kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan has ", length, " bytes, more than the limit of ", kMaxPlanBytes));
  }
  std::string bytes(kPlanHeaderBytes + length, '\0');
  plan.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes.data() + kPlanHeaderBytes));
  Header header;
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kPlanVersion;
  header.length = length;
  header.hash = PlanHash(std::string_view(bytes).substr(kPlanHeaderBytes));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

absl::Status WritePlan(const proto::Plan& plan, const std::string& path) {
  FT_ASSIGN_OR_RETURN(const std::string bytes, SerializePlan(plan));
  return WriteFileAtomically(path, bytes);
}

absl::StatusOr<PlanFile> ParsePlan(std::string_view bytes, std::string_view name) {
  FT_RETURN_IF_ERROR(CheckMagic(bytes, name));
  if (bytes.size() < kPlanHeaderBytes) {
    return absl::DataLossError(absl::StrCat(Quoted(name), " is cut short: ", bytes.size(),
                                            " bytes, the header alone has ", kPlanHeaderBytes));
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  FT_RETURN_IF_ERROR(CheckVersion(header.version, name));
  const std::string_view payload = bytes.substr(kPlanHeaderBytes);
  if (header.length > kMaxPlanBytes) {
    return absl::DataLossError(absl::StrCat(Quoted(name), " says that it has ", header.length,
                                            " bytes, more than the limit of ", kMaxPlanBytes));
  }
  if (payload.size() != header.length) {
    return absl::DataLossError(absl::StrCat(
        Quoted(name), payload.size() < header.length ? " is cut short: " : " is too long: ", payload.size(),
        " bytes of plan, ", header.length, " were written"));
  }
  if (PlanHash(payload) != header.hash) {
    return absl::DataLossError(
        absl::StrCat(Quoted(name), " is damaged: its hash does not match; copy or compile it again"));
  }
  FT_ASSIGN_OR_RETURN(proto::Plan plan, ParsePayload(payload, name));
  return PlanFile{std::move(plan), header.hash};
}

absl::StatusOr<PlanFile> ReadPlan(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kSequential));
  if (file.bytes().size() > kPlanHeaderBytes + kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(path), " is too large for a plan: ", file.bytes().size(), " bytes"));
  }
  return ParsePlan({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

}  // namespace ft
