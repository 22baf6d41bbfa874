// Who computes attention: cuDNN, played by a fake here, or our own kernel; what the user is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Launched {
  int forward = 0, backward = 0;
  AttentionForwardArgs forward_args = {};
  AttentionBackwardArgs backward_args = {};
};

// Takes what is asked for unless `refusal` is set.
class FakeAttention final : public FusedAttention {
 public:
  absl::StatusOr<std::shared_ptr<FusedAttentionForward>> Forward(const AttentionSpec& spec,
                                                                 uint64_t workspace_bytes) override {
    if (!refusal.ok()) return refusal;
    specs.push_back(spec);
    return std::make_shared<FakeForward>(launched);
  }
  absl::StatusOr<std::shared_ptr<FusedAttentionBackward>> Backward(const AttentionSpec& spec,
                                                                   uint64_t workspace_bytes) override {
    if (!refusal.ok()) return refusal;
    specs.push_back(spec);
    return std::make_shared<FakeBackward>(launched);
  }

  absl::Status refusal;
  std::vector<AttentionSpec> specs;
  Launched launched;

 private:
  struct FakeForward final : FusedAttentionForward {
    explicit FakeForward(Launched& launched) : launched(launched) {}
    int Launch(const AttentionForwardArgs& args, StreamHandle stream) override {
      ++launched.forward;
      launched.forward_args = args;
      return 0;
    }
    Launched& launched;
  };
  struct FakeBackward final : FusedAttentionBackward {
    explicit FakeBackward(Launched& launched) : launched(launched) {}
    int Launch(const AttentionBackwardArgs& args, StreamHandle stream) override {
      ++launched.backward;
      launched.backward_args = args;
      return 0;
    }
    Launched& launched;
  };
};

constexpr int64_t kBatch = 2, kPositions = 6, kHeads = 4, kKvHeads = 2, kSize = 8;

class AttentionMaker : public testing::Test {
 protected:
  AttentionMaker()
      : q_(kBatch * kPositions * kHeads * kSize),
        k_(q_.size() / 2),
        v_(k_.size()),
        out_(q_.size(), 7.0f),
        lse_(kBatch * kHeads * kPositions, 7.0f),
        workspace_(1 << 16) {
    for (size_t i = 0; i < v_.size(); ++i) v_[i] = 0.01f * static_cast<float>(i % 100);
    RegisterAttention(table_);
  }

  static Tensor Of(std::vector<float>& values, int64_t heads, DType dtype) {
    return {values.data(), dtype, 3, {kBatch, kPositions, heads * kSize}};
  }

  // attention, or with `gradient` attention_grad, of tensors that are as large as f32's whatever the type.
  KernelOr Make(bool gradient, DType dtype, AttentionChoice choice, FusedAttention* library) {
    const Tensor q = Of(q_, kHeads, dtype), k = Of(k_, kKvHeads, dtype), v = Of(v_, kKvHeads, dtype),
                 out = Of(out_, kHeads, dtype);
    const Tensor lse = {lse_.data(), DType::kF32, 3, {kBatch, kHeads, kPositions}};
    KernelOperands operands = {{q, k, v, lengths_, segments_, rng_}, {out, lse}, {}};
    if (gradient) operands = {{out, q, k, v, out, lse, lengths_, segments_, rng_}, {q, k, v}, {}};
    return MakeOp(gradient ? "attention_grad" : "attention", std::move(operands), choice, library);
  }
  KernelOr MakeOp(const char* op, KernelOperands operands, AttentionChoice choice, FusedAttention* library) {
    KernelAttributes attributes;
    attributes.Add("heads", kHeads);
    attributes.Add("kv_heads", kKvHeads);
    attributes.Add("causal", int64_t{1});
    for (const auto& [name, value] : form_) attributes.Add(name, value);
    operands.workspace = {workspace_.data(), DType::kU8, 1, {static_cast<int64_t>(workspace_.size())}};
    DeviceProperties properties;
    properties.shared_bytes_per_block = shared_bytes_;
    return table_.Find(op)({.operands = operands,
                            .attributes = attributes,
                            .properties = properties,
                            .products = products_,
                            .attention = library,
                            .attention_choice = choice,
                            .deterministic = deterministic_,
                            .notes = notes_});
  }
  static void Launch(const KernelOr& kernel) {
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_EQ(static_cast<CudaKernel&>(**kernel).Launch(nullptr), 0);
  }

