// What models of several families have in common: activations, scores of attention, embeddings of tokens.
#pragma once

#include "models/base/graph_builder.h"

namespace ft::models {

// The config's function of x, and of gate times up.
mlir::Value activate(GraphBuilder &graph, const ModelConfig &config, mlir::Value x);
mlir::Value activateGated(GraphBuilder &graph, const ModelConfig &config, mlir::Value gate, mlir::Value up);

// One clear line when there is no such function, else empty.
std::string checkActivation(const ModelConfig &config);

// What the config says of attention in layer `layer`, or in one that has no number, -1.
AttentionOptions attentionOf(GraphBuilder &graph, const ModelConfig &config, int64_t layer);

// [batch, seq] of i1: whether an id is another than the config's padding token, which there is.
mlir::Value isNoPadding(GraphBuilder &graph, const ModelConfig &config, mlir::Value ids);

// Rows of the table for ids [batch, seq], tokens for example; that of the padding token's number is read and
// not trained, as PyTorch's padding_idx has it.
mlir::Value embed(GraphBuilder &graph, const ModelConfig &config, mlir::Value ids, mlir::Value table);

// The table of tokens, and what makes logits of the last hidden states: the table again where the head is
// tied, a parameter `head` else. A tied table has that name, too.
mlir::Value tokenTable(GraphBuilder &graph, const ModelConfig &config, const char *table, const char *head);
mlir::Value headWeight(GraphBuilder &graph, const ModelConfig &config, const char *table, const char *head);

// Ends a classifier: its loss, with accuracy as an output.
mlir::OwningOpRef<mlir::ModuleOp> finishClassifier(GraphBuilder &graph, mlir::Value logits,
                                                   mlir::Value labels);

// base + factor * x after dropout: what a layer adds to the residual stream.
mlir::Value addResidual(GraphBuilder &graph, const ModelConfig &config, mlir::Value base, mlir::Value x);

} // namespace ft::models
