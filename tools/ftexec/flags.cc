#include "tools/ftexec/flags.h"

#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "tools/ftexec/gpu_sharing.h"

namespace ft {
namespace {

constexpr const char* kDescription =
    "Trains a model by its plan. Run it alone for one rank, or under torchrun or ftrun, which say through "
    "RANK, WORLD_SIZE, MASTER_ADDR "
    "and MASTER_PORT who each process is.";
constexpr const char* kFooter =
    "Without --threads a rank uses OMP_NUM_THREADS threads, or the cores it may run on shared among the "
    "ranks of its host.\n"
    "Exit status: 0 done, 2 wrong usage, 65 bad input, 74 input/output failed, 75 another rank was lost, "
    "143 saved and ended by a signal.\n"
    "Example: torchrun --no-python --nproc-per-node=2 ftexec plan.bin --data=corpus.txt --steps=1000";

// An option that takes one of a few words, each standing for a value.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const std::string& name, T& value,
                       std::vector<std::pair<std::string_view, T>> choices, std::string_view shown_default,
                       const std::string& help) {
  std::string words;
  for (const auto& choice : choices) words += (words.empty() ? "" : "|") + std::string(choice.first);
  const auto parse = [&value, choices, name](const std::string& word) {
    std::vector<std::string_view> names;
    for (const auto& choice : choices) {
      if (choice.first == word) return void(value = choice.second);
      names.push_back(choice.first);
    }
    throw CLI::ValidationError(name, UnknownName("value", word, names));
  };
  return app.add_option_function<std::string>(name, parse, help)
      ->type_name(words)
      ->default_str(std::string(shown_default));
}

// The validators check the text: CLI11 takes what does not fit for the nearest number, and NaN for any.
CLI::Validator IntegerFrom(int64_t least) {
  const auto check = [least](std::string& text) {
    int64_t value = 0;
    const bool good = absl::SimpleAtoi(text, &value) && value >= least;
    return good ? std::string()
                : "'" + text + "' is no whole number from " + std::to_string(least) +
                      " to 9223372036854775807";
  };
  return CLI::Validator(check, "");
}

CLI::Validator NumberIn(double least, double most) {
  const auto check = [least, most](std::string& text) {
    double value = 0;
    const bool good = absl::SimpleAtod(text, &value) && value >= least && value <= most;
    return good ? std::string() : absl::StrCat("'", text, "' is no number from ", least, " to ", most);
  };
  return CLI::Validator(check, "");
}

void ParseData(const std::string& name, const std::string& text, std::vector<DataEntry>& entries) {
  absl::StatusOr<std::vector<DataEntry>> parsed = ParseDataList(text);
  if (!parsed.ok()) throw CLI::ValidationError(name, std::string(parsed.status().message()));
  entries = *std::move(parsed);
}

void AddInput(CLI::App& app, Flags& flags) {
  app.add_option("plan", flags.plan, "The plan, made by ftc compile")->required()->type_name("PLAN");
  app.add_option_function<std::string>(
         "--data", [&flags](const std::string& text) { ParseData("--data", text, flags.data); },
         "What to train on: text files (every byte a token, for models of 256), llm.c's .bin, uint16 or "
         "uint32 tokens; safetensors with a tensor for each input of the model. Files, folders and globs "
         "('data/*.bin'); with weights each entry is a source with "
         "epochs of its own, else all are one")
      ->type_name("PATH[:WEIGHT][,...]");
  AddChoice<DataFormat>(
      app, "--data-format", flags.data_format,
      {{"auto", DataFormat::kAuto},
       {"text", DataFormat::kText},
       {"llmc", DataFormat::kLlmc},
       {"u16", DataFormat::kU16},
       {"u32", DataFormat::kU32},
       {"safetensors", DataFormat::kSafetensors}},
      "auto",
      "How the data file spells its tokens or examples; auto refuses what it cannot read, any other word is "
      "obeyed");
  AddChoice<std::optional<bool>>(app, "--shuffle", flags.shuffle, {{"on", true}, {"off", false}}, "on",
                                 "Whether sequences come in an order drawn from the seed, anew every epoch");
  app.add_option(
         "--init", flags.init,
         "Start from these weights (safetensors file or folder) instead of random ones; a config.json "
         "beside them must be of the plan's model")
      ->type_name("PATH");
  app.add_option("--allow-unused", flags.allow_unused,
                 "Tensors of --init that may have no place in the model (* and ? stand for any text and one "
                 "letter); several with commas, or the option again")
      ->type_name("GLOB")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddTraining(CLI::App& app, Flags& flags) {
  const CLI::Validator rate = NumberIn(0, std::numeric_limits<float>::max());
  TrainingSettings& run = flags.run;
  app.add_option("--steps", run.steps,
                 "Optimizer steps (else the plan's; else one pass over the data, or one step with null)")
      ->type_name("N")
      ->check(IntegerFrom(0));
  app.add_option("--lr", run.lr, "Learning rate, the highest of the schedule (else the plan's, else 0.0003)")
      ->type_name("X")
      ->check(rate);
  AddChoice<std::optional<LrSchedule::Kind>>(app, "--lr-schedule", run.lr_schedule,
                                             {{"constant", LrSchedule::Kind::kConstant},
                                              {"linear", LrSchedule::Kind::kLinear},
                                              {"cosine", LrSchedule::Kind::kCosine}},
                                             "", "After the warm-up (else the plan's, else constant)");
  CLI::Option* warmup_steps =
      app.add_option("--warmup-steps", run.warmup_steps, "Steps in which the rate rises from 0")
          ->type_name("N")
          ->check(IntegerFrom(0));
  app.add_option("--warmup-ratio", run.warmup_ratio, "The same as a part of all steps")
      ->type_name("X")
      ->check(NumberIn(0, 1))
      ->excludes(warmup_steps);
  app.add_option("--min-lr", run.min_lr, "Where a linear or cosine schedule ends")
      ->type_name("X")
      ->check(rate);
  app.add_option("--seed", run.seed, "Of parameters, shuffling and sampling (else the plan's, else 42)")
      ->type_name("N")
      ->check(IntegerFrom(INT64_MIN));
  app.add_option(
         "--max-bad-steps", run.max_bad_steps,
         "Steps in a row with a loss or gradient norm that is not finite, none of them applied, that end "
         "the run (else the plan's, else 3)")
      ->type_name("N")
      ->check(IntegerFrom(1));
}

void AddEvaluation(CLI::App& app, Flags& flags) {
  const auto parse_data = [&flags](const std::string& text) {
    ParseData("--eval-data", text, flags.eval_data);
    if (flags.eval_data[0].weight.has_value())
      throw CLI::ValidationError("--eval-data", "takes no weights: every sequence is evaluated once");
  };
  app.add_option_function<std::string>(
         "--eval-data", parse_data,
         "Tokens to evaluate on, at the end of the run; as --data, without weights")
      ->type_name("PATH[,...]");
  app.add_option("--eval-every", flags.eval_every, "Evaluate also after every N steps")
      ->type_name("N")
      ->check(IntegerFrom(1));
  app.add_option("--eval-steps", flags.eval_steps, "At most this many batches in an evaluation")
      ->type_name("N")
      ->check(IntegerFrom(1));
}

void AddOutput(CLI::App& app, Flags& flags) {
  app.add_option("--save-weights", flags.save_weights,
                 "Write the trained weights as safetensors, whole tensors")
      ->type_name("FILE");
  app.add_option("--metrics", flags.metrics, "One JSON object a step, written by rank 0")
      ->type_name("FILE.jsonl");
  AddChoice<ProgressMode>(
      app, "--progress", flags.progress,
      {{"auto", ProgressMode::kAuto}, {"on", ProgressMode::kOn}, {"off", ProgressMode::kOff}}, "auto",
      "A line that updates on a terminal, plain lines elsewhere; on: the updating line everywhere");
  app.add_option(
         "--log-dir", flags.log_dir,
         "Every rank also adds its messages and steps to rank<R>.log in this folder, rank 0 curves for "
         "TensorBoard; when the run is ended, every rank where it stood, for ftc postmortem")
      ->type_name("DIR");
  app.add_option("--trace", flags.trace,
                 "A Chrome trace (chrome://tracing, Perfetto), one track per stream and rank")
      ->type_name("FILE.json");
  app.add_option("--trace-steps", flags.trace_steps, "Steps in the trace, from the first")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
}

// "GBPS,US"
void ParseLink(const std::string& text, std::optional<EmulatedLink>& link) {
  const std::vector<std::string> pair = absl::StrSplit(text, ',');
  EmulatedLink parsed;
  // Written so that NaN fails.
  if (pair.size() != 2 || !absl::SimpleAtod(pair[0], &parsed.gigabits_per_s) ||
      !absl::SimpleAtod(pair[1], &parsed.latency_us) ||
      !(parsed.gigabits_per_s >= 1e-6 && parsed.gigabits_per_s <= 1e6) ||
      !(parsed.latency_us >= 0 && parsed.latency_us <= 1e9)) {
    throw CLI::ValidationError("--emulate-link",
                               "wants GBPS,US, such as 10,50 for 10 Gb/s and 50 us, not '" + text + "'");
  }
  link = parsed;
}

void AddRanks(CLI::App& app, Flags& flags) {
  const auto parse_mesh = [&flags](const std::string& text) {
    const absl::StatusOr<Mesh> mesh = ParseMesh(text);
    if (!mesh.ok()) throw CLI::ValidationError("--mesh", std::string(mesh.status().message()));
    flags.mesh = *mesh;
  };
  app.add_option_function<std::string>(
         "--mesh", parse_mesh,
         "Ranks by axis; those of one shard group follow each other. Without it "
         "strategies that use both axes shard over the ranks of a node")
      ->type_name("replica:R,shard:S");
  app.add_option_function<std::string>(
         "--emulate-link", [&flags](const std::string& text) { ParseLink(text, flags.emulated_link); },
         "Makes gathers and reductions take at least as long as over a link of GBPS gigabits (10^9 bits) a "
         "second "
         "and US microseconds of latency; ranks wait asleep")
      ->type_name("GBPS,US");
  app.add_option("--world-size", flags.world_size,
                 "With --device=null: how many ranks to simulate; what the plan was compiled for by default")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
}

constexpr const char* kCudaOptions[] = {"--cuda-graph", "--tf32", "--attention", "--deterministic",
                                        "--share-gpus"};

void AddCuda(CLI::App& app, CudaFlags& cuda) {
  AddChoice<bool>(app, "--cuda-graph", cuda.graph, {{"on", true}, {"off", false}}, "on",
                  "Whether a step is recorded once as a CUDA graph and replayed");
  AddChoice<bool>(app, "--tf32", cuda.platform.allow_tf32, {{"on", true}, {"off", false}}, "off",
                  "Whether fp32 matrix products may run on tensor cores, with 10 bits of precision");
  AddChoice<cuda::AttentionChoice>(
      app, "--attention", cuda.platform.attention,
      {{"auto", cuda::AttentionChoice::kAuto},
       {"cudnn", cuda::AttentionChoice::kCudnn},
       {"own", cuda::AttentionChoice::kOwn}},
      "auto",
      "By cuDNN, by our own kernel (slow in 16 bits), or auto: by cuDNN, an error "
      "where it refuses a 16-bit shape; fp32, and what cuDNN cannot compute "
      "deterministically, by our own");
  AddChoice<bool>(
      app, "--deterministic", cuda.platform.deterministic, {{"on", true}, {"off", false}}, "off",
      "Whether the same plan gives the same bits whatever its strategy, and every time: collectives "
      "sum in the order of ranks, and no algorithm is chosen by its timing");
  cuda.platform.share_devices = NcclMayShareGpus();
  AddChoice<bool>(app, "--share-gpus", cuda.platform.share_devices, {{"on", true}, {"off", false}}, "off",
                  "Whether several ranks may compute on one GPU, which NCCL 2.30 can (sets its "
                  "NCCL_MULTI_RANK_GPU_ENABLE, which is the default where it is set); else that is an error "
                  "when ranks meet");
}

void AddMachine(CLI::App& app, Flags& flags) {
  app.add_flag(
      "--check", flags.check,
      "Proves the job and trains nothing: environment, ranks, files, memory, disks, and each link between "
      "ranks against what the plan was reckoned for. A table, and exit status 0 if it can run");
  AddChoice<DeviceKind>(app, "--device", flags.device,
                        {{"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}, {"null", DeviceKind::kNull}},
                        "cpu",
                        "cuda: the NVIDIA GPU number LOCAL_RANK, or the only one that this rank is shown; "
                        "null computes nothing and keeps simulated time");
  app.add_option("--threads", flags.threads, "Threads that compute in each rank")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxThreads));
  std::vector<std::pair<std::string_view, std::optional<cpu::Isa>>> isas = {{"auto", std::nullopt}};
  for (cpu::Isa isa : cpu::UsableIsas()) isas.emplace_back(cpu::Name(isa), isa);
  AddChoice<std::optional<cpu::Isa>>(app, "--instruction-set", flags.instruction_set, std::move(isas), "auto",
                                     "Best one for kernels on the CPU, of those that this machine has; all "
                                     "ranks use the best one that every "
                                     "rank may use, since results differ between them");
  AddChoice<bool>(app, "--kernels", flags.generated_kernels, {{"generated", true}, {"reference", false}},
                  "generated",
                  "reference: no code of the plan is run; what it was made of is computed op by op, slowly");
  AddChoice<CollectiveBackend>(app, "--comm-backend", flags.backend,
                               {{"auto", CollectiveBackend::kAuto},
                                {"shm", CollectiveBackend::kShm},
                                {"gloo", CollectiveBackend::kGloo},
                                {"nccl", CollectiveBackend::kNccl}},
                               "auto",
                               "shm: shared memory on one host; gloo: TCP; nccl: between GPUs; auto: nccl "
                               "with --device=cuda, else shm "
                               "when all ranks share a host");
  app.add_option("--timeout", flags.timeout_seconds,
                 "Seconds to wait for other ranks, when meeting and in each collective")
      ->type_name("S")
      ->capture_default_str()
      ->check(NumberIn(0.1, 1e7));
  app.add_option("--grace", flags.grace_seconds,
                 "Seconds that SIGTERM or SIGUSR1 leaves a run to save and end, where it writes checkpoints; "
                 "launchers kill after 30")
      ->type_name("S")
      ->capture_default_str()
      ->check(NumberIn(0, 1e7));
}

std::string CheckTogether(const CLI::App& app, const Flags& flags) {
  if (flags.device != DeviceKind::kNull && flags.data.empty())
    return "--data is missing: what shall it train on?";
  if (flags.device != DeviceKind::kNull && app.count("--world-size") > 0)
    return "--world-size is for --device=null; otherwise the launcher sets it";
  if (flags.mesh.has_value() && app.count("--world-size") > 0 &&
      flags.mesh->world_size() != flags.world_size) {
    return absl::StrCat("--mesh=", MeshText(*flags.mesh), " has ", flags.mesh->world_size(),
                        " ranks, but --world-size is ", flags.world_size);
  }
  if (app.count("--allow-unused") > 0 && flags.init.empty()) return "--allow-unused needs --init";
  for (const char* name : {"--eval-every", "--eval-steps"}) {
    if (app.count(name) > 0 && flags.eval_data.empty()) return std::string(name) + " needs --eval-data";
  }
  for (const char* name : kCudaOptions) {
    if (app.count(name) > 0 && flags.device != DeviceKind::kCuda)
      return std::string(name) + " is for --device=cuda";
  }
  if (flags.backend == CollectiveBackend::kNccl && flags.device != DeviceKind::kCuda)
    return "--comm-backend=nccl is for --device=cuda";
  if (flags.device == DeviceKind::kCuda && flags.emulated_link.has_value())
    return "--emulate-link is for --device=cpu";
  for (const char* name : {"--threads", "--instruction-set"}) {
    if (flags.device == DeviceKind::kCuda && app.count(name) > 0)
      return std::string(name) + " is for --device=cpu";
  }
  if (app.count("--trace-steps") > 0 && flags.trace.empty()) return "--trace-steps needs --trace";
  if (flags.device == DeviceKind::kNull) {
    for (const char* name : {"--init", "--save-weights", "--metrics", "--eval-data", "--emulate-link",
                             "--checkpoint-dir", "--resume"}) {
      if (app.count(name) > 0)
        return std::string(name) + " makes no sense with --device=null, which computes nothing";
    }
  }
  return "";
}

// CLI11 says only that arguments were not expected; say which option may have been meant.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const std::string& extra : app.remaining()) {
    const std::string name = extra.substr(0, extra.find('='));
    if (name.rfind("--", 0) != 0) return "unexpected argument '" + extra + "'";
    const std::string_view nearest = NearestName(name, views);
    return "unknown option '" + name + "'" +
           (nearest.empty() ? "; ftexec --help lists them"
                            : ", did you mean '" + std::string(nearest) + "'?");
  }
  return error.what();
}

