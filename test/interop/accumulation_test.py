"""What is lost by adding gradients of bf16 up over many micro-steps: at most half of what PyTorch loses with a .grad of bf16, parameter by parameter."""
import copy
import unittest

import torch
import transformers as tf
from torch.nn import functional as F

from import_test import BATCH, SEQ, Data, FolderTest

MICRO_STEPS = 16
# A step that leaves little of the weights, so that their difference has the gradient's digits.
LR = 1024.0
VOCAB = 101  # of Data
CONFIGS = {
    "gpt2": lambda: tf.GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=64, n_layer=2, n_head=4, activation_function="gelu_new", embd_pdrop=0,
                                  resid_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None),
    "llama": lambda: tf.LlamaConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                    intermediate_size=176, max_position_embeddings=64, bos_token_id=None, eos_token_id=None, pad_token_id=None),
}


class AccumulationTest(FolderTest):
    def module_of(self, name):
        """Weights that bf16 has."""
        torch.manual_seed(11)
        module = tf.AutoModelForCausalLM.from_config(CONFIGS[name]())
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(parameter.bfloat16())
        module.save_pretrained(self.folder / "hf")
        return module.eval()

    @staticmethod
    def backward(module, data, batch):
        first = batch * BATCH
        windows = torch.stack([data.tokens[k * SEQ:(k + 1) * SEQ + 1] for k in range(first, first + BATCH)])
        logits = module(input_ids=windows[:, :-1], use_cache=False).logits
        (F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten()) / MICRO_STEPS).backward()
        return {name: parameter.grad.double() for name, parameter in module.named_parameters()}

    def by_pytorch(self, module, data):
        """What is left in .grad by all micro-steps, and the sum of what each alone leaves there."""
        sums = {}
        for batch in range(MICRO_STEPS):
            module.zero_grad()
            for name, gradient in self.backward(module, data, batch).items():
                sums[name] = sums.get(name, 0) + gradient
        module.zero_grad()
        for batch in range(MICRO_STEPS):
            gradients = self.backward(module, data, batch)
        return gradients, sums

    def step(self, module, data, *settings):
        """The gradient of one step, which SGD has taken."""
        self.train(data, 1, 1, LR, "--optimizer=sgd", "--weight-decay=0", "--mixed-precision=bf16", "--reduce-dtype=fp32", *settings)
        after = dict(self.load(module).named_parameters())
        return {name: (before.double() - after[name].double()).detach() / LR for name, before in module.named_parameters()}

    def by_us(self, module, data):
        sums, part, tokens = {}, copy.copy(data), BATCH * SEQ
        part.path = self.folder / "part.bin"
        for batch in range(MICRO_STEPS):
            part.path.write_bytes(data.tokens[batch * tokens:(batch + 1) * tokens + 1].numpy().astype("uint16").tobytes())
            for name, gradient in self.step(module, part).items():
                sums[name] = sums.get(name, 0) + gradient / MICRO_STEPS
        return self.step(module, data, f"--micro-steps={MICRO_STEPS}"), sums

    def check(self, name):
        module = self.module_of(name)
        data = Data(module.config, self.folder, MICRO_STEPS)
        self.import_model(module.config)
        theirs = self.by_pytorch(copy.deepcopy(module).bfloat16(), data)
        ours = self.by_us(module, data)
        exact, _ = self.by_pytorch(copy.deepcopy(module), data)
        for key, gradient in exact.items():
            with self.subTest(model=name, parameter=key):
                lost = [float((g[key] - sums[key]).norm() / sums[key].norm()) for g, sums in (theirs, ours)]
                self.assertLessEqual(lost[1], lost[0] / 2)
                # With what forward and backward round, which both do.
                off = [float((g[key] - gradient).norm() / gradient.norm()) for g, _ in (theirs, ours)]
                self.assertLessEqual(off[1], off[0])

    def test_gpt2(self):
        self.check("gpt2")

    def test_llama(self):
        self.check("llama")


if __name__ == "__main__":
    unittest.main()
