// The environments are those that the programs really set, but for their variables that play no part:
// Slurm 22.05, Open MPI 4.1, MPICH 4.0, the training operator's PyTorchJob.
#include "runtime/collective/rendezvous/launchers.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "runtime/collective/rendezvous/launcher_placement.h"

namespace ft {
namespace {

using Variables = std::map<std::string, std::string>;

int NoPeer(int) { return 0; }
int Peer14168(int descriptor) { return descriptor == 6 ? 14168 : 0; }

absl::StatusOr<LaunchEnvironment> ParseLaunch(const Variables& variables, PeerProcess peer = NoPeer) {
  return ParseLaunchEnvironment(
      [&](const char* name) -> const char* {
        auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      peer);
}

Variables Changed(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

Variables Without(Variables variables, const std::vector<std::string>& names) {
  for (const std::string& name : names) variables.erase(name);
  return variables;
}

// srun -N2 -n3: rank 1 is the second one on n0.
const Variables kStep = {{"SLURM_PROCID", "1"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "0"},
                         {"SLURMD_NODENAME", "n0"},
                         {"SLURM_JOB_ID", "7"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_STEPID", "2"},
                         {"SLURM_NTASKS", "3"},
                         {"SLURM_STEP_NUM_TASKS", "3"},
                         {"SLURM_TASKS_PER_NODE", "2,1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                         {"SLURM_NODELIST", "n[0-1]"},
                         {"SLURM_JOB_NODELIST", "n[0-1]"},
                         {"SLURM_STEP_NODELIST", "n[0-1]"},
                         {"SLURM_NNODES", "2"},
                         {"SLURM_STEP_NUM_NODES", "2"}};

// mpirun -n 2 on one host.
const Variables kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "1"},
    {"OMPI_COMM_WORLD_SIZE", "2"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"OMPI_COMM_WORLD_NODE_RANK", "1"},
    {"OMPI_UNIVERSE_SIZE", "2"},
    {"OMPI_MCA_ess_base_jobid", "1087832065"},
    {"OMPI_MCA_orte_hnp_uri", "1087832064.0;tcp://192.0.2.2:52429;tcp6://[fd00::2]:57559"},
    {"OMPI_MCA_orte_local_daemon_uri", "1087832064.0;tcp://192.0.2.2:52429;tcp6://[fd00::2]:57559"},
    {"PMIX_NAMESPACE", "1087832065"},
    {"PMIX_RANK", "1"}};

// The same with one rank on each of two hosts.
const Variables kOpenMpiOfTwoHosts =
    Changed(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                       {"OMPI_MCA_orte_local_daemon_uri", "1087832064.1;tcp://192.0.2.3:40001"}});

const Variables kHydra = {{"PMI_RANK", "1"},
                          {"PMI_SIZE", "2"},
                          {"MPI_LOCALRANKID", "1"},
                          {"MPI_LOCALNRANKS", "2"},
                          {"PMI_FD", "6"}};

const Variables kIndexedJob = {
    {"JOB_COMPLETION_INDEX", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "ft-0.ft"}};

void ExpectRefused(const Variables& variables, const std::vector<std::string>& words) {
  const auto environment = ParseLaunch(variables);
  ASSERT_TRUE(absl::IsInvalidArgument(environment.status())) << words[0] << ": " << environment.status();
  const std::string message(environment.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  for (const std::string& word : words)
    EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
}

TEST(Launchers, ATaskOfASlurmStep) {
  const auto environment = ParseLaunch(kStep);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->world_size, 3);
  EXPECT_EQ(environment->local_rank, 1);
  EXPECT_EQ(environment->local_world_size, 2);
  EXPECT_EQ(environment->group_rank, 0);
  EXPECT_EQ(environment->master_addr, "n0");
  EXPECT_EQ(environment->master_port, 20000 + 16 * 7 + 2);
  EXPECT_EQ(environment->run_id, "slurm-7.2");
  EXPECT_EQ(environment->restart_count, 0);
  EXPECT_EQ(environment->launcher, "srun");
  EXPECT_FALSE(environment->agent_store);
  const auto last = ParseLaunch(Changed(
      kStep,
      {{"SLURM_PROCID", "2"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "1"}, {"SLURMD_NODENAME", "n1"}}));
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->local_world_size, 1);
  EXPECT_EQ(last->master_addr, "n0");
  EXPECT_EQ(last->master_port, environment->master_port);
}

TEST(Launchers, ARequeuedJobCountsItsRestarts) {
  EXPECT_EQ(ParseLaunch(Changed(kStep, {{"SLURM_RESTART_COUNT", "4"}}))->restart_count, 4);
  ExpectRefused(Changed(kStep, {{"SLURM_RESTART_COUNT", "often"}}), {"SLURM_RESTART_COUNT='often'"});
}

// srun --relative=1 -N1 -n2 in an allocation of two nodes: the step is on n1 alone.
TEST(Launchers, AStepOnOneNode) {
  const auto environment = ParseLaunch(Changed(kStep, {{"SLURM_NTASKS", "2"},
                                                       {"SLURM_STEP_NUM_TASKS", "2"},
                                                       {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                                       {"SLURM_STEP_NODELIST", "n1"}}));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->master_addr, "127.0.0.1");
  EXPECT_EQ(environment->local_world_size, 2);
}

TEST(Launchers, ManySlurmTasks) {
  const auto environment =
      ParseLaunch(Changed(kStep, {{"SLURM_PROCID", "1026"},
                                  {"SLURM_LOCALID", "2"},
                                  {"SLURM_NODEID", "256"},
                                  {"SLURM_NTASKS", "1027"},
                                  {"SLURM_STEP_NUM_TASKS", "1027"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "4(x256),3"},
                                  {"SLURM_STEP_NODELIST", "gpu[001-128],a[1-2]b[1-64],z"}}));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->local_world_size, 3);
  EXPECT_EQ(environment->master_addr, "gpu001");
}

TEST(Launchers, OurOwnNamesCountBesideSlurms) {
  const auto environment = ParseLaunch(Changed(kStep, {{"MASTER_ADDR", "head"},
                                                       {"MASTER_PORT", "12345"},
                                                       {"LOCAL_RANK", "0"},
                                                       {"GROUP_RANK", "5"},
                                                       {"WORLD_SIZE", "3"}}));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->master_addr, "head");
  EXPECT_EQ(environment->master_port, 12345);
  EXPECT_EQ(environment->local_rank, 0);
  EXPECT_EQ(environment->group_rank, 5);
  // ftrun, or a user, in a step.
  const auto rank = ParseLaunch(Changed(kStep, {{"RANK", "5"},
                                                {"WORLD_SIZE", "8"},
                                                {"MASTER_ADDR", "head"},
                                                {"MASTER_PORT", "1"},
                                                {"LOCAL_RANK", "0"}}));
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->launcher, "");
}

