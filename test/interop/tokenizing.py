"""What the tests of ft-tokenize share: texts, tokenizers of every kind that are trained here, the program."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from support import ROOT, InteropTest

PACKAGE = ROOT / "tools" / "python"
FORTUNES = pathlib.Path("/usr/share/games/fortunes")  # Debian's packages fortunes and fortunes-min (scripts/setup interop)
AWKWARD = [
    "e\u0301 \u00e9 a\u0308\u0323 \u1e9b\u0323",                                     # combining marks, in two orders
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪🇫🇷",                                                     # emoji joined, coloured, flags
    "שלום עולם, مرحبا بالعالم \u202eright to left\u202c",
    "a\x00b\x00\x00", "lone\rreturn\r\nand both\n\r", "\t\t  \u00a0\u2003 blanks \u3000",
    "x" * 5000, "ab" * 3000 + " " + "é" * 2000, " " * 700, "\n" * 300,
    "\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff",                                     # around the surrogates, and the ends
    "日本語の文章と中文文本，混合", "ﬁ ﬀ Ⅷ ½ Å", "<s> </s> <unk> <0x41> ▁▁ ## Ġ Ċ", "don't I'LL we've 12345678 1,000.50",
    " leading and trailing ", "\ufeffmark", "a naïve  double",
]


def fortunes():
    """The fortunes, one a text."""
    if not FORTUNES.is_dir():
        raise unittest.SkipTest(f"skipped: no {FORTUNES}; scripts/setup interop installs Debian's fortunes")
    files = sorted(path for path in FORTUNES.iterdir() if path.suffix not in (".dat", ".u8"))
    return [text for path in files for text in path.read_text(encoding="utf-8").split("\n%\n") if text.strip("\n")]


CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}{% if message.role == 'assistant' %}{% generation %}{{ message.content + "
          "'<|im_end|>' }}"
          "{% endgeneration %}{% else %}{{ message.content + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ "
          "'<|im_start|>assistant\n' }}{% endif %}")
LLAMA3 = ("{{- bos_token }}{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}{%- if message['role'] == "
          "'assistant' %}"
          "{%- generation %}{{- message['content'] | trim + '<|eot_id|>' }}{%- endgeneration %}{%- else %}{{- message['content'] | trim + '<|eot_id|>' }}{%- "
          "endif %}{%- endfor %}"
          "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}")


def without_tags(template):
    """The template, as most are: without {% generation %}."""
    for tag in ("{% generation %}", "{% endgeneration %}", "{%- generation %}", "{%- endgeneration %}"):
        template = template.replace(tag, "")
    return template


def saved(tokenizer, folder, template=None, **names):
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    if template:
        made.chat_template = template
    made.save_pretrained(folder)
    return folder


def byte_level(split=None):
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    tokenizer.pre_tokenizer = level if split is None else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated"), level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2(folder, texts):
    tokenizer = byte_level()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1500, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                             show_progress=False))
    tokenizer.add_tokens([AddedToken("  ", normalized=False), AddedToken("naïve", normalized=False)])
    return saved(tokenizer, folder, CHATML, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def llama3(folder, texts):
    tokenizer = byte_level(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                             special_tokens=[("<|begin_of_text|>", begin)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return saved(tokenizer, folder, LLAMA3, bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>", pad_token="<|eot_id|>")


def sentencepiece_bpe(folder, texts):
    """As Llama 2's: ▁ for blanks, bytes where no piece is."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=2000, special_tokens=special, show_progress=False))
    content = json.loads(tokenizer.to_str())
    content["added_tokens"], content["pre_tokenizer"] = content["added_tokens"][:3], None
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    template = ("{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}[INST] {{ message.content }} [/INST]{% else %}"
                "{% generation %} {{ message.content }} </s>{% endgeneration %}{% endif %}{% endfor %}")
    return saved(tokenizer, folder, template, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def unigram(folder, texts):
    """As T5's: pieces with scores, </s> from the post-processor."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=1200, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>",
                                                                 show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return saved(tokenizer, folder, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def wordpiece(folder, texts):
    """As BERT's."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
                                                                   show_progress=False))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends)
    return saved(tokenizer, folder, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]")


KINDS = {"gpt2": gpt2, "llama3": llama3, "sentencepiece_bpe": sentencepiece_bpe, "unigram": unigram, "wordpiece": wordpiece}


MADE, LOADED = tempfile.TemporaryDirectory(prefix="ft-tokenizers-"), {}


class TokenizeTest(InteropTest):
    """Has fortunes, and the tokenizers, trained once for all tests of a run."""
    texts = fortunes()

    @staticmethod
    def tokenizer(kind):
        """(folder, tokenizer of transformers) of a kind."""
        if kind not in LOADED:
            folder = KINDS[kind](pathlib.Path(MADE.name) / kind, TokenizeTest.texts[::7])
            LOADED[kind] = folder, AutoTokenizer.from_pretrained(folder)
        return LOADED[kind]

    def lines(self, name, records):
        path = self.folder / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def program(self, *words, status=0):
        """Runs ft-tokenize; returns its (standard output, standard error)."""
        done = subprocess.run([sys.executable, "-m", "ft.tokenize", *map(str, words)], cwd=self.folder, capture_output=True, text=True, env=environment())
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def refused(self, pattern, *words, status=65):
        """The program ends with a status and one line; what was there stays as it was, and nothing else is."""
        before = {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}
        said = self.program(*words, status=status)[1]
        self.assertRegex(said, pattern)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.folder.rglob("*")} | {self.folder: 0}, before | {self.folder: 0})


def environment():
    return {**os.environ, "PYTHONPATH": str(PACKAGE)}


def documents_of(data):
    return [data.tokens[a:b].tolist() for a, b in zip(data.documents[:-1].astype(int), data.documents[1:].astype(int))]


def counts_of(data):
    return [data.counts(a, b).tolist() for a, b in zip(data.documents[:-1].astype(int).tolist(), data.documents[1:].astype(int).tolist())]
