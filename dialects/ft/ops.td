// The only list of ops of the graph level: what is included here is the dialect. Every op that computes has a derivative (or is
// itself one), a cost, a kernel.
#ifndef FT_OPS
#define FT_OPS

include "dialects/ft/parameter_ops.td"
include "dialects/ft/primitive_ops.td"
include "dialects/ft/index_ops.td"
include "dialects/ft/composite_ops.td"
include "dialects/ft/compute_ops.td"
include "dialects/ft/loss_ops.td"
include "dialects/ft/latent_ops.td"
include "dialects/ft/unit_ops.td"
include "dialects/ft/host_ops.td"
include "dialects/ft/cluster_ops.td"

#endif // FT_OPS
