#!/usr/bin/env python3
"""A folder as transformers writes it, for docs/tutorial.md where nothing is downloaded: a small Llama with random weights,
a tokenizer trained on the text of the license.

Usage: make_folder.py DIR        (wants transformers and PyTorch)
"""
import pathlib
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"  # English that does not change, so that all of this repeats itself
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
VOCABULARY = 1024


def tokenizer():
    """Bytes and their most frequent pairs, as GPT-2's and SmolLM2's."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator(TEXT.read_text(encoding="utf-8").splitlines(keepends=True), trainer)
    named = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<|im_start|>", eos_token="<|im_end|>", pad_token="<|im_end|>")
    named.chat_template = CHATML
    return named


def model(names):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=352,
                         max_position_embeddings=2048, tie_word_embeddings=True, initializer_range=0.05,
                         bos_token_id=names.bos_token_id, eos_token_id=names.eos_token_id, pad_token_id=names.pad_token_id)
    return LlamaForCausalLM(config)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.rstrip())
    folder = pathlib.Path(sys.argv[1])
    if folder.exists():
        sys.exit(f"make_folder.py: {folder} is there already")
    names = tokenizer()
    made = model(names)
    names.save_pretrained(folder)
    made.save_pretrained(folder)
    print(f"{folder}: a Llama of {made.num_parameters():,} random parameters, {len(names)} tokens")


if __name__ == "__main__":
    main()
