// Writes the manual of ftrun and its completions.
#include "tools/ftrun/options.h"
#include "tools/manual/exits.h"
#include "tools/manual/write.h"

int main(int argc, char** argv) {
  ft::manual::Page page = {
      .description = {"Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and what else "
                      "torchrun sets. One ftrun is started on each "
                      "node; that of node 0 holds the store where ranks meet."},
      .exits = ft::manual::CommonExits(),
      .examples = {{"ftrun --nproc-per-node=2 ftexec plan.bin --data=corpus.txt --steps=100",
                    "Two ranks of this host."},
                   {"ftrun --nnodes=2 --node-rank=0 --master-addr=a --nproc-per-node=8 ftexec plan.bin "
                    "--data=corpus.bin",
                    "The first of two nodes with eight ranks each."}},
      .see_also = {"ftexec(1)", "ftc(1)", "/usr/share/doc/ft/docs/plan-and-launch.md"}};
  page.exits.emplace_back("other", "That of the rank that failed first.");
  return ft::manual::Write(argc, argv, ft::run::DescribeOptions, page);
}
