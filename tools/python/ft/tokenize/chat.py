"""Conversations as text: chat templates, rendered as transformers renders them, and which characters an assistant wrote."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from ..errors import DataError
from .tokenizer import read_json

# Around what {% generation %} holds, while a text is rendered to find it. No characters by Unicode: no text has them.
BEGIN, END = "\ufdd0", "\ufdd1"
REASONING = ("reasoning_content", "thinking", "reasoning")


def source_of(tokenizer, chosen=None):
    """(template, where it is from): of the file `chosen`, or of the tokenizer's folder. None where there is none."""
    if chosen:
        return read_text(chosen), str(chosen)
    own = tokenizer.folder / "chat_template.jinja"
    if own.is_file():
        return read_text(own), str(own)
    config = tokenizer.folder / "tokenizer_config.json"
    found = tokenizer.config.get("chat_template")
    if found is None and (tokenizer.folder / "chat_template.json").is_file():
        config = tokenizer.folder / "chat_template.json"
        found = read_json(config, "a chat_template.json").get("chat_template")
    if isinstance(found, list):
        found = next((each.get("template") for each in found if isinstance(each, dict) and each.get("name") == "default"), None)
    if found is not None and not isinstance(found, str):
        raise DataError(f"{config}: chat_template is no text")
    return None if found is None else (found, str(config))


def read_text(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", 74) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: no UTF-8 at byte {error.start}") from None


class Generation(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: what is inside, between BEGIN and END where the environment marks."""
    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        environment.extend(marks=False, generates=False)

    def parse(self, parser):
        line = next(parser.stream).lineno
        self.environment.generates = True
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("inside"), [], [], body, lineno=line)

    def inside(self, caller):
        return BEGIN + caller() + END if self.environment.marks else caller()


class Namespace(jinja2.utils.Namespace):
    """namespace(...) of a template: names that begin with an underscore are refused, or a template could reach into Python."""

    def __init__(*args, **kwargs):
        values = dict(*args[1:], **kwargs)
        for name in values:
            allow(name)
        jinja2.utils.Namespace.__init__(args[0], values)

    def __setitem__(self, name, value):
        allow(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def allow(name):
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a template cannot set {name}")


class Dict:
    """dict(...) of a template, without the attributes of the type."""

    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args):
        return dict.fromkeys(*args)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.TemplateError(message)


def with_reasoning(message):
    """What an assistant thought has several names among data sets; templates read the first, or `thinking`."""
    found = next((message[name] for name in REASONING if message.get(name) is not None), None)
    return message if found is None else {"thinking": found, **message, "reasoning_content": found}


class Template:
    """A chat template. `now` is what strftime_now tells, for all conversations of a run."""

    def __init__(self, source, where, names, now=None):
        self.where, self.names, self.source = where, names, source
        self.now = now or datetime.datetime.now()
        self.environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
        self.environment.filters["tojson"] = to_json
        self.environment.globals.update(raise_exception=refuse, strftime_now=lambda form: self.now.strftime(form), dict=Dict(), namespace=Namespace)
        try:
            self.compiled = self.environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise DataError(f"{where}: chat template, line {error.lineno}: {error.message}") from None
        self.has_generation = self.environment.generates
        self.writes_date = "strftime_now" in source

    def render(self, messages, place, ask=False, tools=None, settings=None):
        """The text of messages; `ask` adds what comes before an answer."""
        messages = [with_reasoning({key: value for key, value in message.items() if value is not None}) for message in messages]
        try:
            return self.compiled.render(**{**self.names, **(settings or {})}, messages=messages, tools=tools, documents=None, add_generation_prompt=ask)
        except (RecursionError, MemoryError):
            raise DataError(f"{place}: the chat template of {self.where} does not come to an end") from None
        except Exception as error:  # a template runs any expression
            raise DataError(f"{place}: the chat template of {self.where}: {error or type(error).__name__}") from None

    def marked(self, messages, place, **others):
        """(text, [(begin, end)]) of what {% generation %} holds, in characters."""
        text = self.render(messages, place, **others)
        if BEGIN in text or END in text:
            raise DataError(f"{place}: the conversation has U+FDD0 or U+FDD1, which are no characters; take them out")
        self.environment.marks = True
        try:
            marked = self.render(messages, place, **others)
        finally:
            self.environment.marks = False
        spans, position, begin = [], 0, None
        for part in split_at_marks(marked):
            if part == BEGIN and begin is None:
                begin = position
            elif part == END and begin is not None:
                spans.append((begin, position))
                begin = None
            elif part in (BEGIN, END):
                raise DataError(f"{place}: the chat template of {self.where} has {{% generation %}} inside {{% generation %}}")
            else:
                position += len(part)
        if "".join(part for part in split_at_marks(marked) if part not in (BEGIN, END)) != text or begin is not None:
            raise DataError(f"{place}: the chat template of {self.where} changes what is inside {{% generation %}} after it, so that it cannot be told which "
                            f"tokens count")
        return text, spans

    def by_prefixes(self, messages, wanted, place, **others):
        """(text, [(begin, end)]) of the turns `wanted`, by what each adds to the conversation before it."""
        text, spans = self.render(messages, place, **others), []
        for turn in wanted:
            before = self.render(messages[:turn], place, ask=True, **others)
            after = self.render(messages[:turn + 1], place, **others)
            if not after.startswith(before) or not text.startswith(after):
                shown = "the text before it is another once it follows" if not after.startswith(before) else "it is another once more follows"
                raise DataError(f"{place}: the chat template of {self.where} does not tell what turn {turn + 1} adds: {shown} (reasoning that is left out of "
                                f"earlier turns, perhaps); "
                                "give a template with {% generation %} tags: --chat-template=FILE, or --loss-on=all")
            if len(before) == len(after):
                raise DataError(f"{place}: the chat template of {self.where} writes nothing for turn {turn + 1}")
            spans.append((len(before), len(after)))
        return text, spans


def split_at_marks(text):
    parts, begin = [], 0
    for i, character in enumerate(text):
        if character in (BEGIN, END):
            parts += [text[begin:i], character]
            begin = i + 1
    return [part for part in [*parts, text[begin:]] if part]