  // With q = 0 every key that is seen weighs the same: lse of position t is log(t + 1).
  void ExpectOwnForward() {
    for (size_t i = 0; i < lse_.size(); ++i)
      EXPECT_NEAR(lse_[i], std::log(1.0 + static_cast<double>(i % kPositions)), 1e-6);
  }

  std::vector<float> q_, k_, v_, out_, lse_;
  Tensor lengths_ = {}, segments_ = {}, rng_ = {};
  std::vector<std::byte> workspace_;
  size_t shared_bytes_ = 227 << 10;
  bool deterministic_ = false;
  std::vector<std::pair<std::string, KernelAttributes::Value>> form_;  // what is said of the scores
  KernelTable table_;
  emulation::ReferenceProducts products_;
  FakeAttention library_;
  std::vector<std::string> notes_;
};

TEST_F(AttentionMaker, CudnnComputesWhatItHas) {
  Launch(Make(false, DType::kBF16, AttentionChoice::kAuto, &library_));
  Launch(Make(true, DType::kBF16, AttentionChoice::kAuto, &library_));
  const AttentionSpec spec = {
      kBatch,      kPositions, kHeads, kKvHeads, kSize, true, static_cast<float>(1 / std::sqrt(8.0)),
      DType::kBF16};
  EXPECT_THAT(library_.specs, ElementsAre(spec, spec));
  EXPECT_EQ(library_.launched.forward, 1);
  EXPECT_EQ(library_.launched.backward, 1);
  EXPECT_EQ(library_.launched.forward_args.q, q_.data());
  EXPECT_EQ(library_.launched.forward_args.k, k_.data());
  EXPECT_EQ(library_.launched.forward_args.v, v_.data());
  EXPECT_EQ(library_.launched.forward_args.out, out_.data());
  EXPECT_EQ(library_.launched.forward_args.statistics, lse_.data());
  EXPECT_EQ(library_.launched.forward_args.workspace, workspace_.data());
  EXPECT_EQ(library_.launched.backward_args.dout, out_.data());
  EXPECT_EQ(library_.launched.backward_args.statistics, lse_.data());
  EXPECT_EQ(library_.launched.backward_args.dv, v_.data());
  EXPECT_THAT(notes_, ElementsAre("attention 2x6, 4 heads of 8 on 2, bf16: cuDNN",
                                  "attention gradient 2x6, 4 heads of 8 on 2, bf16: cuDNN"));
}

TEST_F(AttentionMaker, CudnnIsToldWhatIsSaidOfTheScores) {
  form_ = {{"window", int64_t{3}}, {"scale", 0.25}, {"softcap", 50.0}, {"alibi", int64_t{1}}};
  Launch(Make(false, DType::kBF16, AttentionChoice::kAuto, &library_));
  ASSERT_EQ(library_.specs.size(), 1u);
  const AttentionSpec& spec = library_.specs[0];
  EXPECT_EQ(spec.window, 3);
  EXPECT_EQ(spec.scale, 0.25f);
  EXPECT_EQ(spec.softcap, 50.0f);
  EXPECT_TRUE(spec.alibi);
  EXPECT_THAT(notes_,
              ElementsAre("attention 2x6, 4 heads of 8 on 2, window 3, softcap 50, alibi, bf16: cuDNN"));
  form_ = {{"window", kPositions}};
  Launch(Make(false, DType::kBF16, AttentionChoice::kAuto, &library_));
  EXPECT_EQ(library_.specs.back().window, 0) << "it hides nothing";
}

TEST_F(AttentionMaker, CudnnIsToldWhatIsSaidOfKeysAndProbabilities) {
  std::vector<int32_t> lengths(kBatch, 2), ids(kBatch * kPositions, 1);
  std::vector<int64_t> rng(3);
  lengths_ = {lengths.data(), DType::kI32, 1, {kBatch}};
  segments_ = {ids.data(), DType::kI32, 2, {kBatch, kPositions}};
  rng_ = {rng.data(), DType::kI64, 1, {3}};
  form_ = {{"rate", 0.5}, {"stream", int64_t{1}}};
  Launch(Make(true, DType::kBF16, AttentionChoice::kAuto, &library_));
  ASSERT_EQ(library_.specs.size(), 1u);
  EXPECT_TRUE(library_.specs[0].lengths && library_.specs[0].segments && library_.specs[0].dropout);
  EXPECT_THAT(notes_, ElementsAre("attention gradient 2x6, 4 heads of 8 on 2, lengths, segments, dropout, "
                                  "bf16: cuDNN"));
}

