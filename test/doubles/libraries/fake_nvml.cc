// As much of NVML as is asked for, with one device.
#include <cstring>

namespace {

int device;
unsigned busy = 41;

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, int** found) {
  if (std::strcmp(address, "0000:3B:00.0") != 0) return 6;  // not found
  *found = &device;
  return 0;
}

// One percent more each time, until the device falls off the bus.
int nvmlDeviceGetUtilizationRates(int* of, unsigned* utilization) {
  if (of != &device || busy == 43) return 15;  // lost
  utilization[0] = ++busy;
  utilization[1] = 7;
  return 0;
}

struct Memory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

// Of the second version only, which an older library does not know.
int nvmlDeviceGetMemoryInfo_v2(int* of, Memory* memory) {
  if (of != &device) return 15;
  if (memory->version != (40u | 2u << 24)) return 25;  // another version of the argument
  *memory = {memory->version, 1000, 100, 700, 200};
  return 0;
}
}
