#include "compiler/codegen/x86/flat_code.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

namespace ft::compiler {
namespace {

namespace object = llvm::object;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using object::ELFSectionRef;
using object::RelocationRef;
using object::SectionRef;
using object::SymbolRef;

constexpr uint64_t kAlignment = 64; // of vectors in memory

class Flattening {
public:
  explicit Flattening(const object::ObjectFile &object) : object(object) {}

  Expected<FlatCode> run() {
    for (bool code : {true, false})
      for (SectionRef section : object.sections())
        if (section.isText() == code)
          if (Error error = append(section))
            return error;
    for (SectionRef section : object.sections())
      if (Error error = relocate(section))
        return error;
    for (SymbolRef symbol : object.symbols())
      if (Error error = enter(symbol))
        return error;
    return std::move(flat);
  }

private:
  // Tables of unwinding are left out: nothing is thrown through this code.
  Error append(ELFSectionRef section) {
    Expected<StringRef> name = section.getName();
    if (!name)
      return name.takeError();
    if (!(section.getFlags() & llvm::ELF::SHF_ALLOC) || section.getSize() == 0 ||
        name->starts_with(".eh_frame"))
      return Error::success();
    if (section.getFlags() & llvm::ELF::SHF_WRITE)
      return createStringError("writable data in section " + *name);
    Expected<StringRef> contents = section.getContents();
    if (!contents)
      return contents.takeError();
    if (section.getAlignment().value() > kAlignment)
      return createStringError("section " + *name + " is aligned to more than a vector");
    flat.bytes.resize(llvm::alignTo(flat.bytes.size(), kAlignment), '\0');
    offsets[section.getIndex()] = flat.bytes.size();
    flat.bytes += *contents;
    return Error::success();
  }

  Expected<uint64_t> offsetOf(SymbolRef symbol) {
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    Expected<object::section_iterator> section = symbol.getSection();
    if (!section)
      return section.takeError();
    if (*section == object.section_end() || !offsets.contains((*section)->getIndex()))
      return createStringError("undefined symbol " + *name);
    Expected<uint64_t> value = symbol.getValue();
    if (!value)
      return value.takeError();
    return offsets.lookup((*section)->getIndex()) + *value;
  }

  Error relocate(SectionRef relocations) {
    Expected<object::section_iterator> target = relocations.getRelocatedSection();
    if (!target)
      return target.takeError();
    if (*target == object.section_end() || !offsets.contains((*target)->getIndex()))
      return Error::success();
    for (RelocationRef relocation : relocations.relocations()) {
      if (relocation.getType() != llvm::ELF::R_X86_64_PC32 &&
          relocation.getType() != llvm::ELF::R_X86_64_PLT32)
        return createStringError("relocation of type " + llvm::Twine(relocation.getType()));
      Expected<uint64_t> symbol = offsetOf(*relocation.getSymbol());
      if (!symbol)
        return symbol.takeError();
      Expected<int64_t> addend = object::ELFRelocationRef(relocation).getAddend();
      if (!addend)
        return addend.takeError();
      uint64_t place = offsets.lookup((*target)->getIndex()) + relocation.getOffset();
      llvm::support::endian::write32le(&flat.bytes[place], static_cast<uint32_t>(*symbol + *addend - place));
    }
    return Error::success();
  }

  Error enter(SymbolRef symbol) {
    Expected<SymbolRef::Type> type = symbol.getType();
    if (!type)
      return type.takeError();
    if (*type != SymbolRef::ST_Function)
      return Error::success();
    Expected<uint64_t> offset = offsetOf(symbol);
    if (!offset)
      return offset.takeError();
    flat.entries[llvm::cantFail(symbol.getName())] = *offset;
    return Error::success();
  }

  const object::ObjectFile &object;
  FlatCode flat;
  llvm::DenseMap<uint64_t, uint64_t> offsets; // of sections, by index
};

} // namespace

Expected<FlatCode> flatten(StringRef bytes) {
  auto object = object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object)
    return object.takeError();
  return Flattening(**object).run();
}

} // namespace ft::compiler
