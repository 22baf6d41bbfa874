"""A prompt of ft-tokenize: the continuation of transformers, token for token, its text, and where a text ends."""
import subprocess

import torch
import transformers as tf

import support
from tokenizing import TokenizeTest

SEQ = 40
tf.logging.set_verbosity_error()
tf.logging.disable_progress_bar()


def shown(text):
    """Without what is no text: a character that is cut off is a U+FFFD a byte with us, and so are those that a terminal obeys."""
    return "".join(c for c in text if c != "\ufffd" and (c.isprintable() or c in "\n\t")).lstrip(" ")


class GenerateTokenizedTest(TokenizeTest):
    def made(self, prompt, tokenizer_folder, folder, mlir, count, *options):
        """Tokens and text of our continuation."""
        self.program(f"--tokenizer={tokenizer_folder}", f"--prompt={prompt}", "-o", self.folder / "prompt.ftd")
        plan, out = self.folder / "p.bin", self.folder / "generated.jsonl"
        self.tool("ftc", "compile", mlir, "--strategy=full_shard", "--sample", "--evaluate", f"--code={support.LEVEL}", "-o", plan)
        done = self.tool("ftexec", plan, f"--init={folder}", f"--generate={count}", f"--prompt={self.folder / 'prompt.ftd'}", f"--metrics={out}",
                         *options)
        (row,) = support.metrics_of(out)
        self.assertEqual(done.stdout, row["sample_text"] + "\n")
        return row["sample_tokens"], row["sample_text"]

    def tool(self, name, *arguments):
        done = subprocess.run([support.BIN / name, *arguments], env=support.environment(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_continues_text_as_transformers_does(self):
        for kind in ("gpt2", "llama3", "sentencepiece_bpe"):
            tokenizer_folder, tokenizer = self.tokenizer(kind)
            # A vocabulary that is padded, as models have it.
            config = tf.LlamaConfig(vocab_size=len(tokenizer) + 7, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                    max_position_embeddings=SEQ, bos_token_id=None, eos_token_id=None, pad_token_id=None)
            torch.manual_seed(5)
            module = tf.AutoModelForCausalLM.from_config(config).eval()
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.2)
            folder, mlir = self.folder / kind, self.folder / f"{kind}.mlir"
            module.save_pretrained(folder)
            self.tool("ftc", "import", folder, "--batch=1", f"--seq={SEQ}", "-o", mlir)
            for prompt in ("A penny saved is", "Größe, naïve 👍 and"):
                with self.subTest(kind, prompt=prompt):
                    ids = tokenizer(prompt, return_tensors="pt").input_ids
                    count = min(20, SEQ - ids.shape[1])
                    with torch.no_grad():
                        expected = module.generate(ids, do_sample=False, max_new_tokens=count)[0, ids.shape[1]:].tolist()
                    tokens, text = self.made(prompt, tokenizer_folder, folder, mlir, count)
                    eos = tokenizer.eos_token_id
                    if eos in expected:
                        expected = expected[:expected.index(eos) + 1]
                    self.assertEqual(tokens, expected)
                    whole = tokenizer.decode([t for t in expected if t < len(tokenizer)], skip_special_tokens=True, clean_up_tokenization_spaces=False)
                    self.assertEqual(shown(text), shown(whole))

    def test_a_text_ends_at_its_end(self):
        """A head that says the end of text after some tokens, whatever it is given."""
        tokenizer_folder, tokenizer = self.tokenizer("gpt2")
        config = tf.GPT2Config(vocab_size=len(tokenizer), n_positions=SEQ, n_embd=48, n_layer=1, n_head=4, tie_word_embeddings=False, bos_token_id=None,
                               eos_token_id=None)
        module = tf.AutoModelForCausalLM.from_config(config).eval()
        eos, word, at = tokenizer.eos_token_id, tokenizer(" the").input_ids[0], 9
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()
            # The norm at the end passes on which half of the text a position is in; two rows of the head read that.
            module.transformer.ln_f.weight.fill_(1)
            module.transformer.wpe.weight[:at, 0], module.transformer.wpe.weight[at:, 1] = 1, 1
            module.lm_head.weight[word, 0], module.lm_head.weight[eos, 1] = 1, 1
        folder, mlir = self.folder / "ending", self.folder / "ending.mlir"
        module.save_pretrained(folder)
        self.tool("ftc", "import", folder, "--batch=1", f"--seq={SEQ}", "-o", mlir)
        length = len(tokenizer("A penny saved is").input_ids)
        tokens, text = self.made("A penny saved is", tokenizer_folder, folder, mlir, 30)
        self.assertEqual(tokens, [word] * (at + 1 - length) + [eos])
        self.assertEqual(text, " the" * (at + 1 - length))


if __name__ == "__main__":
    import unittest

    unittest.main()
