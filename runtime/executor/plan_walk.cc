#include "runtime/executor/plan_walk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/own_parts.h"
#include "runtime/executor/walk_inputs.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_clusters.h"
#include "runtime/plan/stream_use.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
// Commands in the order of the list, cut where they go from one stream to another.
struct PlanWalk::Program {
  // When each command of a span began and ended.
  struct Times final : StreamObserver {
    struct Time {
      int64_t instruction, begin_ns, end_ns;
    };
    void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) override {
      list.push_back({info.instruction, begin_ns, end_ns});
    }
    std::vector<Time> list;
  };
  struct Segment {
    Stream* stream;
    std::vector<Command> commands;
  };
  std::vector<Segment> segments;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<std::vector<CopyRegion>>> copies;
  std::vector<std::unique_ptr<CommandInfo>> infos;
  std::vector<double> seconds;  // by instruction
  Times times;

  void Add(Stream* stream, const Command& command) {
    if (segments.empty() || segments.back().stream != stream) segments.push_back({stream, {}});
    segments.back().commands.push_back(command);
  }
};

absl::StatusOr<std::unique_ptr<PlanWalk>> PlanWalk::Create(const proto::Plan& plan, const BoundPlan& bound,
                                                           Device& device, int rank) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Memory> arena, device.Allocate(bound.arena_bytes()));
  std::unique_ptr<Memory> host_arena;
  if (bound.host_arena_bytes() > 0) {
    FT_ASSIGN_OR_RETURN(host_arena, device.AllocateHost(bound.host_arena_bytes()));
  }
  std::unique_ptr<PlanWalk> walk(
      new PlanWalk(plan, bound, device, rank, std::move(arena), std::move(host_arena)));
  FT_RETURN_IF_ERROR(walk->Load());
  return walk;
}

PlanWalk::PlanWalk(const proto::Plan& plan, const BoundPlan& bound, Device& device, int rank,
                   std::unique_ptr<Memory> arena, std::unique_ptr<Memory> host_arena)
    : plan_(plan),
      bound_(bound),
      device_(device),
      rank_(rank),
      arena_(std::move(arena)),
      host_arena_(std::move(host_arena)),
      resolver_(plan, bound, rank, arena_->data(), host_arena_ == nullptr ? nullptr : host_arena_->data()) {}

PlanWalk::~PlanWalk() = default;

absl::Status PlanWalk::Load() {
  FT_ASSIGN_OR_RETURN(auto clusters, ClustersOf(plan_));
  clusters_.assign(clusters.begin(), clusters.end());
  FT_ASSIGN_OR_RETURN(compute_, device_.CreateStream("walk", 1));
  if (UsesStream(plan_, proto::HOST_COMPUTE)) {
    FT_ASSIGN_OR_RETURN(host_, device_.CreateStream("walk_host", 1));
  }
  for (int p = 0; p < plan_.programs_size(); ++p) {
    programs_.push_back(std::make_unique<Program>());
    const int instructions = plan_.programs(p).instructions_size();
    programs_[p]->seconds.resize(static_cast<size_t>(instructions));
    for (int i = 0; i < instructions; ++i) FT_RETURN_IF_ERROR(AddInstruction(p, i));
    programs_[p]->times.list.reserve(programs_[p]->infos.size());
  }
  return absl::OkStatus();
}

absl::Status PlanWalk::AddInstruction(int p, int i) {
  const proto::Instruction& instruction = plan_.programs(p).instructions(i);
  Program& program = *programs_[p];
  const bool is_kernel = instruction.opcode() == proto::KERNEL;
  if (is_kernel ? !resolver_.Runs(instruction) : !IsTransfer(instruction.opcode())) return absl::OkStatus();
  auto info = std::make_unique<CommandInfo>(CommandInfo{.title = InstructionTitle(plan_, instruction),
                                                        .category = instruction.phase(),
                                                        .program = p,
                                                        .instruction = i});
  if (is_kernel) {
    KernelAttributes attributes = AttributesOf(instruction);
    if (instruction.cluster_plus_one() != 0)
      attributes.SetCluster(clusters_[instruction.cluster_plus_one() - 1]);
    const bool on_host = instruction.stream() == proto::HOST_COMPUTE;
    const KernelOperands operands = resolver_.Operands(instruction);
    absl::StatusOr<std::unique_ptr<Kernel>> kernel =
        on_host ? device_.CreateHostKernel(instruction.kernel(), operands, attributes)
                : device_.CreateKernel(instruction.kernel(), operands, attributes);
    if (!kernel.ok())
      return absl::FailedPreconditionError(absl::StrCat(InstructionPlace(plan_, p, i), " on ",
                                                        std::string(device_.name()), ": ",
                                                        kernel.status().message()));
    program.kernels.push_back(*std::move(kernel));
    program.Add(on_host ? host_.get() : compute_.get(),
                Command::Launch(program.kernels.back().get(), info.get()));
  } else {
    program.copies.push_back(std::make_unique<std::vector<CopyRegion>>(StandIn(instruction)));
    if (program.copies.back()->empty()) return absl::OkStatus();
    program.Add(compute_.get(), Command::Copy(program.copies.back().get(), info.get()));
  }
  program.infos.push_back(std::move(info));
  return absl::OkStatus();
}

