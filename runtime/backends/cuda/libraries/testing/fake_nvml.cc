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
}
