#include "test/codegen/host_intrinsics.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ReplaceConstant.h"
#include "test/doubles/cuda/execution_model.h"
#include "test/doubles/cuda/race_watch.h"

namespace emulation = ft::cuda::emulation;

static thread_local ft::compiler::testing::Traffic traffic;

// Places are told apart by their number.
extern "C" {
// What LLVM calls to round a number to bf16 on processors without an instruction for it; the result is in the
// low half of a register of floats.
static float ft_round_to_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits = value != value ? bits | 0x00400000 : bits + 0x7FFF + (bits >> 16 & 1);
  return std::bit_cast<float>(bits >> 16);
}

static unsigned ft_gpu_thread() { return threadIdx.x; }
static unsigned ft_gpu_block() { return blockIdx.x; }
static void ft_gpu_barrier(int place) { emulation::MeetBlock(emulation::Vote::kNone, false, {"", place}); }
static unsigned ft_gpu_shuffle(unsigned mask, unsigned value, int argument, unsigned clamp, bool is_xor,
                               int place) {
  const emulation::Meeting meeting = is_xor ? emulation::Meeting::kShuffleXor : emulation::Meeting::kShuffle;
  const int width = 32 - static_cast<int>(clamp >> 8 & 31);
  return static_cast<unsigned>(emulation::MeetWarp({meeting, mask, value, argument, width}, {"", place}));
}
static void* ft_gpu_shared() { return emulation::DynamicSharedMemory(); }
static void ft_gpu_access(const void* address, size_t bytes, bool writes, bool shared) {
  emulation::RaceWatch::Own().Note(address, bytes,
                                   writes ? emulation::Access::kWrite : emulation::Access::kRead, nullptr);
  if (!shared) (writes ? traffic.written : traffic.read) += bytes;
}
}

namespace ft::compiler::testing {
namespace {

constexpr unsigned kSharedSpace = 3;

class Replacement {
 public:
  explicit Replacement(llvm::Module& module) : module_(module), b_(module.getContext()) {}

  llvm::Error run() {
    for (llvm::Function& function : module_) {
      llvm::SmallVector<llvm::Instruction*> instructions;
      for (llvm::Instruction& instruction : llvm::instructions(function))
        instructions.push_back(&instruction);
      for (llvm::Instruction* instruction : instructions) {
        b_.SetInsertPoint(instruction);
        llvm::Value* value = nullptr;
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction)) {
          value = replacement(*call);
          if (value == nullptr && call->getCalledFunction()->getName().starts_with("llvm.nvvm."))
            return llvm::createStringError("not emulated: " + call->getCalledFunction()->getName());
        } else if (auto* rounding = llvm::dyn_cast<llvm::FPTruncInst>(instruction)) {
          if (rounding->getType()->getScalarType()->isBFloatTy()) value = toBf16(rounding->getOperand(0));
        }
        if (value == nullptr) continue;
        instruction->replaceAllUsesWith(value);
        instruction->eraseFromParent();
      }
    }
    return llvm::Error::success();
  }

 private:
  llvm::Value* replacement(llvm::IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
        return callHost("ft_gpu_thread", b_.getInt32Ty(), {});
      case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
        return callHost("ft_gpu_block", b_.getInt32Ty(), {});
      case llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all:
        return callHost("ft_gpu_barrier", b_.getVoidTy(), {b_.getInt32(++places_)});
      case llvm::Intrinsic::nvvm_shfl_sync_bfly_f32:
      case llvm::Intrinsic::nvvm_shfl_sync_bfly_i32:
        return shuffle(call, true);
      case llvm::Intrinsic::nvvm_shfl_sync_idx_f32:
      case llvm::Intrinsic::nvvm_shfl_sync_idx_i32:
        return shuffle(call, false);
      default:
        return nullptr;
    }
  }

  llvm::Value* shuffle(llvm::IntrinsicInst& call, bool isXor) {
    llvm::Value* bits = b_.CreateBitCast(call.getArgOperand(1), b_.getInt32Ty());
    llvm::Value* result = callHost("ft_gpu_shuffle", b_.getInt32Ty(),
                                   {call.getArgOperand(0), bits, call.getArgOperand(2), call.getArgOperand(3),
                                    b_.getInt1(isXor), b_.getInt32(++places_)});
    return b_.CreateBitCast(result, call.getType());
  }

  // To the nearest, ties to even; NaN stays one.
  llvm::Value* toBf16(llvm::Value* x) {
    llvm::Type* words = x->getType()->getWithNewType(b_.getInt32Ty());
    auto number = [&](uint64_t n) { return llvm::ConstantInt::get(words, n); };
    llvm::Value* bits = b_.CreateBitCast(x, words);
    llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, number(16)), number(1));
    llvm::Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, number(0x7FFF)), odd);
    bits = b_.CreateSelect(b_.CreateFCmpUNO(x, x), number(0x7FFF0000), rounded);
    llvm::Value* upper =
        b_.CreateTrunc(b_.CreateLShr(bits, number(16)), words->getWithNewType(b_.getInt16Ty()));
    return b_.CreateBitCast(upper, x->getType()->getWithNewType(b_.getBFloatTy()));
  }

  llvm::Value* callHost(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments) {
    llvm::SmallVector<llvm::Type*> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    return b_.CreateCall(module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)),
                         arguments);
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  int places_ = 0;
};

