// The tables of docs/train-yaml.md, from the tables of settings and foreign keys.
#include "test/docs/generated_page.h"
#include "tools/ftc/config/configure.h"

int main(int argc, char** argv) {
  return ft::GeneratedPage(argc, argv, "\n" + ftc::SettingsAsMarkdown(),
                           "<!-- written by train_yaml_docs: do not edit below -->\n");
}
