"""Sequences of packed documents against PyTorch: modules of transformers on a block-diagonal mask, and on each document alone; exported modules on .ftd files."""
import random
import unittest

import torch
from torch.nn import functional as F

import transformers as tf
from export_transformers_test import GPT2, Encoder, without_dropout
from exporting import B, T, V, ExportTest
from import_test import SEQ, VOCAB, FolderTest, module_of
from support import BIN

import ftd_files  # of test/e2e


def documents(count=14):
    draw = random.Random(4)
    return [[draw.randrange(VOCAB) for _ in range(2 + min(SEQ - 1, int(draw.expovariate(1 / 8))))] for _ in range(count)]


def sum_and_count(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum"), (targets != -100).sum()


def on_blocks(module, rows):
    """The mean over all targets of rows, each token seeing those of its own document."""
    total, counted = 0, 0
    for row in rows:
        tokens, targets, segments, positions = (torch.tensor([row[name]]) for name in ("tokens", "targets", "segments", "positions"))
        sees = torch.ones(SEQ, SEQ).tril().bool() & (segments[0][:, None] == segments[0][None, :])
        mask = torch.zeros(1, 1, SEQ, SEQ).masked_fill(~sees, torch.finfo(torch.float32).min)
        added, count = sum_and_count(module(tokens, attention_mask=mask, position_ids=positions).logits, targets)
        total, counted = total + added, counted + count
    return total / counted


def alone(module, texts, mask):
    """The same of documents one by one, without any mask of attention: so windows are the module's own."""
    total, counted, at = 0, 0, 0
    for text in texts:
        targets = torch.tensor([[token if counts else -100 for token, counts in zip(text[1:], mask[at + 1:at + len(text)])]])
        added, count = sum_and_count(module(torch.tensor([text[:-1]])).logits, targets)
        total, counted, at = total + added, counted + count, at + len(text)
    return total / counted


class PackedTest(FolderTest):
    def check(self, name, on_mask):
        module = module_of(name, self.folder / "hf")
        texts = documents()
        draw = random.Random(5)
        mask = [int(draw.random() < 0.8) for text in texts for _ in text]
        rows = ftd_files.packed(texts, mask, SEQ)
        self.assertLess(len(rows), len(texts) / 2)

        class Data:
            path = ftd_files.write(self.folder / "d.ftd", texts, mask, vocabulary_size=VOCAB)
            options = []
            loss = staticmethod(lambda module, batch: on_blocks(module, rows) if on_mask else alone(module, texts, mask))

        self.run_program(BIN / "ftc", "import", self.folder / "hf", f"--batch={len(rows)}", f"--seq={SEQ}", "--packed", "-o", self.folder / "model.mlir")
        self.check_gradients(module, Data)

    def test_on_a_block_diagonal_mask(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                self.check(name, True)

    def test_each_document_alone(self):
        for name in ("gpt2", "llama", "gemma2", "gemma3", "qwen3", "pythia", "phi3", "smollm3", "mistral", "mixtral", "qwen3_moe"):
            with self.subTest(name):
                self.check(name, False)


class ExportedTest(ExportTest):
    """A causal model that shifts its labels itself, trained on the tokens of a .ftd file."""

    def check_on(self, names, contents, inputs_of):
        torch.manual_seed(1)
        module = Encoder(tf.AutoModelForCausalLM.from_config(without_dropout(tf.GPT2Config(**GPT2, use_cache=False))))
        example = {"input_ids": torch.randint(0, V, (B, T)), "attention_mask": torch.ones(B, T, dtype=torch.long), "labels": torch.randint(0, V, (B, T))}
        if "attention_mask" not in names:
            module.forward = lambda input_ids, labels: module.model(input_ids=input_ids, labels=labels)
            example.pop("attention_mask")
        folder, made = self.exported(module, example)
        (folder / "data.safetensors").unlink()
        ftd_files.write(folder / "data.safetensors", vocabulary_size=V, **contents)  # known by what it says
        metrics, after = self.step(self.compiled(folder))
        inputs = {name: torch.tensor(rows) for name, rows in inputs_of(contents).items() if name in names}
        loss = module(**inputs).loss
        loss.backward()
        self.assertAlmostEqual(metrics[0]["loss"], loss.item(), delta=1e-5 * abs(loss.item()))
        self.compare_gradients(dict(module.named_parameters()), made, after)

    def test_stream(self):
        draw = random.Random(2)
        texts = [[draw.randrange(V) for _ in range(1 + draw.randrange(9))] for _ in range(3 * T)]
        mask = [int(draw.random() < 0.7) for text in texts for _ in text]

        def inputs_of(_):
            tokens = [token for text in texts for token in text][:B * T]
            cut = lambda values: [values[T * k:T * k + T] for k in range(B)]
            return {"input_ids": cut(tokens), "labels": cut([token if counts else -100 for token, counts in zip(tokens, mask)])}

        self.check_on(("input_ids", "labels"), dict(documents=texts, mask=mask), inputs_of)

    def test_padded_conversations(self):
        draw = random.Random(3)
        texts = [[draw.randrange(1, V) for _ in range(length)] for length in (T - 5, T)]
        mask = [int(draw.random() < 0.7) for text in texts for _ in text]

        def inputs_of(_):
            at = [0, len(texts[0])]
            filled = lambda values, padding: [[*row, *[padding] * (T - len(row))] for row in values]
            counted = [[token if mask[begin + i] else -100 for i, token in enumerate(text)] for begin, text in zip(at, texts)]
            return {"input_ids": filled(texts, 5), "attention_mask": filled([[1] * len(text) for text in texts], 0), "labels": filled(counted, -100)}

        self.check_on(("input_ids", "attention_mask", "labels"), dict(documents=texts, mask=mask, kind="conversations", pad_token="5"), inputs_of)


if __name__ == "__main__":
    unittest.main()
