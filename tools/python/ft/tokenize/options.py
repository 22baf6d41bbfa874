"""The options of ft-tokenize, from the command line or from Python."""
import argparse
import os
import re

from ..errors import DataError

USAGE = """ft-tokenize --tokenizer=DIR FILE... -o data.ftd [options]
       ft-tokenize --tokenizer=DIR --prompt=TEXT [--chat] -o prompt.ftd
       ft-tokenize FILE... -o data.bin --to=llmc|u16|u32|megatron|ftd     (files of tokens)
       ft-tokenize --verify FILE.ftd       ft-tokenize --show=N FILE.ftd"""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


class Documents:
    """What divides a file into documents: `name`, and `separator` (bytes) or `token`; whether it is for files of text (for_text)."""

    def __init__(self, text):
        self.text = text
        self.name, _, what = text.partition(":")
        self.separator = re.sub(r"\\([ntr\\])", lambda found: ESCAPES[found[1]], what).encode() if self.name == "separator" else None
        by_token = self.name in ("ends-with", "begins-with")
        self.token = int(what) if by_token and what.isascii() and what.isdecimal() else None
        self.for_text = not by_token
        if not (self.name in ("file", "line", "blank-line") and not what or self.separator or by_token and self.token is not None):
            raise DataError(f"--documents={text}: wanted is file, line, blank-line, separator:TEXT, or for files of tokens ends-with:ID, begins-with:ID", 2)


def whole(least):
    def number(text):
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number from {least} is wanted")
        return int(text)
    return number


def processes_here():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Parser(argparse.ArgumentParser):
    """Errors are one line and status 2."""

    def error(self, message):
        raise DataError(f"{message} (--help lists all options)", 2)


def parser():
    made = Parser("ft-tokenize", usage=USAGE, allow_abbrev=False, description="Text as tokens, with what counts for the loss, in one container (.ftd).")
    add = made.add_argument
    add("files", nargs="*", metavar="FILE", help="text, JSONL (also .gz, .zst), Parquet, or files of tokens")
    add("-o", "--output", metavar="FILE", help="what is written: data.ftd, or a file of another format (--to)")
    add("--tokenizer", metavar="DIR", help="a folder of transformers, or a tokenizer.json")
    add("--from", dest="form", default="auto", choices=["auto", "text", "jsonl", "parquet", "llmc", "nanogpt", "u16", "u32", "megatron", "ftd"],
        help="format of the files (auto: by name, and what they begin with)")
    add("--to", default="auto", choices=["auto", "ftd", "llmc", "u16", "u32", "megatron"], help="format of the output (auto: by its name)")
    add("--documents", metavar="RULE", default="file", help=r"what is a document of a text file: file, line, blank-line, separator:TEXT (\n is a line end); "
        r"of a file of tokens also ends-with:ID, begins-with:ID")
    add("--text-key", metavar="NAME", default=None, help="where a record has its text (text)")
    add("--label-key", metavar="NAME", default=None, help="where a record has its class (label); with no name labels are left out")
    add("--labels", metavar="A,B,...", help="names of the classes, from 0; else those of config.json")
    add("--chat-template", metavar="FILE", default=None, help="conversations, by the template of FILE, or of the tokenizer's folder")
    add("--loss-on", choices=["assistant", "all", "completion"], help="what counts (assistant for conversations, completion for prompts, all of texts)")
    add("--max-length", metavar="N", type=whole(1), help="most tokens of a document; what is behind them is left out")
    add("--append-eos", choices=["on", "off"], help="the end-of-text token behind each document (on for texts and completions)")
    add("--prepend-bos", choices=["auto", "on", "off"], default="auto", help="the begin-of-text token before each document (auto: where the tokenizer adds it)")
    add("--date", metavar="YYYY-MM-DD", help="what chat templates take for today")
    add("--processes", metavar="N", type=whole(1), default=None, help=f"processes that work ({processes_here()})")
    add("--prompt", metavar="TEXT", help="one document, the beginning of a text to be continued")
    add("--chat", action="store_true", help="the prompt is what a user says: with the chat template, up to where the assistant answers")
    add("--show", metavar="N", type=whole(1), help="print the first N documents; + is before what counts")
    add("--verify", metavar="FILE", default=None, help="read .ftd files whole, and say whether they are as they were written (with --tokenizer also: by it)")
    return made


class Options:
    """What was asked for, checked as far as it can be without looking at files."""

    def __init__(self, arguments):
        self.__dict__.update(vars(arguments))
        self.documents = Documents(self.documents)
        self.text_key_given = self.text_key is not None
        self.text_key = "text" if self.text_key is None else self.text_key
        self.labelled = bool(self.label_key) or self.labels is not None
        self.label_key = "label" if self.label_key is None else self.label_key
        self.tokenizing = [flag for flag, given in (("--max-length", self.max_length), ("--append-eos", self.append_eos),
                                                    ("--prepend-bos", self.prepend_bos != "auto"), ("--chat-template", self.chat_template is not None),
                                                    ("--text-key", self.text_key_given), ("--labels", self.labels), ("--date", self.date)) if given]
        self.processes = self.processes or processes_here()
        if self.labels is not None:
            self.labels = self.labels.split(",")
            if len(set(self.labels)) != len(self.labels) or "" in self.labels:
                raise DataError(f"--labels={','.join(self.labels)}: names of classes, each once", 2)
        if self.date is not None:
            self.date = date_of(self.date)
        if self.output is not None:
            self.to = self.format_of_output()
        if self.chat and self.prompt is None:
            raise DataError("--chat goes with --prompt=TEXT; conversations in files need no option", 2)

    def format_of_output(self):
        ending = os.path.splitext(self.output)[1]
        by_name = {".ftd": "ftd", ".u16": "u16", ".u32": "u32", ".idx": "megatron"}
        if self.to == "auto" and ending not in by_name:
            raise DataError(f"-o {self.output}: its name does not tell the format; --to=ftd, llmc, u16, u32 or megatron", 2)
        return by_name[ending] if self.to == "auto" else self.to


def date_of(text):
    import datetime
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        raise DataError(f"--date={text}: wanted is YYYY-MM-DD", 2) from None


def parsed(words):
    """Options of a command line. --chat-template and --verify take a value with = alone, or they would swallow a file."""
    return Options(parser().parse_intermixed_args([f"{word}=" if word in ("--chat-template", "--verify") else word for word in words]))


def words_of(keywords):
    """Keywords of Python as words of a command line."""
    words = []
    for name, value in keywords.items():
        flag = "--" + {"from_": "from"}.get(name, name).replace("_", "-")
        if value is None or value is False and name == "chat":
            continue
        if value is True and name in ("chat", "chat_template"):
            words.append(flag)
        else:
            value = ("on" if value else "off") if isinstance(value, bool) else ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            words.append(f"{flag}={value}")
    return words
