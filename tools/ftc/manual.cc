// Writes the manual of ftc and its completions.
#include "tools/ftc/command_line.h"
#include "tools/manual/exits.h"
#include "tools/manual/write.h"

int main(int argc, char** argv) {
  const ft::manual::Page page = {
      .description = {"A model is the forward graph of one, as text in the dialect ft of MLIR: of ftc model, "
                      "ftc import, or ft.export of the Python "
                      "package. ftc compile makes a plan of it: forward, backward, reduction of gradients, "
                      "clipping and optimizer as one static "
                      "schedule, which ftexec(1) runs on any number of ranks. What a plan costs is known "
                      "before it runs: ftc explain and ftc report."},
      .exits = ft::manual::CommonExits(),
      .examples = {{"ftc model gpt2 -o model.mlir", "The forward graph of GPT-2's debug preset."},
                   {"ftc compile model.mlir --strategy=full_shard -o plan.bin",
                    "A plan that shards parameters, gradients and optimizer state."},
                   {"ftc explain plan.bin --world-size=8 --target=h100-ib",
                    "Memory, traffic and time of a step on eight GPUs."},
                   {"ftc report plan.bin -o report.html", "The same as a page to look at."}},
      .see_also = {"ftexec(1)", "ftrun(1)", "ftckpt(1)", "/usr/share/doc/ft"}};
  return ft::manual::Write(argc, argv, ftc::DescribeCommandLine, page);
}
