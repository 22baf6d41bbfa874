// Runs a plan: ftexec plan.bin --data=corpus.txt --steps=1000
#include "tools/ftexec/main.h"

int main(int argc, char** argv) { return ft::Main(argc, argv, ft::nccl::LoadNccl); }
