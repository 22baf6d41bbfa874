#include "compiler/codegen/ptx/assembly.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace ft::compiler {
namespace {

using llvm::StringRef;

// A file of the system's folder for such, gone with the object.
class Scratch {
public:
  static llvm::Expected<Scratch> create(StringRef suffix) {
    llvm::SmallString<128> path;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("ftc", suffix, path))
      return llvm::createStringError(error, "no temporary file");
    return Scratch(path);
  }
  StringRef path() const { return name; }

private:
  explicit Scratch(StringRef path) : name(path), remover(std::make_unique<llvm::FileRemover>(path)) {}
  std::string name;
  std::unique_ptr<llvm::FileRemover> remover;
};

llvm::Error write(StringRef path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  stream << text;
  stream.close();
  return error || stream.has_error() ? llvm::createStringError("cannot write '" + path + "'")
                                     : llvm::Error::success();
}

// The number before `words`.
int64_t numberBefore(StringRef line, StringRef words) {
  size_t end = line.find(words);
  if (end == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(end).rtrim();
  digits = digits.take_back(digits.size() - (digits.find_last_not_of("0123456789") + 1));
  int64_t number = 0;
  digits.getAsInteger(10, number);
  return number;
}

// What ptxas -v prints.
PtxAssembly parseAssembly(StringRef verbose) {
  PtxAssembly most;
  llvm::SmallVector<StringRef> lines;
  verbose.split(lines, '\n');
  for (StringRef line : lines) {
    most.spilledBytes = std::max(most.spilledBytes, numberBefore(line, "bytes spill stores") +
                                                        numberBefore(line, "bytes spill loads"));
    most.registers = std::max(most.registers, static_cast<int>(numberBefore(line, "registers")));
  }
  return most;
}

llvm::Expected<PtxAssembly> assembleFor(StringRef architecture, StringRef source, StringRef ptxas) {
  llvm::Expected<Scratch> said = Scratch::create("txt");
  if (!said)
    return said.takeError();
  std::string option = ("-arch=" + architecture).str();
  const std::optional<StringRef> redirects[] = {StringRef(), said->path(), said->path()};
  std::string why;
  int status = llvm::sys::ExecuteAndWait(ptxas, {ptxas, option, "-v", "-o", "/dev/null", source},
                                         std::nullopt, redirects, 0, 0, &why);
  auto text = llvm::MemoryBuffer::getFile(said->path());
  StringRef verbose = text ? (*text)->getBuffer() : StringRef();
  if (status != 0)
    return llvm::createStringError(
        "ptxas for " + architecture + ": " +
        (why.empty() ? verbose.take_until([](char c) { return c == '\n'; }).str() : why));
  PtxAssembly assembly = parseAssembly(verbose);
  assembly.architecture = architecture.str();
  return assembly;
}

} // namespace

std::optional<std::string> findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  llvm::SmallVector<std::string> folders = {"/usr/local/cuda/bin"};
  if (auto nvcc = llvm::sys::Process::GetEnv("CUDACXX"))
    folders.insert(folders.begin(), llvm::sys::path::parent_path(*nvcc).str());
  for (const std::string &folder : folders)
    if (auto found = llvm::sys::findProgramByName("ptxas", {folder}))
      return *found;
  return std::nullopt;
}

llvm::Expected<std::vector<PtxAssembly>> assemble(StringRef ptx, StringRef ptxas) {
  llvm::Expected<Scratch> source = Scratch::create("ptx");
  if (!source)
    return source.takeError();
  if (llvm::Error error = write(source->path(), ptx))
    return error;
  std::vector<PtxAssembly> assemblies;
  for (StringRef architecture : {"sm_80", "sm_90", "sm_100"}) {
    llvm::Expected<PtxAssembly> assembly = assembleFor(architecture, source->path(), ptxas);
    if (!assembly)
      return assembly.takeError();
    assemblies.push_back(*std::move(assembly));
  }
  return assemblies;
}

} // namespace ft::compiler