// With q = 0 lse counts the keys that lengths and segments leave; 0 where there is none.
TEST_F(AttentionMaker, OwnKernelSeesTheKeysOfLengthsAndSegments) {
  std::vector<int32_t> lengths = {4, 0}, ids = {5, 5, 5, -1, -1, 5, 5, 5, 5, -1, -1, 5};
  lengths_ = {lengths.data(), DType::kI32, 1, {kBatch}};
  segments_ = {ids.data(), DType::kI32, 2, {kBatch, kPositions}};
  Launch(Make(false, DType::kF32, AttentionChoice::kOwn, nullptr));
  constexpr double kSeen[] = {1, 2, 3, 1, 1, 0};
  for (size_t i = 0; i < lse_.size(); ++i) {
    const bool padding = i >= lse_.size() / 2 || kSeen[i % kPositions] == 0;
    EXPECT_NEAR(lse_[i], padding ? 0.0 : std::log(kSeen[i % kPositions]), 1e-6) << i;
  }
}

TEST_F(AttentionMaker, RefusesWhatNoScoreIsMadeOf) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, KernelAttributes::Value>>{{"window", int64_t{0}},
                                                                    {"window", int64_t{-1}},
                                                                    {"scale", 0.0},
                                                                    {"scale", -1.0},
                                                                    {"scale", 1e39},
                                                                    {"softcap", 0.0},
                                                                    {"softcap", std::nan("")},
                                                                    {"softcap", 1e-40}}) {
    form_ = {{name, value}};
    const absl::Status status = Make(false, DType::kF32, AttentionChoice::kOwn, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

// With q = 0 lse counts the keys that a window leaves.
TEST_F(AttentionMaker, OwnKernelSeesTheKeysOfAWindow) {
  form_ = {{"window", int64_t{3}}, {"softcap", 2.0}};
  Launch(Make(false, DType::kF32, AttentionChoice::kOwn, nullptr));
  for (size_t i = 0; i < lse_.size(); ++i) {
    const double seen = std::min(3.0, 1.0 + static_cast<double>(i % kPositions));
    EXPECT_NEAR(lse_[i], std::log(seen), 1e-6);
  }
}

TEST_F(AttentionMaker, CudnnIsToldOfQueriesKeysAndValuesSideBySide) {
  std::vector<float> qkv(q_.size() * 2), dqkv(qkv.size());
  const Tensor in = Of(qkv, kHeads + 2 * kKvHeads, DType::kBF16), out = Of(out_, kHeads, DType::kBF16),
               gradient = Of(dqkv, kHeads + 2 * kKvHeads, DType::kBF16);
  const Tensor lse = {lse_.data(), DType::kF32, 3, {kBatch, kHeads, kPositions}};
  Launch(MakeOp("qkv_attention", {{in, {}, {}, {}}, {out, lse}, {}}, AttentionChoice::kAuto, &library_));
  Launch(MakeOp("qkv_attention_grad", {{out, in, out, lse, {}, {}, {}}, {gradient}, {}},
                AttentionChoice::kAuto, &library_));
  const AttentionSpec spec = {
      kBatch,       kPositions, kHeads, kKvHeads, kSize, true, static_cast<float>(1 / std::sqrt(8.0)),
      DType::kBF16, true};
  EXPECT_THAT(library_.specs, ElementsAre(spec, spec));
  EXPECT_EQ(spec.QueryStride(), 64);
  EXPECT_EQ(spec.KeyStride(), 64);
  const auto at = [](std::vector<float>& values, int64_t heads) {
    return reinterpret_cast<char*>(values.data()) + heads * kSize * 2;  // bytes of bf16
  };
  const AttentionForwardArgs& forward = library_.launched.forward_args;
  EXPECT_EQ(forward.q, at(qkv, 0));
  EXPECT_EQ(forward.k, at(qkv, kHeads));
  EXPECT_EQ(forward.v, at(qkv, kHeads + kKvHeads));
  const AttentionBackwardArgs& backward = library_.launched.backward_args;
  EXPECT_EQ(backward.k, at(qkv, kHeads));
  EXPECT_EQ(backward.dq, at(dqkv, 0));
  EXPECT_EQ(backward.dk, at(dqkv, kHeads));
  EXPECT_EQ(backward.dv, at(dqkv, kHeads + kKvHeads));
}

TEST_F(AttentionMaker, ARefusalOf16BitsIsAnErrorThatNamesTheChoices) {
  library_.refusal = absl::UnimplementedError("no engine for head size 8");
  for (const bool gradient : {false, true}) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const absl::Status status = Make(gradient, dtype, AttentionChoice::kAuto, &library_).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      const std::string line(status.message());
      EXPECT_THAT(line, StartsWith(gradient ? "cuDNN refuses attention gradient 2x6, 4 heads of 8 on 2, "
                                            : "cuDNN refuses attention 2x6, 4 heads of 8 on 2, "));
      EXPECT_THAT(line, HasSubstr("no engine for head size 8; --attention=own computes it"));
      EXPECT_THAT(line, HasSubstr("takes longer than cuDNN's kernels"));
      EXPECT_THAT(line, Not(HasSubstr("\n")));
    }
  }
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(library_.launched.forward, 0);
}

