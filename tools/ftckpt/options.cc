#include "tools/ftckpt/options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/version.h"
#include "tools/ftckpt/commands.h"

namespace ft::ckpt {
namespace {

const std::map<std::string, DType>& DTypes() {
  static const auto& dtypes =
      *new std::map<std::string, DType>{{"bf16", DType::kBF16}, {"fp32", DType::kF32}, {"fp16", DType::kF16}};
  return dtypes;
}

// What the options are read into; the commands that refer to it live as long.
struct Line {
  std::string folder, a, b, source, to, dtype, optimizer_dtype, mesh;
  uint64_t max_file_bytes = 0;
  ShowOptions show;
  ConversionRequest conversion;
};

void AddReaders(CLI::App& app, Line& line) {
  CLI::App& list =
      *app.add_subcommand("list", "The checkpoints of a folder, and whether they are whole at a glance");
  list.add_option("dir", line.folder, "Folder of checkpoints (--checkpoint-dir)")->required();
  CLI::App& show = *app.add_subcommand("show", "What a checkpoint is of, and where its run stands");
  show.add_option("checkpoint", line.show.path, "A checkpoint, or a folder of them: the newest")->required();
  show.add_flag("--tensors", line.show.tensors, "Also all tensors, with shape, type and role");
  show.add_flag("--json", line.show.json, "For scripts");
  CLI::App& verify = *app.add_subcommand("verify", "Reads all files and compares all checksums");
  verify.add_option("checkpoint", line.folder, "A checkpoint")->required();
  CLI::App& diff = *app.add_subcommand(
      "diff", "Compares tensor by tensor; exit status 0 when all are equal, 1 when something differs");
  diff.add_option("a", line.a, "A checkpoint of any type, a folder of transformers, or a safetensors file")
      ->required();
  diff.add_option("b", line.b, "Likewise")->required();
}

void AddConvert(CLI::App& app, Line& line) {
  CLI::App& convert =
      *app.add_subcommand("convert", "Makes a checkpoint of another type, or files for Hugging Face");
  convert.add_option("source", line.source, "A checkpoint, or a folder of them: the newest")->required();
  convert.add_option("destination", line.conversion.destination, "A folder that is not there yet")
      ->required();
  convert
      .add_option(
          "--to", line.to,
          "full, sharded, local, or hf: weights alone, for from_pretrained. The source's type unless given")
      ->check(CLI::IsMember({"full", "sharded", "local", "hf"}));
  convert.add_option("--dtype", line.dtype, "Of the weights; as they are unless given")
      ->check(CLI::IsMember({"bf16", "fp32", "fp16"}));
  convert.add_option("--optimizer-dtype", line.optimizer_dtype, "Of what the optimizer keeps, likewise")
      ->check(CLI::IsMember({"bf16", "fp32", "fp16"}));
  convert.add_option("--ranks", line.conversion.ranks, "Of type sharded: for so many ranks")
      ->check(CLI::Range(1, kMostRankFiles));
  convert.add_option("--mesh", line.mesh, "Of type sharded: for these ranks, as replica:2,shard:4");
  convert
      .add_option("--max-shard-size", line.max_file_bytes,
                  "Most bytes of tensors in a file of type full or hf: 5GB, 512MiB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
}

// What is wrong with the options of convert; empty: nothing, and the request is complete.
std::string Settle(const CLI::App& convert, Line& line) {
  ConversionRequest& request = line.conversion;
  request.hugging_face = line.to == "hf";
  if (!line.to.empty() && !request.hugging_face) request.type = *ParseCheckpointType(line.to);
  if (!line.dtype.empty()) request.weights = DTypes().at(line.dtype);
  if (!line.optimizer_dtype.empty()) {
    if (request.hugging_face)
      return "--optimizer-dtype: files for Hugging Face have no state of the optimizer";
    request.optimizer = DTypes().at(line.optimizer_dtype);
  }
  if (!line.mesh.empty()) {
    const absl::StatusOr<Mesh> mesh = ParseMesh(line.mesh);
    if (!mesh.ok()) return "--mesh: " + std::string(mesh.status().message());
    if (request.ranks > 0 && request.ranks != mesh->world_size())
      return "--ranks and --mesh do not agree; one of them is enough";
    request.mesh = *mesh;
    request.ranks = 0;
  }
  if (convert.count("--max-shard-size") > 0) {
    if (line.max_file_bytes == 0) return "--max-shard-size must be more than nothing";
    request.max_file_bytes = line.max_file_bytes;
  }
  return "";
}

std::function<absl::StatusOr<int>()> CommandOf(const CLI::App& app, const std::shared_ptr<Line>& line) {
  if (app.got_subcommand("list")) return [line] { return List(line->folder); };
  if (app.got_subcommand("show")) return [line] { return Show(line->show); };
  if (app.got_subcommand("verify")) return [line] { return Verify(line->folder); };
  if (app.got_subcommand("diff")) return [line] { return Diff(line->a, line->b); };
  return [line] { return ConvertTo(line->source, line->conversion); };
}

constexpr char kDescription[] = "Looks at checkpoints, verifies, compares and converts them";

void AddAll(CLI::App& app, Line& line) {
  app.set_version_flag("--version", VersionText("ftckpt", {}));
  app.require_subcommand(1);
  AddReaders(app, line);
  AddConvert(app, line);
}

}  // namespace

void DescribeLine(const std::function<void(const CLI::App&)>& describe) {
  Line line;
  CLI::App app(kDescription, "ftckpt");
  AddAll(app, line);
  describe(app);
}

ParsedLine ParseLine(int argc, const char* const* argv) {
  ParsedLine parsed;
  const auto line = std::make_shared<Line>();
  CLI::App app(kDescription, "ftckpt");
  AddAll(app, *line);
  std::string wrong;
  try {
    app.parse(argc, argv);
    if (app.got_subcommand("convert")) wrong = Settle(*app.get_subcommand("convert"), *line);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return parsed;
    }
    wrong = std::string(error.what()) + "; ftckpt --help lists commands and options";
  }
  if (!wrong.empty()) {
    PrintError("ftckpt: " + wrong);
    parsed.exit_status = kExitUsage;
    return parsed;
  }
  parsed.command = CommandOf(app, line);
  return parsed;
}

}  // namespace ft::ckpt
