#include "runtime/checkpoint/inert_keys.h"

#include <set>

namespace ft {
namespace {

const std::set<std::string_view>& InertKeys() {
  static const std::set<std::string_view> keys = {
      // Where the file comes from, and who made it.
      "architectures", "transformers_version", "_name_or_path", "name_or_path", "_commit_hash", "model_name",
      "transformers.js_config", "unsloth_version", "unsloth_fixed", "is_llama_config", "finetuning_task",
      "task_specific_params", "_attn_implementation_autoset",
      // The type in which the tensors lie; each of them says its own.
      "dtype", "torch_dtype", "use_bfloat16",
      // Implementations of the same function.
      "attn_implementation", "_attn_implementation", "_attn_implementation_internal", "_flash_attn_2_enabled",
      "use_flash_attention_2", "use_cache", "output_past", "cache_implementation", "gradient_checkpointing",
      "torchscript", "pretraining_tp", "chunk_size_feed_forward", "tf_legacy_loss",
      // What is returned.
      "return_dict", "output_attentions", "output_hidden_states", "output_scores", "return_dict_in_generate",
      "num_labels", "_num_labels", "id2label", "label2id", "problem_type", "n_special",
      "predict_special_tokens", "ignore_index",
      // Random weights, which these are not.
      "initializer_range", "initializer_factor",
      // Tokens and generation.
      "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "prefix",
      "tokenizer_class", "max_length", "max_sequence_length", "min_length", "max_new_tokens", "do_sample",
      "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p",
      "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "forced_bos_token_id",
      "forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
      "begin_suppress_tokens"};
  return keys;
}

}  // namespace

bool IsInertKey(std::string_view key) {
  return InertKeys().contains(key) || key.find("dropout") != std::string_view::npos ||
         key.find("pdrop") != std::string_view::npos;
}

}  // namespace ft
