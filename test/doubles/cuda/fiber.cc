#include "test/doubles/cuda/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if FT_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace ft::cuda::emulation {
namespace {

// Sanitized frames are several times as large.
constexpr size_t kStackBytes = FT_FIBER_ASAN ? 256 << 10 : 64 << 10;

// What Begin and the other side of a switch are told.
thread_local Fiber* switching_from = nullptr;
thread_local Fiber* switching_to = nullptr;

}  // namespace

#if defined(__x86_64__)

// swapcontext saves the signal mask by a call of the kernel at every switch; this keeps what the ABI says
// that a call keeps. rdi: where to leave the stack pointer; rsi: the one to take.
asm(R"(
  .text
  .globl ft_emulation_switch_stack
  .type ft_emulation_switch_stack, @function
ft_emulation_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size ft_emulation_switch_stack, .-ft_emulation_switch_stack
)");
extern "C" void ft_emulation_switch_stack(void** leave, void* take);

struct Fiber::Machine {
  void* stack_pointer = nullptr;

  void Prepare(std::byte* stack, size_t bytes, void (*begin)()) {
    auto* top = reinterpret_cast<uintptr_t*>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t{15});
    // The end of the call chain. It leaves the stack pointer at 16 n + 8 when Begin starts, as a call would.
    *--top = 0;
    *--top = reinterpret_cast<uintptr_t>(begin);
    for (int i = 0; i < 6; ++i) *--top = 0;
    stack_pointer = top;
  }
  void SwitchTo(Machine& other) { ft_emulation_switch_stack(&stack_pointer, other.stack_pointer); }
};

#else

struct Fiber::Machine {
  ucontext_t context;

  void Prepare(std::byte* stack, size_t bytes, void (*begin)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = bytes;
    context.uc_link = nullptr;
    makecontext(&context, begin, 0);
  }
  void SwitchTo(Machine& other) { swapcontext(&context, &other.context); }
};

#endif

Fiber::Fiber() : machine_(std::make_unique<Machine>()) {}

Fiber::Fiber(void (*entry)(), int index) : machine_(std::make_unique<Machine>()), entry_(entry) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);
  stack_ = static_cast<std::byte*>(memory) + page;
  bytes_ = kStackBytes;
  shift_ = static_cast<size_t>(index % 16) * 256;
  Restart();
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
#if FT_FIBER_ASAN
  __asan_unpoison_memory_region(stack_, bytes_);
#endif
  munmap(stack_ - page, bytes_ + page);
}

void Fiber::Restart() {
#if FT_FIBER_ASAN
  __asan_unpoison_memory_region(stack_, bytes_);
  fake_stack_ = nullptr;
  bottom_ = stack_;
  size_ = bytes_ - shift_;
#endif
  machine_->Prepare(stack_, bytes_ - shift_, &Fiber::Begin);
}

void Fiber::Begin() {
#if FT_FIBER_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &switching_from->bottom_, &switching_from->size_);
#endif
  switching_to->entry_();
  __builtin_trap();  // entry never returns
}

void Fiber::Switch(Fiber& from, Fiber& to) {
  switching_from = &from;
  switching_to = &to;
#if FT_FIBER_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
#endif
  from.machine_->SwitchTo(*to.machine_);
#if FT_FIBER_ASAN
  // Back on `from`: whoever switched here is switching_from.
  __sanitizer_finish_switch_fiber(from.fake_stack_, &switching_from->bottom_, &switching_from->size_);
#endif
}

}  // namespace ft::cuda::emulation
