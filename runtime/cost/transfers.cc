#include "runtime/cost/transfers.h"

#include <algorithm>
#include <bit>

#include "runtime/cost/curve.h"

namespace ft {
namespace {

// Smaller than all that was measured, it takes the time of the smallest.
TransferCost MeasuredCost(const Target::Collective& measured, double bytes) {
  const Curve& points = measured.bytes_per_s();
  const double floor_s = points[0].at() / points[0].value();
  const double seconds = std::max(bytes / ValueAt(points, bytes, 0), floor_s);
  return {.latency_s = floor_s, .bytes_s = seconds - floor_s};
}

double LatencyOf(const Target& target, bool is_all_reduce, const NodeLayout& layout) {
  const double ranks = layout.ranks, nodes = layout.nodes, on_node = layout.most_on_node;
  const Target::Link& begins = layout.nodes > 1 ? target.network() : target.node();
  // A ring through all ranks goes from node to node as seldom as it can. An all-reduce goes up a tree of
  // nodes and down again, along a chain of the ranks of each.
  const double depth = std::bit_width(static_cast<unsigned>(layout.nodes - 1));
  const double steps_in_node = is_all_reduce ? 2 * (on_node - 1) : ranks - nodes;
  const double steps_between = is_all_reduce ? 2 * depth : nodes - 1;
  return begins.latency_s() + steps_in_node * target.node().step_s() +
         steps_between * target.network().step_s();
}

// Each rank sends each other one its part of `bytes`: nobody passes anything on.
TransferCost AllToAllCost(const Target& target, double bytes, const NodeLayout& layout) {
  const double ranks = layout.ranks, piece = bytes / ranks;
  const double in_node = piece * (layout.most_on_node - 1) /
                         (target.node().bytes_per_s() * ValueAt(target.node_ramp(), piece, 1));
  const double between = layout.nodes > 1
                             ? piece * (ranks - layout.least_on_node) /
                                   (target.network().bytes_per_s() * ValueAt(target.network_ramp(), piece, 1))
                             : 0;
  return {.latency_s = LatencyOf(target, false, layout), .bytes_s = std::max(in_node, between)};
}

}  // namespace

const Target::Collective* FindMeasured(const Target& target, proto::Opcode opcode, const NodeLayout& layout) {
  if (layout.most_on_node != layout.least_on_node) return nullptr;
  for (const Target::Collective& measured : target.collectives()) {
    if (measured.opcode() == opcode && measured.nodes() == static_cast<uint32_t>(layout.nodes) &&
        measured.ranks_on_node() == static_cast<uint32_t>(layout.most_on_node))
      return &measured;
  }
  return nullptr;
}

TransferCost CollectiveCost(const Target& target, proto::Opcode opcode, uint64_t bytes,
                            const NodeLayout& layout) {
  if (layout.ranks <= 1) return {};
  if (const Target::Collective* measured = FindMeasured(target, opcode, layout))
    return MeasuredCost(*measured, static_cast<double>(bytes));
  if (opcode == proto::ALL_TO_ALL) return AllToAllCost(target, static_cast<double>(bytes), layout);
  const bool is_all_reduce = opcode == proto::ALL_REDUCE;
  const double ranks = layout.ranks, on_node = layout.most_on_node, least = layout.least_on_node;
  // The ranks of a node share what comes from other nodes, each through its own adapter, and pass it on to
  // each other while more is coming: the slower of the two links counts.
  const double whole = static_cast<double>(bytes) * (is_all_reduce ? 2 : 1);
  const double of_rank = static_cast<double>(bytes) / ranks;
  const double in_node = whole * (on_node - 1) / on_node /
                         (target.node().bytes_per_s() * ValueAt(target.node_ramp(), of_rank, 1));
  const double between =
      layout.nodes > 1 ? whole * (ranks - least) / ranks / least /
                             (target.network().bytes_per_s() * ValueAt(target.network_ramp(), of_rank, 1))
                       : 0;
  return {.latency_s = LatencyOf(target, is_all_reduce, layout), .bytes_s = std::max(in_node, between)};
}

void SetLinkFrom(const Target::Collective& gathers, Target& target) {
  const int nodes = static_cast<int>(gathers.nodes()), on_node = static_cast<int>(gathers.ranks_on_node());
  const NodeLayout layout{
      .ranks = nodes * on_node, .nodes = nodes, .most_on_node = on_node, .least_on_node = on_node};
  Target::Link& link = nodes > 1 ? *target.mutable_network() : *target.mutable_node();
  const Target::Point& least = gathers.bytes_per_s(0);
  const Target::Point& most = gathers.bytes_per_s(gathers.bytes_per_s_size() - 1);
  const double ranks = layout.ranks;
  const double part = nodes > 1 ? (ranks - on_node) / ranks / on_node : (ranks - 1) / ranks;
  const Curve& ramp = nodes > 1 ? target.network_ramp() : target.node_ramp();
  // Bytes as the rate counts them, and seconds, of both: what they take is latency + bytes / rate.
  const auto bytes_of = [&](const Target::Point& point) {
    return point.at() * part / ValueAt(ramp, point.at() / ranks, 1);
  };
  const double few = bytes_of(least), many = bytes_of(most);
  const double short_s = least.at() / least.value(), long_s = most.at() / most.value();
  link.set_latency_s(0);
  const double steps = LatencyOf(target, false, layout);
  if (many > few && long_s > short_s) {
    const double latency = short_s - few * (long_s - short_s) / (many - few);
    link.set_latency_s(std::max(0.0, latency - steps));
  }
  const double rest = long_s - steps - link.latency_s();
  link.set_bytes_per_s(many / (rest > 0 ? rest : long_s));
}

TransferCost CopyCost(const Target& target, uint64_t bytes) {
  return {.latency_s = target.copies().latency_s(),
          .bytes_s = static_cast<double>(bytes) / target.copies().bytes_per_s()};
}

}  // namespace ft
