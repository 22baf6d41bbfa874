// Settings of sharding and of what runs beside compute.
#include "tools/ftc/config/setting_rows.h"

namespace ftc {
namespace {

constexpr char kSharding[] = "Sharding";
constexpr char kOverlap[] = "Overlap";
constexpr int64_t kMostElements = int64_t{1} << 53;

}  // namespace

std::vector<Setting> ShardingRows() {
  const Converter stage =
      FromWords({{"0", "no_shard"}, {"1", "zero1"}, {"2", "shard_grad_op"}, {"3", "full_shard"}});
  return {
      {"strategy",
       kSharding,
       "S",
       StrategyValue(),
       "How parameters, gradients and optimizer state are sharded",
       {{"fsdp.fsdp_sharding_strategy", FromWords({{"1", "full_shard"},
                                                   {"2", "shard_grad_op"},
                                                   {"3", "no_shard"},
                                                   {"4", "hybrid_shard"},
                                                   {"5", "hybrid_shard_zero2"}},
                                                  /*others=*/true)},
        {"fsdp.fsdp_reshard_after_forward",
         FromWords({{"true", "full_shard"}, {"false", "shard_grad_op"}}, /*others=*/true)},
        {"zero_optimization.stage", stage},
        {"zero_stage", stage}}},
      {"wrap",
       kSharding,
       "W",
       WrapValue(),
       "Parameters gathered together: a layer, by size, all, or layers by name",
       {{"fsdp.fsdp_auto_wrap_policy"}},
       "names:"},
      {"min_num_params",
       kSharding,
       "N",
       Integer(FT_OPTION(units.minNumParams), 1, kMostElements),
       "wrap=size: elements that close a unit",
       {{"fsdp.fsdp_min_num_params"}}},
      {"persistence_threshold",
       kSharding,
       "N",
       Integer(FT_OPTION(units.persistenceThreshold), 0, kMostElements),
       "Parameters with fewer elements stay gathered at rest",
       {{"zero_optimization.stage3_param_persistence_threshold"}}},
      {"frozen",
       kSharding,
       "PAT[,PAT]",
       Patterns(FT_OPTION(units.frozen)),
       "Parameters that are not trained",
       {{"freeze"}},
       ""},
      {"keep_gathered",
       kSharding,
       "PAT[,PAT]",
       Patterns(FT_OPTION(units.keepGathered)),
       "Units not released between forward and backward",
       {},
       ""},
  };
}

std::vector<Setting> OverlapRows() {
  return {
      {"prefetch",
       kOverlap,
       "P",
       Word("prefetch", FT_OPTION(overlap.prefetch), {"pre", "post", "none", "auto"},
            {{"backward_pre", "pre"}, {"backward_post", "post"}, {"no_prefetch", "none"}, {"null", "none"}}),
       "When backward gathers the next unit: before or after the current one's gradients; none: no overlap "
       "at all; auto: by cost",
       {{"fsdp.fsdp_backward_prefetch"},
        {"fsdp.fsdp_backward_prefetch_policy"},
        {"zero_optimization.overlap_comm", FromBool(std::nullopt, "none")}}},
      {"forward_prefetch",
       kOverlap,
       "N",
       Integer(FT_OPTION(overlap.forwardPrefetch), 0, 1024, {{"true", "1"}, {"false", "0"}}),
       "Units gathered ahead of their use in forward",
       {{"fsdp.fsdp_forward_prefetch"}}},
      {"limit_all_gathers",
       kOverlap,
       "N",
       Integer(FT_OPTION(overlap.limitAllGathers), 0, 1 << 20, {{"true", "2"}, {"false", "0"}}),
       "Gathered units alive at a time, the one in use included; 0: any number",
       {{"fsdp.limit_all_gathers"}, {"zero_optimization.stage3_max_live_parameters", MaxLiveParameters()}}},
      {"bucket_cap_mb",
       kOverlap,
       "X",
       Number(FT_OPTION(overlap.bucketCapMb), {.low = 0, .high = 1e9}),
       "MiB that reductions of gradients which are whole at rest are joined up to; 0: not joined",
       {{"fsdp.bucket_cap_mb"},
        {"ddp_bucket_cap_mb"},
        {"zero_optimization.reduce_bucket_size", ElementsToMib("reduce_dtype")}}},
      {"reduce_bucket_mb",
       kOverlap,
       "X",
       Number(FT_OPTION(overlap.reduceBucketMb), {.low = 0, .high = 1e9}),
       "The same for gradients that are sharded at rest",
       {{"zero_optimization.reduce_bucket_size", ElementsToMib("reduce_dtype")}}},
      {"gather_bucket_mb",
       kOverlap,
       "X",
       Number(FT_OPTION(overlap.gatherBucketMb), {.low = 0, .high = 1e9}),
       "MiB that gathers are joined up to; 0: not joined",
       {{"zero_optimization.stage3_prefetch_bucket_size", ElementsToMib("param_dtype")},
        {"zero_optimization.allgather_bucket_size", ElementsToMib("param_dtype")}}},
      {"target", kOverlap, "NAME|FILE.yaml", TargetValue(), "Machine that costs are estimated for"},
      {"memory_budget", kOverlap, "BYTES", Bytes(FT_OPTION(overlap.memoryBudget)),
       "Bytes of each rank's arena and of what the target announces beside it, a hard limit, within which "
       "prefetch=auto looks for the fastest; 0: none"},
      {"cluster_ops", kOverlap, "N", Integer(FT_OPTION(clusterOps), 1, ft::kMaxClusterValues),
       "Most primitives that run as one kernel; no bit depends on it"},
  };
}

}  // namespace ftc
