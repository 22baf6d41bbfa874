"""Chunks of raw documents as tokens: what a process of the pool does. Bytes do not depend on how documents are grouped."""
import json

import numpy as np

from ..errors import DataError
from .records import Example, shown


class Encoded:
    """What became of a chunk: its kind, `tokens`, `lengths` of documents, `counts` (0 or 1 for each token) or None, `labels` or None, and `left_out`: how
    many documents for what."""

    def __init__(self, kind, tokens, lengths, counts, labels, left_out, consumed, place):
        self.kind, self.tokens, self.lengths, self.counts, self.labels = kind, tokens, lengths, counts, labels
        self.left_out, self.consumed, self.place = left_out, consumed, place


class Ends:
    """What is put before and behind the tokens that the tokenizer gives (bos, eos, or None), and at which length they are cut (most)."""

    def __init__(self, tokenizer, options, kind):
        conversation = kind == "conversation"
        probe = tokenizer.backend.encode("a", add_special_tokens=True)
        added = probe.special_tokens_mask
        begins = not conversation and bool(probe.ids) and tokenizer.bos is not None and probe.ids[0] == tokenizer.bos and added[0] == 1
        ends = not conversation and bool(probe.ids) and tokenizer.eos is not None and probe.ids[-1] == tokenizer.eos and added[-1] == 1
        appends = options.append_eos == "on" or options.append_eos is None and kind in ("text", "completion")
        if options.append_eos == "off" and ends:
            raise DataError(f"--append-eos=off: the tokenizer {tokenizer.path} ends each text with its end-of-text token itself (post_processor)", 2)
        if options.prepend_bos == "off" and conversation:
            raise DataError("--prepend-bos=off: what a conversation begins with is in its chat template", 2)
        self.bos = tokenizer.bos if options.prepend_bos == "on" and not begins else None
        self.without_bos = begins and options.prepend_bos == "off"
        self.eos = tokenizer.eos if appends and not ends else None
        for name, wanted, identity in (("bos", options.prepend_bos == "on", tokenizer.bos), ("eos", options.append_eos == "on", tokenizer.eos)):
            if wanted and identity is None:
                option = "--prepend-bos=on" if name == "bos" else "--append-eos=on"
                raise DataError(f"{option}: the tokenizer of {tokenizer.folder} names no {name}_token (in tokenizer_config.json)", 2)
        self.most = options.max_length
        self.longest = None if self.most is None else self.most + self.without_bos
        if self.most is not None and self.most < tokenizer.backend.num_special_tokens_to_add(False) * (not conversation) + 1:
            raise DataError(f"--max-length={self.most} has no room for a token of text beside those that the tokenizer adds", 2)


