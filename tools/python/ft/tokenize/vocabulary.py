"""The bytes that each token of a vocabulary stands for, by the decoder of its tokenizer.json."""
import re

import numpy as np

BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_of_character():
    """GPT-2's alphabet: printable bytes of Latin-1 stand for themselves, the other 68 for characters from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(0x100 + i): byte for i, byte in enumerate(others)}}


ALPHABET = byte_of_character()


class Unknown(Exception):
    """A decoder that is not understood."""


def byte_level(token):
    """Of characters that all are of the alphabet the bytes, of others the text, as the library does."""
    if all(character in ALPHABET for character in token):
        return bytes(ALPHABET[character] for character in token)
    return token.encode()


def step_of(decoder):
    """A function of a token (text or bytes) for a decoder; None for what concerns a whole text alone."""
    kind = decoder.get("type")
    on_text = lambda change: lambda token: token if isinstance(token, bytes) else change(token)
    if kind == "ByteLevel":
        return on_text(byte_level)
    if kind == "ByteFallback":
        return on_text(lambda token: bytes([int(BYTE_TOKEN.fullmatch(token)[1], 16)]) if BYTE_TOKEN.fullmatch(token) else token)
    if kind == "Metaspace":
        return on_text(lambda token: token.replace(decoder.get("replacement", "▁"), " "))
    if kind == "WordPiece":
        prefix = decoder.get("prefix", "##")
        return on_text(lambda token: token[len(prefix):] if token.startswith(prefix) else " " + token)
    if kind == "BPEDecoder":
        return on_text(lambda token: token.replace(decoder.get("suffix", "</w>"), " "))
    if kind == "Replace" and set(decoder.get("pattern", {})) == {"String"}:
        return on_text(lambda token: token.replace(decoder["pattern"]["String"], decoder["content"]))
    if kind in ("Fuse", "Strip"):
        return None
    raise Unknown(f"decoder {kind}" + " by a regular expression" * (kind == "Replace"))


def steps_of(decoder):
    if decoder is None:
        return [lambda token: " " + token]  # the library joins tokens with blanks
    listed = decoder.get("decoders", []) if decoder.get("type") == "Sequence" else [decoder]
    fused, steps = False, []
    for each in listed:
        if each.get("type") == "Strip" and not fused and listed is not None and any(other.get("type") == "Fuse" for other in listed):
            raise Unknown("decoder Strip of each token")
        fused |= each.get("type") == "Fuse"
        step = step_of(each)
        if step:
            steps.append(step)
    return steps


def bytes_of(tokenizer):
    """The bytes of each token, by id: a list of tokenizer.size; b"" where an id has no token. Special tokens are their text, and so are added ones of
    byte-level tokenizers.

    Blanks before words are in the token of the word: the decoders of SentencePiece and WordPiece leave out the first one of a text. Unknown
    where the decoder is not understood.
    """
    decoder = tokenizer.content.get("decoder")
    steps = steps_of(decoder)
    plain = bool(decoder) and decoder.get("type") == "ByteLevel"
    found = [b""] * tokenizer.size
    for identity, token in tokenizer.tokens.items():
        if identity not in tokenizer.special and not (plain and identity in tokenizer.added):
            for step in steps:
                token = step(token)
        found[identity] = token if isinstance(token, bytes) else token.encode()
    return found


def tensors_of(tokenizer):
    """(offsets U32 [v + 1], bytes U8 [m], special U8 [v]) of a tokenizer."""
    found = bytes_of(tokenizer)
    offsets = np.zeros(len(found) + 1, "<u4")
    np.cumsum([len(each) for each in found], out=offsets[1:])
    special = np.array([identity in tokenizer.special or identity not in tokenizer.tokens for identity in range(len(found))], "u1")
    return offsets, np.frombuffer(b"".join(found), "u1"), special
