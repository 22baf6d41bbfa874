"""Texts with labels, from JSONL to a tuned classifier: ft-tokenize, padding by lengths, the loss and the accuracy of transformers."""
import subprocess
import unittest

import torch
import transformers as tf

import support
from tokenizing import TokenizeTest

BATCH, SEQ, CLASSES = 4, 40, 3
tf.logging.set_verbosity_error()


class ClassificationTest(TokenizeTest):
    def tool(self, *words, ranks=1):
        launch = [support.BIN / "ftrun", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        done = subprocess.run([*launch, support.BIN / words[0], *words[1:]], env=support.environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_bert(self):
        tokenizer_folder, tokenizer = self.tokenizer("wordpiece")
        texts = [text for text in self.texts if len(text) < 200][:24]
        records = [{"text": text, "label": len(text) % CLASSES} for text in texts]
        data, held_out = self.folder / "train.ftd", self.folder / "test.ftd"
        for part, path in ((records[:16], data), (records[12:], held_out)):
            self.program(f"--tokenizer={tokenizer_folder}", self.lines("texts.jsonl", part), f"--max-length={SEQ}", "-o", path)
        torch.manual_seed(4)
        config = tf.BertConfig(vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=CLASSES,
                               max_position_embeddings=SEQ, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        module = tf.BertForSequenceClassification(config).eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        module.save_pretrained(self.folder / "hf")
        model, plan, log = self.folder / "model.mlir", self.folder / "plan.bin", self.folder / "log.jsonl"
        self.tool("ftc", "import", self.folder / "hf", f"--batch={BATCH}", f"--seq={SEQ}", "-o", model)
        self.tool("ftc", "compile", model, "--strategy=full_shard", "--optimizer=sgd", "--weight-decay=0", "--clip=0", f"--code={support.LEVEL}", "-o", plan)

        def batch(first, count):
            rows = tokenizer([each["text"] for each in records[first:first + count]], padding="max_length", truncation=True, max_length=SEQ, return_tensors="pt")
            labels = torch.tensor([each["label"] for each in records[first:first + count]])
            out = module(**rows, labels=labels)
            return out.loss, (out.logits.argmax(-1) == labels).float().mean().item()

        optimizer, wanted = torch.optim.SGD(module.parameters(), lr=0.05), []
        for step in range(2):
            loss = batch(step * 8, 8)[0]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            wanted.append(loss.item())
        self.tool("ftexec", plan, f"--data={data}", "--steps=2", "--lr=0.05", "--shuffle=off", f"--init={self.folder / 'hf'}", f"--metrics={log}",
                  f"--save-hf={self.folder / 'tuned'}", "--progress=off", ranks=2)
        for ours, theirs in zip((line["loss"] for line in support.metrics_of(log)), wanted):
            self.assertAlmostEqual(ours, theirs, delta=2e-5 * theirs)
        # What was saved is evaluated, with accuracy; examples that are left over at the end of a batch are said.
        self.tool("ftc", "compile", model, "--strategy=no_shard", "--evaluate", f"--code={support.LEVEL}", "-o", plan)
        log.unlink()
        self.tool("ftexec", plan, "--evaluate", f"--data={held_out}", f"--init={self.folder / 'tuned'}", f"--metrics={log}")
        (line,) = support.metrics_of(log)
        with torch.no_grad():
            loss, accuracy = batch(12, 12)
        self.assertAlmostEqual(line["eval_loss"], loss.item(), delta=1e-4 * loss.item())
        self.assertAlmostEqual(line["eval_accuracy"], accuracy, delta=1e-6)


if __name__ == "__main__":
    unittest.main()