class Encoder:
    """A tokenizer, a reader of records, and the options, for chunks."""

    def __init__(self, tokenizer, reader, options):
        self.tokenizer, self.reader, self.options, self.ends = tokenizer, reader, options, {}

    def __call__(self, chunk):
        examples = [self.example(chunk, place, content) for place, content in chunk.items]
        kinds = {example.kind for example in examples}
        if len(kinds) > 1:
            first = next(example for example in examples if example.kind != examples[0].kind)
            raise DataError(f"{first.place}: a {first.kind}, after a {examples[0].kind} at {examples[0].place}; records of one kind make one file")
        labels = [example.label for example in examples]
        if None in labels and any(label is not None for label in labels):
            raise DataError(f"{examples[labels.index(None)].place}: no label {self.options.label_key!r}, and other records have one")
        kind = "labelled" if labels[0] is not None else examples[0].kind
        left_out = {"empty": sum(not example.text for example in examples)}
        if kind == "labelled" and left_out["empty"]:
            raise DataError(f"{next(example.place for example in examples if not example.text)}: the text is empty, and has a label")
        return self.encoded(chunk, kind, [example for example in examples if example.text], left_out)

    def example(self, chunk, place, content):
        """The example of a raw document. Places are file:line, file: byte N, file: row N."""
        if chunk.form == "rows":
            return self.reader.example(content, f"{chunk.path}: row {place}")
        where = f"{chunk.path}:{place}" if chunk.form == "jsonl" else f"{chunk.path}"
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            at = f"{chunk.path}:{place}: byte {error.start} of the line" if chunk.form == "jsonl" else f"{chunk.path}: byte {place + error.start}"
            raise DataError(f"{at} is no UTF-8 ({content[error.start:error.start + 1].hex()}); convert the file: iconv -f ENCODING -t utf-8") from None
        if chunk.form == "text":
            return Example(f"{where}: byte {place}", "text", text)
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            what = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise DataError(f"{where}: no JSON: {what}: {shown(text.strip())}") from None
        return self.reader.example(record, where)

    def encoded(self, chunk, kind, examples, left_out):
        form = "text" if kind == "labelled" else kind
        if kind not in self.ends:
            self.ends[kind] = Ends(self.tokenizer, self.options, kind)
        ends, special = self.ends[kind], form != "conversation"
        masked = any(example.spans is not None for example in examples) or self.masked(form)
        arrays, counts, kept = [], [], []
        for example, encoding in zip(examples, self.split(examples, ends, special, masked)):
            ids, count = self.finished(example, encoding, ends, masked)
            if not len(ids):
                left_out["empty"] += 1
            elif masked and not count.any():
                left_out["cut"] = left_out.get("cut", 0) + 1
            else:
                arrays.append(ids)
                counts.append(count)
                kept.append(example)
        labels = np.array([example.label for example in kept], "<i4") if kind == "labelled" else None
        joined = lambda parts, dtype: np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype)
        place = f"{chunk.path}" if not examples else examples[0].place
        return Encoded(kind, joined(arrays, "<u4"), np.array([len(ids) for ids in arrays], "<u8"), joined(counts, "u1") if masked else None, labels, left_out,
                       chunk.consumed, place)

    def masked(self, form):
        return form in ("conversation", "completion") and self.options.loss_on != "all"

    def split(self, examples, ends, special, masked):
        """The library's encodings of examples."""
        backend = self.tokenizer.backend
        if ends.longest is None:
            backend.no_truncation()
        else:
            backend.enable_truncation(ends.longest)
        for example in examples:
            try:
                example.text.encode()
            except UnicodeEncodeError as error:
                raise DataError(f"{example.place}: character {error.start + 1} of the text is half a surrogate pair ({example.text[error.start]!r}), which is "
                                f"no Unicode text") from None
        fast = not masked and not ends.without_bos and hasattr(backend, "encode_batch_fast")
        encode = backend.encode_batch_fast if fast else backend.encode_batch
        try:
            return encode([example.text for example in examples], add_special_tokens=special)
        except Exception as error:  # the library raises Exception itself
            raise DataError(f"{examples[0].place} and what follows: the tokenizer cannot split it: {error}") from None

    def finished(self, example, encoding, ends, masked):
        """(ids, counts): with what is put before and behind, and which of them count. What the library has cut is as long as can be: nothing comes behind."""
        ids = np.array(encoding.ids, "<u4")
        count = self.counting(example, encoding, ids) if masked else None
        if ends.without_bos and len(ids) and encoding.special_tokens_mask[0]:
            ids, count = ids[1:], None if count is None else count[1:]
        if ends.bos is not None and not (len(ids) and ids[0] == ends.bos):
            ids, count = np.concatenate([[ends.bos], ids]), None if count is None else np.concatenate([[0], count])
        if ends.eos is not None and not (len(ids) and ids[-1] == ends.eos):
            ids, count = np.concatenate([ids, [ends.eos]]), None if count is None else np.concatenate([count, [1]])
        return ids[:ends.most].astype("<u4"), None if count is None else count[:ends.most].astype("u1")

    def counting(self, example, encoding, ids):
        """Tokens with a character inside a span. Of a turn that was found by prefixes, blanks behind its last special token (its end) do not."""
        count = np.zeros(len(ids), "u1")
        if example.spans is None:
            return count + 1
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        for begin, end in example.spans:
            inside = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > begin))
            if example.ends_turn:
                blank = lambda token: not example.text[max(offsets[token, 0], begin):min(offsets[token, 1], end)].strip()
                while len(inside) and blank(inside[-1]) and self.special_before(ids, inside):
                    inside = inside[:-1]
            count[inside] = 1
        return count

    def special_before(self, ids, inside):
        """Whether the last token that is no blank is a special one."""
        for place in inside[-2::-1]:
            if int(ids[place]) in self.tokenizer.special:
                return True
            if self.tokenizer.backend.decode([int(ids[place])]).strip():
                return False
        return False
