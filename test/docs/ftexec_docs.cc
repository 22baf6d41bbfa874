// docs/reference/ftexec.md, from the tables of flags.
#include "test/docs/generated_page.h"
#include "tools/ftexec/flags.h"

int main(int argc, char** argv) {
  return ft::GeneratedPage(
      argc, argv,
      "<!-- Written by ftexec_docs from tools/ftexec/flags.def and runtime/base/settings.def; run: ninja "
      "reference_docs -->\n\n# Flags of ftexec\n\n`ftexec PLAN --flag=value ...`; [plan-and-launch.md]"
      "(../plan-and-launch.md) explains them.\n" +
          ft::FlagsAsMarkdown());
}