TEST(Launchers, SlurmWhereRankZeroIsNotOnTheFirstNode) {
  const Variables arbitrary = Changed(kStep, {{"SLURM_DISTRIBUTION", "arbitrary"}});
  ExpectRefused(arbitrary,
                {"MASTER_ADDR is not set", "SLURM_DISTRIBUTION='arbitrary'", "srun --export=ALL,"});
  EXPECT_EQ(ParseLaunch(Changed(arbitrary, {{"MASTER_ADDR", "n1"}}))->master_addr, "n1");
  EXPECT_EQ(ParseLaunch(Changed(kStep, {{"SLURM_DISTRIBUTION", "cyclic"}}))->master_addr, "n0");
  ExpectRefused(Changed(kStep, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "1"}}),
                {"MASTER_ADDR is not set", "SLURM_NODEID='1'"});
}

TEST(Launchers, SlurmNonsenseIsNamed) {
  struct Case {
    Variables changes;
    std::vector<std::string> words;
  };
  const Case cases[] = {
      {{{"SLURM_PROCID", "3"}}, {"SLURM_PROCID='3'", "SLURM_STEP_NUM_TASKS='3'", "from 0 to 2"}},
      {{{"SLURM_PROCID", "-1"}}, {"SLURM_PROCID='-1'", "between 0"}},
      {{{"SLURM_PROCID", ""}}, {"SLURM_PROCID=''", "not a number"}},
      {{{"SLURM_STEP_NUM_TASKS", "0"}}, {"SLURM_STEP_NUM_TASKS='0'", "between 1"}},
      {{{"SLURM_STEP_NUM_TASKS", "x"}}, {"SLURM_STEP_NUM_TASKS='x'"}},
      // A batch script that a task of a step of two submitted.
      {{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}},
       {"SLURM_STEP_NUM_TASKS='2'", "contradicts SLURM_NTASKS='3'", "left over"}},
      {{{"SLURM_LOCALID", "2"}}, {"SLURM_LOCALID='2'", "not below", "2"}},
      {{{"SLURM_NODEID", "2"}}, {"SLURM_NODEID='2'", "not a node"}},
      {{{"SLURM_STEP_TASKS_PER_NODE", "2,2"}}, {"SLURM_STEP_TASKS_PER_NODE='2,2'", "counts 4 tasks"}},
      {{{"SLURM_STEP_TASKS_PER_NODE", "many"}}, {"SLURM_STEP_TASKS_PER_NODE='many'", "'many'"}},
      {{{"SLURM_STEP_NODELIST", "n[0-2]"}}, {"SLURM_STEP_NODELIST='n[0-2]'", "3 nodes", "tasks on 2"}},
      {{{"SLURM_STEP_NODELIST", "n[0-"}}, {"SLURM_STEP_NODELIST='n[0-'", "'[' without ']'"}},
      {{{"SLURM_JOB_ID", "abc"}}, {"SLURM_JOB_ID='abc'", "not a number"}},
      {{{"SLURM_STEP_ID", "batch"}}, {"SLURM_STEP_ID='batch'", "not a number"}},
      {{{"MASTER_PORT", "0"}}, {"MASTER_PORT='0'"}},
      {{{"MASTER_ADDR", ""}}, {"MASTER_ADDR=''", "empty"}},
      {{{"LOCAL_WORLD_SIZE", "4"}}, {"LOCAL_WORLD_SIZE='4'", "between 1 and 3"}},
      {{{"LOCAL_WORLD_SIZE", "1"}}, {"SLURM_LOCALID='1'", "not below"}},
      {{{"WORLD_SIZE", "8"}}, {"WORLD_SIZE='8'", "contradicts SLURM_STEP_NUM_TASKS='3' of srun"}},
  };
  for (const Case& c : cases) ExpectRefused(Changed(kStep, c.changes), c.words);
  ExpectRefused(Without(kStep, {"SLURM_NODEID"}), {"SLURM_NODEID is not set"});
  ExpectRefused(Without(kStep, {"SLURM_LOCALID"}), {"SLURM_LOCALID is not set"});
  ExpectRefused(Without(kStep, {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"}),
                {"SLURM_STEP_TASKS_PER_NODE is not set"});
  ExpectRefused(Without(kStep, {"SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"}),
                {"SLURM_STEP_NODELIST is not set"});
}

TEST(Launchers, OpenMpi) {
  const auto environment = ParseLaunch(kOpenMpi);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->world_size, 2);
  EXPECT_EQ(environment->local_rank, 1);
  EXPECT_EQ(environment->local_world_size, 2);
  EXPECT_EQ(environment->master_addr, "127.0.0.1");
  EXPECT_GE(environment->master_port, kFirstStorePort);
  EXPECT_LT(environment->master_port, kFirstStorePort + kStorePorts);
  EXPECT_EQ(environment->run_id, "PMIX_NAMESPACE-1087832065");
  EXPECT_EQ(environment->launcher, "Open MPI's mpirun");
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    ExpectRefused(Without(kOpenMpi, {variable}), {absl::StrCat(variable, " is not set")});
  ExpectRefused(Changed(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}), {"OMPI_COMM_WORLD_LOCAL_SIZE='3'"});
  ExpectRefused(Changed(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "2"}}),
                {"OMPI_COMM_WORLD_RANK='2'", "from 0 to 1"});
}

