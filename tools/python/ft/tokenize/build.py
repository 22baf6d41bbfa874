"""From files of text and records to a container."""
import sys

import numpy as np

from ..errors import DataError
from . import chat, pool, vocabulary
from .container import Facts, Writer
from .encode import Encoder
from .progress import Bar
from .readers import chunks_of
from .records import Reader
from .tokenizer import read_json

KINDS = {"text": "text", "completion": "conversations", "conversation": "conversations", "labelled": "sequences"}
LEFT_OUT = {"empty": "empty ones left out", "cut": "left out in which nothing counts before --max-length"}


def note(text):
    sys.stderr.write(f"ft-tokenize: note: {text}\n")


def template_of(options, tokenizer):
    found = chat.source_of(tokenizer, options.chat_template or None)
    if found is None:
        if options.chat_template is not None or options.chat:
            raise DataError(f"{tokenizer.folder}: has no chat template (chat_template.jinja, or in tokenizer_config.json); give one: --chat-template=FILE")
        return None
    return chat.Template(*found, tokenizer.names, options.date)


def classes_of(options, tokenizer):
    """(number by name, how many) of --labels, or of config.json where it classifies."""
    if options.labels is not None:
        return {name: i for i, name in enumerate(options.labels)}, len(options.labels)
    path = tokenizer.folder / "config.json"
    content = read_json(path, "a config.json") if path.is_file() else {}
    names = content.get("label2id")
    if isinstance(names, dict) and names:
        if not all(type(value) is int and value >= 0 for value in names.values()):
            raise DataError(f"{path}: label2id has numbers that are no classes; say them: --labels=a,b,c")
        return names, max(names.values()) + 1
    if type(content.get("num_labels")) is int:
        return None, content["num_labels"]
    return None, None


def vocabulary_of(tokenizer, needed=False):
    try:
        return vocabulary.tensors_of(tokenizer)
    except vocabulary.Unknown as error:
        if needed:
            raise DataError(f"{tokenizer.path}: {error} is not understood, so that no bytes of tokens are known") from None
        note(f"{tokenizer.path}: {error} is not understood; the container has no bytes of tokens")
        return None


def facts_of(tokenizer, kind, masked=False, inputs=(), needed=False):
    return Facts(kind, tokenizer.size, tokenizer.hash, tokenizer.bos, tokenizer.eos, tokenizer.pad, vocabulary_of(tokenizer, needed), masked, inputs)


def texts(options, tokenizer, files):
    """Tokens of files [(path, form)] of text or records."""
    reader = Reader(options, template_of(options, tokenizer), classes_of(options, tokenizer))
    if options.labelled and any(form == "text" for _, form in files):
        raise DataError(f"{files[0][0]}: labels are in records (JSONL, Parquet), and this is text")
    if options.loss_on in ("assistant", "completion") and any(form == "text" for _, form in files):
        raise DataError(f"{files[0][0]}: --loss-on={options.loss_on}, and this is text, all of which counts")
    work = Encoder(tokenizer, reader, options)
    chunks = (chunk for path, form in files for chunk in chunks_of(path, form, options))
    bar, writer, first, left_out = Bar(path for path, _ in files), None, None, dict.fromkeys(LEFT_OUT, 0)
    for encoded in pool.in_order(work, chunks, options.processes):
        if writer is None:
            inputs = {"labels": ("I32", ())} if encoded.labels is not None else {}
            writer, first = Writer(options.output, facts_of(tokenizer, KINDS[encoded.kind], encoded.counts is not None, inputs)), encoded
            if options.chat_template is not None and encoded.kind != "conversation":
                raise DataError(f"{encoded.place}: --chat-template, and this is a {encoded.kind}, no conversation ('messages')")
            notes(options, tokenizer, reader, encoded.kind)
        if encoded.kind != first.kind:
            raise DataError(f"{encoded.place}: a {encoded.kind}, after a {first.kind} at {first.place}; records of one kind make one file")
        writer.add_tokens(encoded.tokens, encoded.counts)
        writer.add_documents(encoded.lengths, {"labels": encoded.labels})
        for what, count in encoded.left_out.items():
            left_out[what] += count
        bar.add(encoded.consumed, len(encoded.lengths), len(encoded.tokens))
    bar.end()
    if writer is None or writer.ends.count == 1:
        names = ", ".join(path for path, _ in files)
        why = f"no document with text in {'it' if len(files) == 1 else 'them'}"
        if left_out["cut"]:
            why = f"nothing counts in the first {options.max_length} tokens of any document"
        raise DataError(f"{names}: {why}; nothing is written")
    return {**writer.finish(), "left_out": {LEFT_OUT[what]: count for what, count in left_out.items()}}


def notes(options, tokenizer, reader, kind):
    if kind in ("text", "completion") and options.append_eos is None and tokenizer.eos is None:
        note(f"no eos_token is known of {tokenizer.folder} (tokenizer_config.json): documents are not ended by one")
    if kind == "conversation" and reader.template.writes_date and options.date is None:
        today = f"{reader.template.now:%Y-%m-%d}"
        note(f"the chat template writes today's date, {today}; --date={today} gives the same bytes on another day")


def prompt(options, tokenizer):
    """One document to be continued."""
    if options.to != "ftd":
        raise DataError(f"--prompt: its output is .ftd, not {options.to}", 2)
    text, special = options.prompt, True
    if options.chat:
        template = template_of(options, tokenizer)
        text, special = template.render([{"role": "user", "content": text}], "--prompt", ask=True), False
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("--prompt: the text is no UTF-8") from None
    ids = np.array(tokenizer.backend.encode(text, add_special_tokens=special).ids, "<u4")
    if options.append_eos == "on" or options.prepend_bos == "off" or options.max_length is not None:
        raise DataError("--prompt goes without --append-eos=on, --prepend-bos=off and --max-length: it is to be continued", 2)
    if options.prepend_bos == "on" and tokenizer.bos is not None and (not len(ids) or ids[0] != tokenizer.bos):
        ids = np.concatenate([[tokenizer.bos], ids])
    if not len(ids):
        raise DataError("--prompt: the text has no tokens; give at least a word")
    writer = Writer(options.output, facts_of(tokenizer, "conversations" if options.chat else "text", needed=True))
    writer.add_tokens(ids)
    writer.add_documents([len(ids)])
    return writer.finish()
