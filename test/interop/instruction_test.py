"""From conversations to a tuned model: ft-tokenize, packed .ftd, ranks and micro-steps, against a loop of PyTorch with labels of -100 and a block-diagonal mask."""
import unittest

import torch
import transformers as tf
from torch.nn import functional as F

from masked_loss_test import BATCH, STEPS, Steps
from tokenize_chat_test import conversations
from tokenizing import TokenizeTest

import ftd_files  # of test/e2e

SEQ = 192
tf.logging.set_verbosity_error()


class InstructionTest(Steps, TokenizeTest):
    @property
    def data(self):
        return self.folder / "data.ftd"

    def packed_rows(self, count):
        """Rows of packed conversations as transformers tokenizes them and says what counts; the same conversations in data.ftd."""
        folder, tokenizer = self.tokenizer("llama3")
        texts = [text for text in self.texts if 10 < len(text) < 90]
        records, documents, masks = [], [], []
        for record in conversations(texts[:400]):
            made = tokenizer.apply_chat_template(record["messages"], return_dict=True, return_assistant_tokens_mask=True)
            if len(made["input_ids"]) <= SEQ:
                records.append(record)
                documents.append(made["input_ids"])
                masks.extend(made["assistant_masks"])
        rows = ftd_files.packed(documents, masks, SEQ)
        self.assertGreaterEqual(len(rows), count)
        self.assertLess(len(rows), len(documents) / 1.5)
        self.program(f"--tokenizer={folder}", "--loss-on=assistant", self.lines("chat.jsonl", records), "-o", self.data)
        return folder, len(tokenizer), rows

    def test_conversations(self):
        tokenizer_folder, vocabulary, rows = self.packed_rows(BATCH * STEPS * 6)
        torch.manual_seed(2)
        config = tf.Qwen3Config(vocab_size=vocabulary + 5, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                                intermediate_size=56, max_position_embeddings=SEQ, bos_token_id=None, eos_token_id=None, pad_token_id=None)
        module = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        module.save_pretrained(self.folder / "hf")
        for file in tokenizer_folder.glob("tokenizer*"):
            (self.folder / "hf" / file.name).write_bytes(file.read_bytes())

        def batch(module, number):
            total, counted = 0, 0
            for row in rows[number * BATCH:(number + 1) * BATCH]:
                tokens, targets, segments, positions = (torch.tensor([row[name]]) for name in ("tokens", "targets", "segments", "positions"))
                sees = torch.ones(SEQ, SEQ).tril().bool() & (segments[0][:, None] == segments[0][None, :])
                mask = torch.zeros(1, 1, SEQ, SEQ).masked_fill(~sees, torch.finfo(torch.float32).min)
                logits = module(tokens, attention_mask=mask, position_ids=positions).logits
                total = total + F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
                counted += int((targets >= 0).sum())
            return total, counted

        self.run_program(*self.importing(SEQ), "--packed")
        self.check(module, batch, self.folder / "hf")


if __name__ == "__main__":
    unittest.main()