// Of each function its own.
void replaceShared(llvm::GlobalVariable& shared) {
  llvm::convertUsersOfConstantsToInstructions({&shared});
  llvm::Module& module = *shared.getParent();
  llvm::IRBuilder<> b(module.getContext());
  auto callee = module.getOrInsertFunction("ft_gpu_shared", llvm::FunctionType::get(b.getPtrTy(), false));
  llvm::DenseMap<llvm::Function*, llvm::Value*> addresses;
  for (llvm::Use& use : llvm::make_early_inc_range(shared.uses())) {
    llvm::Function* function = llvm::cast<llvm::Instruction>(use.getUser())->getFunction();
    llvm::Value*& address = addresses[function];
    if (address == nullptr) {
      b.SetInsertPoint(function->getEntryBlock().begin());
      address = b.CreateAddrSpaceCast(b.CreateCall(callee), shared.getType());
    }
    use.set(address);
  }
  shared.eraseFromParent();
}

void watch(llvm::Function& function) {
  llvm::Module& module = *function.getParent();
  llvm::IRBuilder<> b(module.getContext());
  auto* type = llvm::FunctionType::get(b.getVoidTy(),
                                       {b.getPtrTy(), b.getInt64Ty(), b.getInt1Ty(), b.getInt1Ty()}, false);
  auto callee = module.getOrInsertFunction("ft_gpu_access", type);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
    if (address == nullptr) continue;
    b.SetInsertPoint(&instruction);
    const uint64_t bytes = module.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&instruction));
    b.CreateCall(callee, {b.CreateAddrSpaceCast(address, b.getPtrTy()), b.getInt64(bytes),
                          b.getInt1(llvm::isa<llvm::StoreInst>(instruction)),
                          b.getInt1(address->getType()->getPointerAddressSpace() == kSharedSpace)});
  }
}

void addCall(llvm::Function& entry) {
  llvm::Module& module = *entry.getParent();
  llvm::IRBuilder<> b(module.getContext());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
  auto* function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, entry.getName() + kCallSuffix, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", function));
  llvm::SmallVector<llvm::Value*> parameters;
  for (unsigned i = 0; i < entry.arg_size(); ++i)
    parameters.push_back(
        b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_32(b.getPtrTy(), function->getArg(0), i)));
  b.CreateCall(&entry, parameters);
  b.CreateRetVoid();
}

}  // namespace

Traffic takeTraffic() { return std::exchange(traffic, {}); }

llvm::Error replaceIntrinsics(llvm::Module& module, bool watched) {
  if (llvm::Error error = Replacement(module).run()) return error;
  llvm::SmallVector<llvm::Function*> entries;
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) entries.push_back(&function);
  for (llvm::Function* entry : entries) {
    entry->setCallingConv(llvm::CallingConv::C);
    if (watched) watch(*entry);
    addCall(*entry);
  }
  if (llvm::GlobalVariable* shared = module.getGlobalVariable("shared", /*AllowInternal=*/true))
    replaceShared(*shared);
  return llvm::Error::success();
}

llvm::ArrayRef<HostFunction> hostFunctions() {
  static const HostFunction functions[] = {{"ft_gpu_thread", reinterpret_cast<void*>(&ft_gpu_thread)},
                                           {"ft_gpu_block", reinterpret_cast<void*>(&ft_gpu_block)},
                                           {"ft_gpu_barrier", reinterpret_cast<void*>(&ft_gpu_barrier)},
                                           {"ft_gpu_shuffle", reinterpret_cast<void*>(&ft_gpu_shuffle)},
                                           {"ft_gpu_shared", reinterpret_cast<void*>(&ft_gpu_shared)},
                                           {"ft_gpu_access", reinterpret_cast<void*>(&ft_gpu_access)},
                                           {"__truncsfbf2", reinterpret_cast<void*>(&ft_round_to_bf16)}};
  return functions;
}

}  // namespace ft::compiler::testing
