"""A tokenizer of a folder of transformers: its tokens by id, its special ones, its hash, and the library that splits text."""
import json
import pathlib
import struct

import tokenizers
import xxhash

from ..errors import DataError

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def read_json(path, what):
    """A JSON object of a file."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", 74) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: not {what}: it holds no JSON object")
    return value


def json_of(path):
    """The tokenizer.json that a folder or file names."""
    path = pathlib.Path(path)
    if path.is_file():
        if path.name.endswith(".model"):
            raise missing(path.parent, path.name)
        return path
    if not path.is_dir():
        raise DataError(f"{path}: no such folder or file; --tokenizer names a folder of transformers or a tokenizer.json", 74)
    if (path / "tokenizer.json").is_file():
        return path / "tokenizer.json"
    others = [name for name in ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "vocab.txt") if (path / name).is_file()]
    raise missing(path, others[0] if others else None)


def missing(folder, has):
    beside = f", only {has}" if has else ""
    make = f"from transformers import AutoTokenizer; AutoTokenizer.from_pretrained('{folder}').save_pretrained('{folder}')"
    advice = f"; make one with transformers (and sentencepiece): python3 -c \"{make}\"" if has else ""
    return DataError(f"{folder}: has no tokenizer.json{beside}{advice}")


def tokens_of(content, path):
    """id -> string of a tokenizer.json. Of an id with two strings the added token's is taken."""
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        pairs = [(identity, token) for token, identity in vocabulary.items()]
    elif isinstance(vocabulary, list) and all(isinstance(entry, list) and entry for entry in vocabulary):
        pairs = [(identity, entry[0]) for identity, entry in enumerate(vocabulary)]
    else:
        raise DataError(f"{path}: not a tokenizer.json: model.vocab is neither tokens with ids nor a list of pieces")
    table = {}
    for identity, token in pairs:
        if type(identity) is not int or not isinstance(token, str) or not 0 <= identity < 2**31:
            raise DataError(f"{path}: model.vocab has {token!r} with id {identity!r}; ids are whole numbers from 0")
        if identity in table:
            raise DataError(f"{path}: model.vocab gives id {identity} to {table[identity]!r} and {token!r}")
        table[identity] = token
    added = {}
    for entry in content.get("added_tokens") or []:
        if not isinstance(entry, dict) or type(entry.get("id")) is not int or not isinstance(entry.get("content"), str) or not 0 <= entry["id"] < 2**31:
            raise DataError(f"{path}: an entry of added_tokens has no id and content: {json.dumps(entry)[:80]}")
        added[entry["id"]] = entry["content"]
    table.update(added)
    if not table:
        raise DataError(f"{path}: a tokenizer without tokens")
    return table


def hash_of(table, path):
    """XXH64 of (id, length, UTF-8) of all tokens by ascending id, as 16 hexadecimal digits; ids and lengths are little-endian u32."""
    digest = xxhash.xxh64(seed=0)
    for identity in sorted(table):
        try:
            text = table[identity].encode()
        except UnicodeEncodeError:
            raise DataError(f"{path}: token {identity} is no Unicode text: {table[identity]!r}") from None
        digest.update(struct.pack("<II", identity, len(text)) + text)
    return digest.hexdigest()


def text_of(token):
    """A token of tokenizer_config.json: a string, or an object with its content."""
    return token.get("content") if isinstance(token, dict) else token


class Tokenizer:
    """What a folder of transformers says of its tokenizer.

    backend           of the library tokenizers, as PreTrainedTokenizerFast makes it of the folder; it neither cuts nor pads
    tokens            id -> string, as tokenizer.json spells it
    special           ids of tokens that are no text
    hash, size        of the tokens; the greatest id + 1
    bos, eos, pad     ids, or None
    names             what chat templates see: {"bos_token": "<s>", ...}
    """

    def __init__(self, path):
        self.path = json_of(path)
        self.folder = self.path.parent
        self.content = read_json(self.path, "a tokenizer.json")
        self.tokens = tokens_of(self.content, self.path)
        self.hash = hash_of(self.tokens, self.path)
        self.size = max(self.tokens) + 1
        self.config = self.settings()
        try:
            self.backend = tokenizers.Tokenizer.from_str(self.path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises Exception itself
            raise DataError(f"{self.path}: the library tokenizers {tokenizers.__version__} cannot read it: {error}") from None
        self.backend.no_truncation()
        self.backend.no_padding()
        self.backend.encode_special_tokens = bool(self.config.get("split_special_tokens", False))
        self.names = self.named_tokens()
        self.add_named()
        self.ids = {token: identity for identity, token in self.tokens.items()}
        self.bos, self.eos, self.pad = (self.ids.get(self.names.get(name)) for name in ("bos_token", "eos_token", "pad_token"))
        self.added = self.backend.get_added_tokens_decoder()
        self.special = {identity for identity, token in self.added.items() if token.special}

    def settings(self):
        """tokenizer_config.json, and special_tokens_map.json where the former has no table of added tokens, as transformers reads them."""
        config = self.folder / "tokenizer_config.json"
        content = read_json(config, "a tokenizer_config.json") if config.is_file() else {}
        others = self.folder / "special_tokens_map.json"
        if "added_tokens_decoder" not in content and others.is_file():
            content.update(read_json(others, "a special_tokens_map.json"))
        return content

    def named_tokens(self):
        found = {name: text_of(token) for name, token in self.config.items() if name.endswith("_token")}
        return {name: token for name, token in found.items() if isinstance(token, str)}

    def add_named(self):
        """What tokenizer_config.json makes special, tokenizer.json may have as ordinary tokens. What it has not at all is an error: ids would grow."""
        wanted = [token for name, token in self.names.items()]
        for key in ("additional_special_tokens", "extra_special_tokens"):
            several = self.config.get(key) or []
            wanted += [text_of(token) for token in (several.values() if isinstance(several, dict) else several)]
        known = {token.content for token in self.backend.get_added_tokens_decoder().values()}
        listed = self.config.get("added_tokens_decoder") or {}
        for identity, token in listed.items():
            if self.tokens.get(int(identity)) != text_of(token):
                raise self.unknown(text_of(token))
        for token in wanted:
            if not isinstance(token, str) or token in known:
                continue
            if self.backend.token_to_id(token) is None:
                raise self.unknown(token)
            self.backend.add_tokens([tokenizers.AddedToken(token, special=True)])
        flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
        now = self.backend.get_added_tokens_decoder()
        for identity, token in listed.items():
            same = now.get(int(identity))
            if isinstance(token, dict) and (same is None or any(token.get(flag, False) != getattr(same, flag) for flag in flags)):
                self.backend.add_tokens([tokenizers.AddedToken(token["content"], **{flag: token.get(flag, False) for flag in flags})])

    def unknown(self, token):
        folder = self.folder
        return DataError(f"{folder}: tokenizer_config.json names the token {token!r}, which tokenizer.json has not, or with another id; write both anew: "
                         f"python3 -c \"from "
                         f"transformers import AutoTokenizer; AutoTokenizer.from_pretrained('{folder}').save_pretrained('{folder}')\"")
