// A profiler that NVTX loads into the process: answers pushes and pops of ranges, and keeps the names.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>

#include <string>

namespace {

std::string ranges;

int Push(const char* name) {
  ranges += std::string("+") + name;
  return 0;
}

int Pop() {
  ranges += "-";
  return 0;
}

}  // namespace

extern "C" {

const char* FtRangesSeen() { return ranges.c_str(); }

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(Push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(Pop);
  return 1;
}
}
