#include "runtime/collective/rendezvous/foreign_launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/base/exit_status.h"

namespace ft {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchEnvironment> ParseVariables(const Variables& variables) {
  return ParseLaunchEnvironment([&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

bool FoundForAgents(const Variables& variables) {
  return FindForeignWorld(
             [&](const char* name) -> const char* {
               auto found = variables.find(name);
               return found == variables.end() ? nullptr : found->second.c_str();
             },
             ProcessKind::kAgent)
      .has_value();
}

// What an allocation of four tasks on two nodes says to a batch script, as Slurm 22.05 sets it.
const Variables kBatchScript = {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"},   {"SLURM_NPROCS", "4"},
                                {"SLURM_NNODES", "2"}, {"SLURM_PROCID", "0"},   {"SLURM_LOCALID", "0"},
                                {"SLURM_NODEID", "0"}, {"SLURM_TASK_PID", "99"}};

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

// What is visibly one of several, without all that would tell it which.
TEST(ForeignLauncher, WorldsOfSeveral) {
  const std::pair<Variables, std::string> worlds[] = {
      {With(kBatchScript, {{"SLURM_PROCID", "3"}}), "srun (SLURM_PROCID=3)"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "0"}}, "Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=2)"},
      {{{"PMI_SIZE", "3"}}, "mpiexec (PMI_SIZE=3)"},
      {{{"PMI_RANK", "2"}}, "mpiexec (PMI_RANK=2)"},
      {{{"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}}, "mpiexec (MPI_LOCALNRANKS=2)"},
      {{{"MV2_COMM_WORLD_SIZE", "2"}}, "MV2_COMM_WORLD_SIZE=2"},
      {{{"PMIX_RANK", "1"}}, "PMIX_RANK=1"},
      {{{"PET_NNODES", "2"}}, "PET_NNODES=2"},
      {{{"PET_NNODES", "1:4"}}, "PET_NNODES=1:4"},
      {{{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "8"}}, "PET_NPROC_PER_NODE=8"},
      {{{"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}, "LOCAL_WORLD_SIZE=2"}};
  for (const auto& [variables, words] : worlds) {
    const absl::Status status = ParseVariables(variables).status();
    EXPECT_EQ(ExitStatus(status), kExitBadInput) << words;
    EXPECT_NE(status.message().find(words), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("RANK is not set"), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("set RANK=0 WORLD_SIZE=1"), absl::string_view::npos) << status;
    EXPECT_TRUE(
        ParseVariables(
            With(variables,
                 {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}))
            .ok());
    // What PyTorch's scripts export for all, without RANK.
    const Variables some = {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"WORLD_SIZE", "4"}};
    if (words != "LOCAL_WORLD_SIZE=2") {
      EXPECT_NE(ParseVariables(With(variables, some)).status().message().find(words),
                absl::string_view::npos);
    }
  }
}

TEST(ForeignLauncher, TheLineSaysWhatToSet) {
  EXPECT_EQ(ParseVariables({{"PMI_SIZE", "3"}}).status().message(),
            "this is one of several processes started by mpiexec (PMI_SIZE=3), but RANK is not set, so each "
            "would train alone and write the same files: set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, "
            "MASTER_ADDR (rank 0's host) and MASTER_PORT on each, or start one ftrun on each node with "
            "--nnodes and --node-rank; to train alone all the same, set RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 "
            "LOCAL_WORLD_SIZE=1");
  EXPECT_NE(ParseVariables({{"PET_NNODES", "2"}}).status().message().find("start it by torchrun --no-python"),
            absl::string_view::npos);
}

TEST(ForeignLauncher, NoFalseAlarm) {
  const Variables alone[] = {
      {},
      kBatchScript,
      // The shell of salloc -n4, without and with an interactive step.
      {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}},
      With(kBatchScript, {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}}),
      {{"SLURM_STEP_NUM_TASKS", "4"}},  // left over: no task of a step
      {{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}},
      {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}, {"MPI_LOCALNRANKS", "1"}},
      {{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "1"}},
      {{"PET_NPROC_PER_NODE", "auto"}},
      {{"PET_NNODES", ""}, {"PMI_SIZE", "many"}},
      {{"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}};
  for (const Variables& variables : alone) {
    const auto environment = ParseVariables(variables);
    ASSERT_TRUE(environment.ok()) << environment.status();
    EXPECT_EQ(environment->world_size, 1);
  }
}

// Alone in an allocation of several: no error, but it is said.
TEST(ForeignLauncher, AnAllocationWithoutSrunIsRemarked) {
  EXPECT_EQ(ParseVariables(kBatchScript)->remark,
            "this process was not started by srun, so it trains alone, though SLURM_NTASKS='4': for one rank "
            "a task, start it by srun; without this line, set RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 "
            "LOCAL_WORLD_SIZE=1");
  // Submitted by the task of a step, whose variables it inherits.
  const Variables inherited = With(
      kBatchScript, {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_NODELIST", "n0"}});
  EXPECT_NE(ParseVariables(inherited)->remark, "");
  EXPECT_EQ(ParseVariables(With(kBatchScript, {{"SLURM_NTASKS", "1"}}))->remark, "");
  EXPECT_EQ(ParseVariables(With(kBatchScript, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}))->remark, "");
  EXPECT_EQ(ParseVariables({{"SLURM_NTASKS", "4"}})->remark, "");  // no allocation
}

TEST(ForeignLauncher, AgentsStartTheRanksOfTheirNode) {
  EXPECT_TRUE(FoundForAgents({{"PET_NNODES", "2"}}));
  EXPECT_TRUE(FoundForAgents({{"OMPI_COMM_WORLD_SIZE", "2"}}));
  // As the first of several, too.
  EXPECT_TRUE(FoundForAgents({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  EXPECT_TRUE(FoundForAgents(
      {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "2"}}));
  EXPECT_TRUE(FoundForAgents({{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
  EXPECT_TRUE(FoundForAgents({{"JOB_COMPLETION_INDEX", "1"}}));
  EXPECT_FALSE(FoundForAgents({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(FoundForAgents(kBatchScript));
  EXPECT_FALSE(FoundForAgents({{"PET_NPROC_PER_NODE", "8"}, {"LOCAL_WORLD_SIZE", "2"}}));
}

}  // namespace
}  // namespace ft
