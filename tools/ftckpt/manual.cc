// Writes the manual of ftckpt and its completions.
#include "tools/ftckpt/options.h"
#include "tools/manual/exits.h"
#include "tools/manual/write.h"

int main(int argc, char** argv) {
  ft::manual::Page page = {
      .description = {"A checkpoint is a folder that ftexec(1) writes with --checkpoint-dir. It needs "
                      "neither plan nor GPU to be looked at."},
      .exits = ft::manual::CommonExits(),
      .examples = {{"ftckpt list run", "The checkpoints of a folder, and whether they are whole."},
                   {"ftckpt show --tensors run", "What the newest is of, and all its tensors."},
                   {"ftckpt convert run tuned --to=hf",
                    "Weights as from_pretrained of transformers loads them."}},
      .see_also = {"ftexec(1)", "/usr/share/doc/ft/docs/ftckpt.md"}};
  page.exits.insert(page.exits.begin() + 1, {"1", "ftckpt diff: something differs."});
  return ft::manual::Write(argc, argv, ft::ckpt::DescribeLine, page);
}