// Rank 0 is on mpirun's host unless it says otherwise; its address is known when there is one.
TEST(Launchers, OpenMpiOnSeveralHosts) {
  const auto environment = ParseLaunch(kOpenMpiOfTwoHosts);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->master_addr, "192.0.2.2");
  ExpectRefused(Changed(kOpenMpiOfTwoHosts, {{"OMPI_COMM_WORLD_RANK", "0"}}),
                {"MASTER_ADDR is not set", "not on the host of mpirun", "mpirun -x MASTER_ADDR=HOST"});
  ExpectRefused(
      Changed(kOpenMpiOfTwoHosts, {{"OMPI_MCA_orte_hnp_uri", "1.0;tcp://192.0.2.2,10.0.0.1:52429"}}),
      {"MASTER_ADDR is not set", "has 2 addresses"});
  for (const char* uri : {";", "1.0", "tcp://", "1.0;tcp6://[fd00::2]:57559", "1.0;tcp://:1"})
    ExpectRefused(Changed(kOpenMpiOfTwoHosts, {{"OMPI_MCA_orte_hnp_uri", uri}}), {"MASTER_ADDR is not set"});
  // Open MPI 5 does not say where mpirun is.
  const Variables five =
      Changed(Without(kOpenMpiOfTwoHosts,
                      {"OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_ess_base_jobid"}),
              {{"PMIX_NAMESPACE", "prterun-head-311@1"}});
  ExpectRefused(five, {"MASTER_ADDR is not set", "Open MPI's mpirun", "mpirun -x"});
  EXPECT_EQ(ParseLaunch(Changed(five, {{"MASTER_ADDR", "head"}}))->master_addr, "head");
}

