#include "runtime/plan/all_to_all.h"

#include <cstring>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/plan/rank_share.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/verify_all_to_all.h"

namespace ft {
namespace {

constexpr uint64_t kBlock = 8;

// Units of matrices, slices of them, a group of five of 3 x 7 and one of two of 2 x 2; the move there and
// back.
class AllToAllTest : public testing::Test {
 protected:
  AllToAllTest() {
    plan_.set_block_elements(kBlock);
    plan_.set_shards_gradients(true);
    plan_.add_programs()->add_instructions();
    for (int unit = 0; unit < 3; ++unit) AddUnit(unit);
    for (int unit = 0; unit < 3; ++unit) slices_.push_back(AddSlice(unit));
    for (uint32_t i = 0; i < 5; ++i) wholes_.push_back(AddShare(i, 5, 21));
    for (uint32_t i = 0; i < 2; ++i) wholes_.push_back(AddShare(i, 2, 4));
    there_ = Move(slices_, wholes_, {0, 2, 3, 5, 6, 1, 4});
    back_ = Move(wholes_, slices_, {0, 2, 3, 5, 6, 1, 4});
  }

  void AddParameter(int unit, std::vector<uint64_t> shape) {
    proto::Parameter& parameter = *plan_.add_parameters();
    parameter.set_name(absl::StrCat("p", plan_.parameters_size() - 1));
    parameter.set_unit(static_cast<uint32_t>(unit));
    for (const uint64_t extent : shape) parameter.add_shape(extent);
    proto::Unit& in = *plan_.mutable_units(unit);
    parameter.set_offset(in.elements());
    in.set_elements(in.elements() + (ElementsOf(parameter) + kBlock - 1) / kBlock * kBlock);
  }
  void AddUnit(int unit) {
    plan_.add_units()->set_name(absl::StrCat("u", unit));
    AddParameter(unit, {3, 7});
    if (unit < 2) AddParameter(unit, {2, 2});
    AddParameter(unit, {3, 7});
  }

  proto::Operand Whole() {
    proto::Operand operand;
    operand.set_buffer_plus_one(static_cast<uint32_t>(plan_.buffers_size()));
    operand.set_dtype(proto::F32);
    return operand;
  }
  proto::Operand AddSlice(int unit) {
    proto::SizeExpr& size = *plan_.add_buffers()->mutable_size();
    size.set_kind(proto::SizeExpr::UNIT_SLICE);
    size.set_value(4);
    size.set_unit(static_cast<uint32_t>(unit));
    proto::Operand operand = Whole();
    operand.set_whole(true);
    return operand;
  }
  proto::Operand AddShare(uint32_t index, uint32_t count, uint64_t elements) {
    proto::SizeExpr& size = *plan_.add_buffers()->mutable_size();
    size.set_kind(proto::SizeExpr::SHARE);
    size.set_value(4 * elements);
    size.set_index(index);
    size.set_count(count);
    proto::Operand operand = Whole();
    operand.add_shape(elements == 21 ? 3 : 2);
    operand.add_shape(elements == 21 ? 7 : 2);
    return operand;
  }
  static proto::Instruction Move(const std::vector<proto::Operand>& from,
                                 const std::vector<proto::Operand>& to,
                                 const std::vector<int64_t>& parameters) {
    proto::Instruction instruction;
    instruction.set_opcode(proto::ALL_TO_ALL);
    for (const proto::Operand& operand : from) *instruction.add_in() = operand;
    for (const proto::Operand& operand : to) *instruction.add_out() = operand;
    proto::Attribute& moved = *instruction.add_attributes();
    moved.set_name(kMovedParameters);
    moved.mutable_ints()->mutable_values()->Assign(parameters.begin(), parameters.end());
    return instruction;
  }

  uint64_t Slice(uint32_t unit, uint64_t ranks) const {
    return SliceElements(plan_.units(static_cast<int>(unit)).elements(), kBlock, ranks);
  }
  const proto::SizeExpr& SizeOfOperand(const proto::Operand& operand) const {
    return plan_.buffers(static_cast<int>(operand.buffer_plus_one()) - 1).size();
  }

  absl::Status Verify(const proto::Instruction& instruction) const {
    return VerifyAllToAll({.plan = plan_, .program = 0, .instruction = 0}, instruction);
  }