int Usage(const std::string& message) {
  PrintError("ftexec: " + message);
  return kExitUsage;
}

}  // namespace

int ParseFlags(int argc, char** argv, Flags& flags) {
  flags.arguments.assign(argv + 1, argv + argc);
  CLI::App app(kDescription, "ftexec");
  app.footer(kFooter);
  app.set_version_flag("--version", FT_VERSION);
  AddInput(app, flags);
  AddTraining(app, flags);
  AddEvaluation(app, flags);
  AddOutput(app, flags);
  AddCheckpoints(app, flags.checkpoints);
  AddMachine(app, flags);
  AddCuda(app, flags.cuda);
  AddRanks(app, flags);
  // Unknown options are looked at first, before a missing one is complained about.
  app.allow_extras();
  // For CLI11, `--metrics= --steps=3` would name the file "--steps=3".
  for (const char* const* argument = argv + 1; argument < argv + argc; ++argument) {
    const std::string_view text = *argument;
    if (text.rfind("--", 0) == 0 && text.find('=') == text.size() - 1)
      return Usage(std::string(text.substr(0, text.size() - 1)) + " is given no value");
  }
  try {
    app.parse(argc, argv);
    if (app.remaining_size() > 0) throw CLI::ExtrasError(app.remaining());
  } catch (const CLI::Success& success) {
    return app.exit(success) == 0 ? kExitOk : kExitUsage;
  } catch (const CLI::ParseError& error) {
    return Usage(Explain(app, error));
  }
  std::string mistake = CheckTogether(app, flags);
  if (mistake.empty()) mistake = CheckTogether(app, flags.checkpoints);
  if (!mistake.empty()) return Usage(mistake);
  if (flags.mesh.has_value()) flags.world_size = flags.mesh->world_size();
  return -1;
}

}  // namespace ft
