"""Packages of PyPI that know nothing of us through ft.export: timm and x-transformers. Loss and every gradient are PyTorch's."""
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

from exporting import B, V, ExportTest, ids

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import timm
    import x_transformers
    from loguru import logger

logger.remove()  # x-transformers' remarks on heads as small as these


class Pictures(nn.Module):
    def __init__(self, name, **sizes):
        super().__init__()
        self.model = timm.create_model(name, num_classes=7, img_size=32, drop_path_rate=0.0, **(sizes or dict(patch_size=8, embed_dim=48, depth=2, num_heads=4)))

    def forward(self, pixels, labels):
        return F.cross_entropy(self.model(pixels), labels)


class Words(nn.Module):
    def __init__(self, **options):
        super().__init__()
        layers = x_transformers.Decoder(dim=48, depth=2, heads=3, attn_dim_head=16, **options)
        self.model = x_transformers.TransformerWrapper(num_tokens=V, max_seq_len=32, attn_layers=layers)

    def forward(self, tokens, targets):
        return F.cross_entropy(self.model(tokens).transpose(1, 2), targets)


def pictures(name, **sizes):
    return lambda: (Pictures(name, **sizes), (torch.randn(B, 3, 32, 32), torch.randint(0, 7, (B,))))


def words(**options):
    return lambda: (Words(**options), (ids(), ids()))


TIMM = {
    "ViT": pictures("vit_tiny_patch16_224"),
    "DeiT-3": pictures("deit3_small_patch16_224"),
    "EVA-02": pictures("eva02_tiny_patch14_224"),
    "BEiT": pictures("beit_base_patch16_224"),
    "Swin": pictures("swin_tiny_patch4_window7_224", patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4), window_size=4),
}
X_TRANSFORMERS = {
    "rotary, GLU": words(rotary_pos_emb=True, ff_glu=True),
    "T5 bias": words(rel_pos_bias=True),
    "ALiBi, squared ReLU": words(alibi_pos_bias=True, ff_relu_squared=True),
    "QK-norm": words(attn_qk_norm=True),
    "QK-norm by dimension, RMSNorm, SwiGLU": words(attn_qk_norm=True, attn_qk_norm_dim_scale=True, use_rmsnorm=True, ff_swish=True, ff_glu=True),
}


class ThirdParty(ExportTest):
    def test_timm(self):
        self.check_all(TIMM)

    def test_x_transformers(self):
        self.check_all(X_TRANSFORMERS)


if __name__ == "__main__":
    unittest.main()