  proto::Plan plan_;
  std::vector<proto::Operand> slices_, wholes_;
  proto::Instruction there_, back_;
};

// What ranks hold, as numbers: those of a slice are its elements in the unit, plus 1000 x the unit.
using Memory = std::vector<std::vector<std::vector<int64_t>>>;  // by rank, operand

// Plays what MovesOf says, as a communicator does it, on elements of four bytes.
void Play(const proto::Plan& plan, int ranks, const proto::Instruction& move, const Memory& from,
          Memory& to) {
  std::vector<Moves> moves;
  for (int rank = 0; rank < ranks; ++rank)
    moves.push_back(MovesOf(plan, {.replica = 1, .shard = ranks}, rank, move));
  uint64_t most = 0;
  for (int sender = 0; sender < ranks; ++sender)
    for (int receiver = 0; receiver < ranks; ++receiver) {
      std::vector<MovedPiece> sent, received;
      for (const MovedPiece& piece : moves[static_cast<size_t>(sender)].sends)
        if (piece.peer == receiver) sent.push_back(piece);
      for (const MovedPiece& piece : moves[static_cast<size_t>(receiver)].receives)
        if (piece.peer == sender) received.push_back(piece);
      ASSERT_EQ(sent.size(), received.size());
      uint64_t bytes = 0;
      for (size_t k = 0; k < sent.size(); ++k) {
        ASSERT_EQ(sent[k].bytes, received[k].bytes);
        bytes += sent[k].bytes;
        const auto& source = from[static_cast<size_t>(sender)][static_cast<size_t>(sent[k].operand)];
        auto& target = to[static_cast<size_t>(receiver)][static_cast<size_t>(received[k].operand)];
        ASSERT_LE(sent[k].begin + sent[k].bytes, source.size() * 4);
        ASSERT_LE(received[k].begin + received[k].bytes, target.size() * 4);
        for (uint64_t i = 0; i < sent[k].bytes / 4; ++i)
          target[received[k].begin / 4 + i] = source[sent[k].begin / 4 + i];
      }
      if (sender != receiver) most = std::max(most, bytes);
    }
  for (const Moves& all : moves) EXPECT_EQ(all.most_bytes, most);
}

TEST_F(AllToAllTest, EachParameterIsWholeOnOneRankAndComesBack) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 16}) {
    const auto n = static_cast<uint64_t>(ranks);
    Memory slices(n), wholes(n), returned(n);
    for (uint64_t rank = 0; rank < n; ++rank) {
      for (uint32_t unit = 0; unit < 3; ++unit) {
        slices[rank].emplace_back();
        for (uint64_t i = 0; i < Slice(unit, n); ++i)
          slices[rank].back().push_back(static_cast<int64_t>(1000 * unit + rank * Slice(unit, n) + i));
        returned[rank].emplace_back(Slice(unit, n), -1);
      }
      for (const proto::Operand& whole : wholes_)
        wholes[rank].emplace_back(
            HasShare(SizeOfOperand(whole), n, rank) ? SizeOfOperand(whole).value() / 4 : 0, -1);
    }
    Play(plan_, ranks, there_, slices, wholes);
    const std::vector<uint32_t> parameters = MovedParameters(there_);
    for (size_t i = 0; i < wholes_.size(); ++i) {
      const uint64_t group = i < 5 ? 0 : 5, index = i - group;
      for (uint64_t rank = 0; rank < n; ++rank) {
        const uint64_t member = index * n + rank;
        if (member >= (i < 5 ? 5u : 2u)) {
          EXPECT_TRUE(wholes[rank][i].empty());
          continue;
        }
        const proto::Parameter& parameter =
            plan_.parameters(static_cast<int>(parameters[static_cast<size_t>(group + member)]));
        ASSERT_EQ(wholes[rank][i].size(), ElementsOf(parameter));
        for (uint64_t at = 0; at < wholes[rank][i].size(); ++at)
          EXPECT_EQ(wholes[rank][i][at],
                    static_cast<int64_t>(1000 * parameter.unit() + parameter.offset() + at));
      }
    }
    Play(plan_, ranks, back_, wholes, returned);
    const UnitParameters of_units = ParametersOfUnits(plan_);
    for (uint64_t rank = 0; rank < n; ++rank)
      for (uint32_t unit = 0; unit < 3; ++unit)
        for (uint64_t i = 0; i < Slice(unit, n); ++i) {
          const auto element = static_cast<int64_t>(rank * Slice(unit, n) + i);
          const bool is_moved =
              std::any_of(of_units[unit].begin(), of_units[unit].end(), [&](const ParameterRange& range) {
                return range.number != 7 && range.begin <= element && element < range.end;
              });
          EXPECT_EQ(returned[rank][unit][i], is_moved ? slices[rank][unit][i] : -1) << ranks << " ranks";
        }
  }
}