// What the rank sends itself, and for what others send it the largest of its own pieces, as far as that goes.
std::vector<CopyRegion> PlanWalk::OwnPieces(const proto::Instruction& transfer) const {
  const Moves moves = resolver_.Moved(transfer);
  const int own = bound_.mesh.ShardRank(rank_);
  const auto address = [this](const proto::Operand& operand, const MovedPiece& piece) {
    return resolver_.Resolve(operand).as<char>() + piece.begin;
  };
  std::vector<CopyRegion> regions;
  ForEachOwn(moves.sends, moves.receives, own, [&](const MovedPiece& from, const MovedPiece& to) {
    regions.push_back(
        {address(transfer.in(from.operand), from), address(transfer.out(to.operand), to), to.bytes});
  });
  const auto largest = std::max_element(moves.sends.begin(), moves.sends.end(),
                                        [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  for (const MovedPiece& to : moves.receives)
    if (to.peer != own && largest != moves.sends.end())
      regions.push_back({address(transfer.in(largest->operand), *largest),
                         address(transfer.out(to.operand), to), std::min(to.bytes, largest->bytes)});
  return regions;
}

std::vector<CopyRegion> PlanWalk::StandIn(const proto::Instruction& transfer) const {
  std::vector<CopyRegion> regions;
  const auto add = [&](const void* from, void* to, uint64_t bytes) {
    if (from != to && bytes > 0) regions.push_back({from, to, bytes});
  };
  if (transfer.opcode() == proto::ALL_TO_ALL) return OwnPieces(transfer);
  for (int i = 0; i < transfer.in_size(); ++i) {
    const Tensor in = resolver_.Resolve(transfer.in(i));
    if (transfer.opcode() == proto::ALL_REDUCE) continue;  // in place
    const Tensor out = resolver_.Resolve(transfer.out(i));
    const auto ranks = static_cast<uint64_t>(AxisSize(bound_.mesh, transfer.axis()));
    const auto own = transfer.axis() == proto::AXIS_SHARD     ? bound_.mesh.ShardRank(rank_)
                     : transfer.axis() == proto::AXIS_REPLICA ? bound_.mesh.ReplicaRank(rank_)
                                                              : rank_;
    const uint64_t slice =
        static_cast<uint64_t>((transfer.opcode() == proto::ALL_GATHER ? in : out).elements()) *
        SizeOf(in.dtype);
    if (transfer.opcode() == proto::COPY) {
      add(in.data, out.data, slice);
    } else if (transfer.opcode() == proto::REDUCE_SCATTER) {
      add(in.as<char>() + static_cast<uint64_t>(own) * slice, out.data, slice);
    } else {
      for (uint64_t r = 0; r < ranks; ++r) add(in.data, out.as<char>() + r * slice, slice);
    }
  }
  return regions;
}

absl::Status PlanWalk::FillInputs(uint64_t seed) {
  for (const proto::Program& program : plan_.programs())
    for (const proto::Port& port : program.inputs()) {
      FT_ASSIGN_OR_RETURN(const std::vector<char> bytes,
                          WalkInput(plan_, port, resolver_.Resolve(port.operand()), seed));
      FT_RETURN_IF_ERROR(device_.Write(resolver_.Resolve(port.operand()).data, bytes.data(), bytes.size()));
    }
  return absl::OkStatus();
}

absl::Status PlanWalk::Run(int p) {
  Program& program = *programs_[p];
  std::fill(program.seconds.begin(), program.seconds.end(), 0);
  for (const Program::Segment& segment : program.segments) {
    program.times.list.clear();
    segment.stream->Observe(&program.times);
    segment.stream->Enqueue(segment.commands);
    segment.stream->Synchronize();
    segment.stream->Observe(nullptr);
    const std::vector<Program::Times::Time>& times = program.times.list;
    for (size_t i = 0; i < times.size(); ++i) {
      const int64_t until = i + 1 < times.size() ? times[i + 1].begin_ns : times[i].end_ns;
      program.seconds[static_cast<size_t>(times[i].instruction)] =
          static_cast<double>(until - times[i].begin_ns) * 1e-9;
    }
  }
  return device_.status();
}

const std::vector<double>& PlanWalk::seconds(int program) const { return programs_[program]->seconds; }

}  // namespace ft