TEST_F(AttentionMaker, InDeterministicModeOwnKernelComputesWhatCudnnRefusesAndSaysWhatItCosts) {
  library_.refusal = absl::UnimplementedError("no engine for head size 8");
  deterministic_ = true;
  Launch(Make(false, DType::kF16, AttentionChoice::kAuto, &library_));
  EXPECT_EQ(library_.launched.forward, 0);
  ExpectOwnForward();
  Launch(Make(false, DType::kF16, AttentionChoice::kAuto, &library_));  // noted once
  EXPECT_THAT(
      notes_,
      ElementsAre("attention 2x6, 4 heads of 8 on 2, f16: own kernel, which takes longer than cuDNN's "
                  "kernels; cuDNN has none that gives the same bits every time (no engine for head "
                  "size 8), --deterministic=off lets it take others"));
}

TEST_F(AttentionMaker, APlatformWithoutCudnnHasNoOtherChoice) {
  Launch(Make(false, DType::kBF16, AttentionChoice::kAuto, nullptr));
  ExpectOwnForward();
  EXPECT_THAT(notes_,
              ElementsAre("attention 2x6, 4 heads of 8 on 2, bf16: own kernel, there is no cuDNN here"));
}

TEST_F(AttentionMaker, RefusalIsAnErrorWhenCudnnIsAskedFor) {
  library_.refusal = absl::UnimplementedError("no engine for head size 8");
  for (const bool deterministic : {false, true}) {
    deterministic_ = deterministic;
    for (const bool gradient : {false, true}) {
      const KernelOr kernel = Make(gradient, DType::kF16, AttentionChoice::kCudnn, &library_);
      EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(kernel.status().message()), HasSubstr("no engine for head size 8"));
    }
  }
  const KernelOr f32 = Make(false, DType::kF32, AttentionChoice::kCudnn, &library_);
  EXPECT_THAT(std::string(f32.status().message()), HasSubstr("none for f32"));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(AttentionMaker, TroubleOfTheLibraryIsNotARefusal) {
  library_.refusal = absl::InternalError("cudnnCreate failed");
  EXPECT_EQ(Make(false, DType::kBF16, AttentionChoice::kAuto, &library_).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(AttentionMaker, F32IsNeverAskedFor) {
  Launch(Make(false, DType::kF32, AttentionChoice::kAuto, &library_));
  EXPECT_TRUE(library_.specs.empty());
  ExpectOwnForward();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("own kernel")));
}

TEST_F(AttentionMaker, OwnKernelWantsSharedMemory) {
  shared_bytes_ = 99 << 10;  // of compute capability 8.6 and 8.9
  EXPECT_TRUE(Make(true, DType::kF32, AttentionChoice::kOwn, nullptr).ok());
  shared_bytes_ = 48 << 10;
  EXPECT_THAT(
      std::string(Make(true, DType::kF32, AttentionChoice::kOwn, nullptr).status().message()),
      HasSubstr("4 heads of 8 on 2, f32 wants 87040 bytes of shared memory for a block, this GPU has 49152"));
  EXPECT_TRUE(Make(true, DType::kBF16, AttentionChoice::kAuto, &library_).ok()) << "cuDNN needs none of it";
}

TEST_F(AttentionMaker, OwnKernelWhenChosen) {
  Launch(Make(false, DType::kBF16, AttentionChoice::kOwn, nullptr));
  ExpectOwnForward();
  EXPECT_THAT(notes_, ElementsAre("attention 2x6, 4 heads of 8 on 2, bf16: own kernel"));
}

}  // namespace
}  // namespace ft::cuda