TEST_F(AllToAllTest, AKernelRunsWhereItsResultIs) {
  proto::Instruction kernel;
  *kernel.add_in() = wholes_[1];
  *kernel.add_out() = wholes_[1];
  const auto runs = [&](int ranks, int rank) {
    return RunsOn(plan_, {.replica = 1, .shard = ranks}, rank, kernel);
  };
  EXPECT_TRUE(runs(1, 0));   // the second of five
  EXPECT_TRUE(runs(3, 1));   // the fifth
  EXPECT_FALSE(runs(3, 2));  // a sixth
  EXPECT_FALSE(runs(5, 0));
  EXPECT_EQ(ShareOfRank(plan_, {.replica = 1, .shard = 3}, kernel), 1);
  EXPECT_EQ(ShareOfRank(plan_, {.replica = 1, .shard = 5}, kernel), 0);
  EXPECT_EQ(SizeInBytes(plan_, SizeOfOperand(wholes_[1]), 4), 84u);
  EXPECT_EQ(SizeInBytes(plan_, SizeOfOperand(wholes_[1]), 5), 0u);
  const Place place{.plan = plan_, .program = 0, .instruction = 0};
  EXPECT_TRUE(VerifyShares(place, kernel).ok());
  *kernel.add_in() = wholes_[0];
  EXPECT_FALSE(VerifyShares(place, kernel).ok());
  *kernel.mutable_in(1) = slices_[0];
  EXPECT_TRUE(VerifyShares(place, kernel).ok());
  *kernel.add_out() = slices_[1];
  EXPECT_FALSE(VerifyShares(place, kernel).ok());
}

// Else one rank would reach past its arena.
TEST_F(AllToAllTest, OnlyKernelsThatMakeOneTouchAShare) {
  const Place place{.plan = plan_, .program = 0, .instruction = 0};
  proto::Instruction kernel;
  *kernel.add_in() = slices_[0];
  *kernel.add_out() = slices_[0];
  *kernel.mutable_workspace() = wholes_[1];
  EXPECT_FALSE(VerifyShares(place, kernel).ok());
  *kernel.mutable_workspace() = slices_[1];
  EXPECT_TRUE(VerifyShares(place, kernel).ok());
  for (const proto::Opcode opcode : {proto::ALL_REDUCE, proto::ALL_GATHER, proto::COPY}) {
    proto::Instruction other;
    other.set_opcode(opcode);
    *other.add_in() = slices_[0];
    *other.add_out() = slices_[1];
    EXPECT_TRUE(VerifyShares(place, other).ok());
    *other.mutable_out(0) = wholes_[1];
    EXPECT_FALSE(VerifyShares(place, other).ok());
    *other.mutable_in(0) = wholes_[1];
    EXPECT_FALSE(VerifyShares(place, other).ok());
  }
}

TEST_F(AllToAllTest, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(Verify(there_), absl::OkStatus());
  EXPECT_EQ(Verify(back_), absl::OkStatus());
  const auto refused = [&](const char* why, const std::function<void(proto::Instruction&)>& damage) {
    for (const proto::Instruction* whole : {&there_, &back_}) {
      proto::Instruction damaged = *whole;
      damage(damaged);
      const absl::Status status = Verify(damaged);
      EXPECT_TRUE(std::string(status.message()).find(why) != std::string::npos) << why << ": " << status;
    }
  };
  const auto wholes = [](proto::Instruction& move) {
    return move.in_size() == 3 ? move.mutable_out() : move.mutable_in();
  };
  const auto slices = [](proto::Instruction& move) {
    return move.in_size() == 3 ? move.mutable_in() : move.mutable_out();
  };
  const auto numbers = [](proto::Instruction& move) { return move.mutable_attributes(0)->mutable_ints(); };
  refused("two slices of a unit", [&](auto& move) { *slices(move)->Mutable(1) = slices_[0]; });
  refused("no slice of its unit", [&](auto& move) { slices(move)->RemoveLast(); });
  refused("different types", [&](auto& move) { slices(move)->Mutable(2)->set_dtype(proto::BF16); });
  refused("another type", [&](auto& move) { wholes(move)->Mutable(4)->set_dtype(proto::BF16); });
  refused("twice", [&](auto& move) { numbers(move)->set_values(0, 2); });
  refused("names 8 parameters for 7", [&](auto& move) { numbers(move)->add_values(7); });
  refused("parameter 9 of 8", [&](auto& move) { numbers(move)->set_values(3, 9); });
  refused("has not the shape",
          [&](auto& move) { numbers(move)->set_values(3, 7), wholes(move)->Mutable(3)->set_shape(0, 4); });
  refused("not the next of a group", [&](auto& move) { wholes(move)->SwapElements(1, 2); });
  refused("1 of a group of 2", [&](auto& move) { wholes(move)->RemoveLast(); });
}

}  // namespace
}  // namespace ft