// mpirun in a batch script: its daemons are tasks of a step of their own, whose variables the ranks inherit.
TEST(Launchers, OpenMpiInASlurmAllocation) {
  const Variables daemon = Changed(kStep, {{"SLURM_PROCID", "0"},
                                           {"SLURM_LOCALID", "0"},
                                           {"SLURM_NTASKS", "1"},
                                           {"SLURM_STEP_NUM_TASKS", "1"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                           {"SLURM_STEP_NODELIST", "n1"},
                                           {"SLURMD_NODENAME", "n1"}});
  const auto environment = ParseLaunch(Changed(kOpenMpiOfTwoHosts, daemon));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->world_size, 2);
  EXPECT_EQ(environment->local_world_size, 1);
  EXPECT_EQ(environment->master_addr, "n0");
  ExpectRefused(Changed(Changed(kOpenMpiOfTwoHosts, daemon), {{"OMPI_COMM_WORLD_RANK", "0"}}),
                {"MASTER_ADDR is not set", "it is on n1"});
}

TEST(Launchers, JobsOfOneHostMeetInStoresOfTheirOwn) {
  std::set<int> ports;
  std::set<std::string> runs;
  for (int job = 0; job < 100; ++job) {
    const auto slurm = ParseLaunch(Changed(kStep, {{"SLURM_JOB_ID", absl::StrCat(123400 + job / 10)},
                                                   {"SLURM_STEP_ID", absl::StrCat(job % 10)}}));
    ASSERT_TRUE(slurm.ok());
    ports.insert(slurm->master_port);
    runs.insert(slurm->run_id);
  }
  EXPECT_EQ(ports.size(), 100u);
  EXPECT_EQ(runs.size(), 100u);
  ports.clear();
  for (int job = 0; job < 20; ++job)
    ports.insert(ParseLaunch(Changed(kOpenMpi, {{"PMIX_NAMESPACE", absl::StrCat(1087832065 + 65536 * job)}}))
                     ->master_port);
  EXPECT_EQ(ports.size(), 20u);
  // Step numbers of Slurm's own, and the largest ones there are.
  for (const char* number : {"4294967290", "18446744073709551615"}) {
    const int port =
        ParseLaunch(Changed(kStep, {{"SLURM_JOB_ID", number}, {"SLURM_STEP_ID", number}}))->master_port;
    EXPECT_GE(port, kFirstStorePort);
    EXPECT_LT(port, kFirstStorePort + kStorePorts);
  }
}

