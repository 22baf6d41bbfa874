// A libcuda.so.1 for machines without a GPU: enough of the driver for cuDNN to compile and load kernels for a
// device that is only described. It runs nothing; it keeps the names of kernels it was
// given. Handles are pointers and results ints (cuda.h), declared so here: cuda.h itself renames half of the
// functions.
#include <string>

namespace {

constexpr int kSuccess = 0;
// The driver says this when it is the toolkit's stub. Callers that are only faster with a driver, such as
// NVRTC with its cache, then do without.
constexpr int kStubLibrary = 34;

std::string& Kernels() {
  static std::string kernels;
  return kernels;
}

int Give(void** handle) {
  static char object;
  *handle = &object;
  return kSuccess;
}

int GiveKernel(void** handle, const char* name) {
  Kernels().append(name).append(" ");
  return Give(handle);
}

}  // namespace

extern "C" {

// The names since the last call, a space after each.
const char* FtTakeKernels() {
  static std::string taken;
  taken.clear();
  taken.swap(Kernels());
  return taken.c_str();
}

int cuInit(unsigned) { return kStubLibrary; }
int cuGetExportTable(const void**, const void*) { return kStubLibrary; }
int cuGetProcAddress(const char*, void**, int, unsigned long long) { return kStubLibrary; }
int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, void*) { return kStubLibrary; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "there is no driver";
  return kSuccess;
}
int cuGetErrorName(int error, const char** text) { return cuGetErrorString(error, text); }
// With none, cuDNN would not load what it has compiled.
int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}

int cuLibraryLoadData(void** library, const void*, void*, void**, unsigned, void*, void**, unsigned) {
  return Give(library);
}
int cuLibraryUnload(void*) { return kSuccess; }
int cuLibraryGetKernel(void** kernel, void*, const char* name) { return GiveKernel(kernel, name); }
int cuLibraryGetModule(void** module, void*) { return Give(module); }
int cuKernelGetFunction(void** function, void*) { return Give(function); }
int cuKernelSetAttribute(int, int, void*, int) { return kSuccess; }
int cuModuleLoadData(void** module, const void*) { return Give(module); }
int cuModuleLoadDataEx(void** module, const void*, unsigned, void*, void**) { return Give(module); }
int cuModuleGetFunction(void** function, void*, const char* name) { return GiveKernel(function, name); }
int cuModuleUnload(void*) { return kSuccess; }
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }

// Looked up, not called while plans are made.
int cuCtxGetCurrent() { return kStubLibrary; }
int cuCtxGetLimit() { return kStubLibrary; }
int cuCtxPopCurrent() { return kStubLibrary; }
int cuCtxPushCurrent() { return kStubLibrary; }
int cuStreamGetCtx() { return kStubLibrary; }
int cuLinkCreate() { return kStubLibrary; }
int cuLinkAddData() { return kStubLibrary; }
int cuLinkComplete() { return kStubLibrary; }
int cuLinkDestroy() { return kStubLibrary; }
int cuLaunchKernel() { return kStubLibrary; }
int cuLaunchKernelEx() { return kStubLibrary; }
int cuLaunchCooperativeKernel() { return kStubLibrary; }
int cuDeviceGet() { return kStubLibrary; }
int cuLibraryLoadFromFile() { return kStubLibrary; }
int cuOccupancyMaxPotentialClusterSize() { return kStubLibrary; }
int cuKernelGetAttribute() { return kStubLibrary; }
int cuFuncGetAttribute() { return kStubLibrary; }
}
