// Writes the manual of ftexec and its completions.
#include "tools/ftexec/flags.h"
#include "tools/manual/exits.h"
#include "tools/manual/write.h"

int main(int argc, char** argv) {
  ft::manual::Page page = {
      .description = {"Started alone it is the only rank. Under torchrun, ftrun(1), Slurm, MPI or Kubernetes "
                      "each process is one rank; they find each "
                      "other by what their launcher says. Each rank allocates what ftc explain prints for "
                      "it, once, and runs the plan step by step."},
      .environment = {{"RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT",
                       "Who this process is, as torchrun says it."},
                      {"OMP_NUM_THREADS", "Threads of a rank, without --threads."},
                      {"LD_LIBRARY_PATH",
                       "Where NVIDIA's libraries are looked for first, with --device=cuda."}},
      .exits = ft::manual::CommonExits(),
      .examples = {{"ftexec plan.bin --data=corpus.txt --steps=100", "One rank."},
                   {"ftrun --nproc-per-node=2 ftexec plan.bin --data=corpus.txt --steps=100",
                    "Two ranks of this host."},
                   {"ftexec plan.bin --device=null --world-size=64 --target=h100-ib",
                    "What 64 ranks would take there, computing nothing."}},
      .see_also = {"ftc(1)", "ftrun(1)", "ftckpt(1)", "/usr/share/doc/ft/docs/plan-and-launch.md"}};
  page.exits.emplace_back(std::to_string(ft::kExitPeerLost), "Another rank is gone.");
  page.exits.emplace_back(std::to_string(ft::kExitEndedAsWished),
                          "A signal asked to save and end, and that was done.");
  return ft::manual::Write(argc, argv, ft::DescribeFlags, page);
}