TEST(Launchers, Hydra) {
  const auto environment = ParseLaunch(kHydra, Peer14168);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->local_rank, 1);
  EXPECT_EQ(environment->local_world_size, 2);
  EXPECT_EQ(environment->master_addr, "127.0.0.1");
  EXPECT_EQ(environment->run_id, "pid-14168");
  EXPECT_NE(environment->master_port, kDefaultStorePort);
  // Nothing to tell jobs apart.
  EXPECT_EQ(ParseLaunch(kHydra)->master_port, kDefaultStorePort);
  EXPECT_EQ(ParseLaunch(Without(kHydra, {"PMI_FD"}), Peer14168)->master_port, kDefaultStorePort);
  EXPECT_EQ(ParseLaunch(kHydra)->run_id, "none");
  EXPECT_EQ(ParseLaunch(Changed(kHydra, {{"MASTER_PORT", "1234"}}), Peer14168)->master_port, 1234);
  ExpectRefused(Changed(kHydra, {{"PMI_FD", "x"}}), {"PMI_FD='x'"});
  const Variables two_hosts = Changed(kHydra, {{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  ExpectRefused(two_hosts, {"MASTER_ADDR is not set", "mpiexec -genv MASTER_ADDR HOST"});
  // Each host has a process of mpiexec's own: no name for the job.
  EXPECT_EQ(ParseLaunch(Changed(two_hosts, {{"MASTER_ADDR", "a"}}), Peer14168)->master_port,
            kDefaultStorePort);
  EXPECT_EQ(
      ParseLaunch(Changed(two_hosts, {{"SLURM_JOB_NODELIST", "n[4-5]"}, {"SLURM_JOB_ID", "9"}}))->master_addr,
      "n4");
}

TEST(Launchers, OtherUsersOfPmi) {
  // srun --mpi=pmi2: Slurm says more.
  const auto step = ParseLaunch(Changed(kStep, {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"PMI_JOBID", "7.2"}}));
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->launcher, "srun");
  const auto pals = ParseLaunch({{"PMI_RANK", "5"},
                                 {"PMI_SIZE", "8"},
                                 {"PMI_LOCAL_RANK", "1"},
                                 {"PMI_LOCAL_SIZE", "4"},
                                 {"PALS_APID", "3a5c"},
                                 {"MASTER_ADDR", "x1000"}});
  ASSERT_TRUE(pals.ok()) << pals.status();
  EXPECT_EQ(pals->local_rank, 1);
  EXPECT_EQ(pals->local_world_size, 4);
  EXPECT_EQ(pals->run_id, "PALS_APID-3a5c");
  ExpectRefused({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}, {"MASTER_ADDR is not set"});
  const auto bare =
      ParseLaunch({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MASTER_ADDR", "a"}, {"LOCAL_RANK", "0"}});
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->rank, 5);
  const auto mvapich = ParseLaunch({{"MV2_COMM_WORLD_RANK", "1"},
                                    {"MV2_COMM_WORLD_SIZE", "2"},
                                    {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                                    {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(mvapich.ok()) << mvapich.status();
  EXPECT_EQ(mvapich->master_addr, "127.0.0.1");
}

TEST(Launchers, TwoAtOnceThatContradictEachOther) {
  const Variables one = Changed(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"},
                                           {"OMPI_COMM_WORLD_SIZE", "1"},
                                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                           {"PMIX_RANK", "0"}});
  EXPECT_EQ(ParseLaunch(one)->world_size, 1);
  // Each task of a step starts an mpirun of one rank.
  ExpectRefused(Changed(kStep, one), {"contradict each other", "OMPI_COMM_WORLD_SIZE='1' (Open MPI's mpirun)",
                                      "SLURM_STEP_NUM_TASKS='3' (srun)", "RANK=0 WORLD_SIZE=1"});
  ExpectRefused(Changed(kOpenMpi, Changed(kHydra, {{"PMI_RANK", "0"}})),
                {"contradict each other", "PMI_RANK='0'", "OMPI_COMM_WORLD_RANK='1'"});
  EXPECT_TRUE(ParseLaunch(Changed(kOpenMpi, kHydra)).ok());  // they agree
}

TEST(Launchers, PyTorchJob) {
  const Variables pod = {{"RANK", "1"},
                         {"WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "ft-master-0"},
                         {"MASTER_PORT", "23456"},
                         {"PET_NPROC_PER_NODE", "auto"},
                         {"PET_NODE_RANK", "1"},
                         {"PET_NNODES", "2"}};
  const auto environment = ParseLaunch(pod);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->local_rank, 0);
  EXPECT_EQ(environment->master_addr, "ft-master-0");
  EXPECT_EQ(environment->launcher, "");
  // WORLD_SIZE counts ranks then, but RANK pods.
  const Variables several = Changed(pod, {{"PET_NPROC_PER_NODE", "4"}, {"WORLD_SIZE", "8"}});
  ExpectRefused(several, {"PET_NPROC_PER_NODE='4'", "LOCAL_RANK is not set", "ftrun --nproc-per-node=4"});
  EXPECT_TRUE(ParseLaunch(Changed(several, {{"LOCAL_RANK", "0"}})).ok());  // torchrun's own child
}

TEST(Launchers, IndexedJob) {
  const auto environment = ParseLaunch(kIndexedJob);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 2);
  EXPECT_EQ(environment->world_size, 4);
  EXPECT_EQ(environment->local_rank, 0);
  EXPECT_EQ(environment->local_world_size, 1);
  EXPECT_EQ(environment->group_rank, 2);
  EXPECT_EQ(environment->master_addr, "ft-0.ft");
  EXPECT_EQ(environment->master_port, kDefaultStorePort);
  for (const char* index : {"0", "2"})
    ExpectRefused({{"JOB_COMPLETION_INDEX", index}},
                  {"JOB_COMPLETION_INDEX", "WORLD_SIZE is not set", "MASTER_ADDR"});
  ExpectRefused(Without(kIndexedJob, {"MASTER_ADDR"}), {"MASTER_ADDR is not set", "in the pods' env"});
  ExpectRefused(Changed(kIndexedJob, {{"JOB_COMPLETION_INDEX", "4"}}),
                {"JOB_COMPLETION_INDEX='4'", "WORLD_SIZE='4'"});
  EXPECT_EQ(ParseLaunch({{"JOB_COMPLETION_INDEX", "0"}, {"WORLD_SIZE", "1"}})->world_size, 1);
  EXPECT_EQ(ParseLaunch({{"JOB_COMPLETION_INDEX", "3"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}})->world_size, 1);
}

TEST(Launchers, NamesOfTheTableDiffer) {
  std::set<std::string> names;
  for (const Launcher& launcher : Launchers())
    EXPECT_TRUE(names.insert(launcher.name).second) << launcher.name;
  EXPECT_EQ(names.size(), 7u);
}

}  // namespace
}  // namespace ft
