// Kernels for AArch64, which plans do not have yet: nothing of the generator is for x86-64 alone. Objects are
// made and disassembled; no machine here runs them.
#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/lowering.h"
#include "compiler/codegen/testing/body_cases.h"
#include "compiler/codegen/x86/cluster_kernel.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/TargetSelect.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

constexpr const char *kTriple = "aarch64-unknown-linux-gnu";

class Aarch64CodeTest : public CodeTest {
protected:
  static void SetUpTestSuite() {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64Disassembler();
  }

  void SetUp() override {
    machine = llvm::cantFail(makeTargetMachine(kTriple, "generic", ""));
    llvm::Triple triple(kTriple);
    mc = std::make_unique<llvm::MCContext>(triple, machine->getMCAsmInfo(), machine->getMCRegisterInfo(),
                                           machine->getMCSubtargetInfo());
    disassembler.reset(machine->getTarget().createMCDisassembler(*machine->getMCSubtargetInfo(), *mc));
    printer.reset(machine->getTarget().createMCInstPrinter(
        triple, 0, *machine->getMCAsmInfo(), *machine->getMCInstrInfo(), *machine->getMCRegisterInfo()));
  }

  std::string objectOf(func::FuncOp function) {
    FailureOr<ClusterBody> body = clusterBodyOf(function);
    EXPECT_TRUE(succeeded(body));
    std::unique_ptr<MLIRContext> code = makeCodeContext();
    OwningOpRef<ModuleOp> kernel = buildClusterKernel(*code, *body, X86Level::V3);
    llvm::LLVMContext llvmContext;
    std::unique_ptr<llvm::Module> translated =
        llvm::cantFail(translateToLlvm(*kernel, llvmContext, *machine));
    optimize(*translated, *machine);
    return llvm::cantFail(emitFile(*translated, *machine, llvm::CodeGenFileType::ObjectFile));
  }

  // A line for each instruction; the test fails where bytes are none.
  std::string disassembled(StringRef bytes) {
    std::string text;
    llvm::raw_string_ostream out(text);
    for (uint64_t at = 0; at < bytes.size();) {
      llvm::MCInst instruction;
      uint64_t size = 0;
      auto status = disassembler->getInstruction(
          instruction, size, llvm::arrayRefFromStringRef(bytes.drop_front(at)), at, llvm::nulls());
      EXPECT_EQ(status, llvm::MCDisassembler::Success) << "at " << at;
      if (size == 0)
        break;
      printer->printInst(&instruction, at, "", *machine->getMCSubtargetInfo(), out);
      out << '\n';
      at += size;
    }
    return text;
  }

  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::MCContext> mc;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

// Instructions that multiply and add four at a time, no calls, nothing from elsewhere.
TEST_F(Aarch64CodeTest, ObjectsAreMadeAndDisassembled) {
  for (auto [number, bodyCase] : llvm::enumerate(kBodies)) {
    const char *element = elementOf(number, 0);
    SCOPED_TRACE(std::string(bodyCase.name) + " of " + element);
    func::FuncOp function = parse(bodyCase.text, {5, 771}, element);
    ASSERT_TRUE(function);
    std::string object = objectOf(function);
    auto file =
        llvm::cantFail(llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel.o")));
    EXPECT_EQ(file->getArch(), llvm::Triple::aarch64);
    bool hasKernel = false;
    for (const llvm::object::SymbolRef &symbol : file->symbols()) {
      hasKernel |= llvm::cantFail(symbol.getName()) == "kernel";
      EXPECT_FALSE(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
          << llvm::cantFail(symbol.getName()).str();
    }
    EXPECT_TRUE(hasKernel);
    std::string text;
    for (const llvm::object::SectionRef &section : file->sections())
      if (section.isText())
        text += disassembled(llvm::cantFail(section.getContents()));
    EXPECT_NE(text.find("\tret"), std::string::npos);
    EXPECT_EQ(text.find("\tbl\t"), std::string::npos) << "a call";
    if (StringRef(bodyCase.name).contains("gelu")) { // a polynomial
      EXPECT_NE(text.find("fmla\tv"), std::string::npos) << text.substr(0, 2000);
    }
  }
}

} // namespace
} // namespace ft::compiler::testing
