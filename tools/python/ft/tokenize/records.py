"""What a record (a line of JSONL, a row of Parquet) says: text, a conversation, a prompt with its completion, a label."""
from ..errors import DataError

# What the prompt of an Alpaca record is, with and without input.
ALPACA = ("Below is an instruction that describes a task, paired with an input that provides further context. Write a response that appropriately completes "
          "the request.\n\n"
          "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n")
ALPACA_ALONE = ("Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
                "### Instruction:\n{instruction}\n\n### Response:\n")
# The keys of a kind of record, and the loss that it is for.
KEYS = {"messages": ("messages",), "completion": ("prompt", "completion"), "instruction": ("instruction", "output"), "shared": ("conversations",)}
ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
EXTRAS = ("tools", "chat_template_kwargs")


class Example:
    """A document to be: its text, which characters count (spans, or None: all), whether the tokenizer adds its special tokens, and a label or None."""

    def __init__(self, place, kind, text, spans=None, label=None, ends_turn=False):
        self.place, self.kind, self.text, self.spans, self.label, self.ends_turn = place, kind, text, spans, label, ends_turn


def shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text_at(record, key, place):
    value = record[key]
    if not isinstance(value, str):
        raise DataError(f"{place}: {key!r} is {shown(value)}; a text is wanted")
    return value


class Reader:
    """Takes records as the options have it.

    options    text_key, label_key, loss_on ("assistant", "all", "completion" or None)
    template   a chat.Template, or None
    classes    a class's number by name, and how many: ({"spam": 1}, 2); (None, None) when neither is known
    """

    def __init__(self, options, template, classes):
        self.options, self.template, (self.names, self.count) = options, template, classes
        self.by_message = options.loss_on == "assistant" or options.chat_template is not None

    def example(self, record, place):
        if not isinstance(record, dict):
            raise DataError(f"{place}: {shown(record)}; a record is an object: {{\"text\": ...}} or {{\"messages\": [...]}}")
        kind = self.kind_of(record, place)
        label = self.label_of(record, place)
        if label is not None and kind != "text":
            raise DataError(f"{place}: a record with {kind} and a label {self.options.label_key!r}; labels go with texts (--label-key= leaves them out)")
        found = getattr(self, kind)(record, place)
        found.label = label
        return found

    def kind_of(self, record, place):
        """The kind of a record. Of several that it could be, the one that the options name."""
        found = [kind for kind, keys in KEYS.items() if all(record.get(key) is not None for key in keys)]
        if record.get(self.options.text_key) is not None:
            found.append("text")
        if len(found) > 1:
            named = {"text": self.options.text_key_given, "messages": self.by_message, "completion": self.options.loss_on == "completion"}
            found = [kind for kind in found if named.get(kind)] or found
        if len(found) == 1:
            return found[0]
        has = ", ".join(map(repr, list(record)[:8])) or "nothing"
        if found:
            raise DataError(f"{place}: the record has {has}, and could be {' or '.join(found)}; say which: --text-key=, --chat-template=, --loss-on=completion")
        raise DataError(f"{place}: the record has {has}; wanted is {self.options.text_key!r} (--text-key=NAME), 'messages', 'prompt' with 'completion', or "
                        f"'instruction' with 'output'")

    def text(self, record, place):
        if self.options.loss_on in ("assistant", "completion"):
            raise DataError(f"{place}: --loss-on={self.options.loss_on}, and the record is a text, all of which counts; wanted are 'messages', or 'prompt' "
                            f"with 'completion'")
        return Example(place, "text", text_at(record, self.options.text_key, place))

    def completion(self, record, place):
        if isinstance(record["prompt"], list):
            return self.conversational_completion(record, place)
        return self.joined(text_at(record, "prompt", place), text_at(record, "completion", place), place)

    def instruction(self, record, place):
        values = {key: text_at(record, key, place) for key in ("instruction", "output", "input") if record.get(key) is not None}
        form = ALPACA if values.get("input") else ALPACA_ALONE
        return self.joined(form.format(**values), values["output"], place)

    def joined(self, prompt, completion, place):
        if self.options.loss_on == "assistant":
            raise DataError(f"{place}: --loss-on=assistant, and the record is a prompt with a completion, no conversation: --loss-on=completion")
        if not completion:
            raise DataError(f"{place}: the completion is empty")
        spans = None if self.options.loss_on == "all" else [(len(prompt), len(prompt) + len(completion))]
        return Example(place, "completion", prompt + completion, spans)

    def conversational_completion(self, record, place):
        """prompt and completion as lists of messages: what the completion's assistants say counts."""
        prompt, completion = (self.checked(record[key], place, key) for key in ("prompt", "completion"))
        return self.conversation(prompt + completion, record, place, begin=len(prompt))

    def shared(self, record, place):
        """ShareGPT's: {"from": "human", "value": ...}."""
        entries = record["conversations"]
        if not isinstance(entries, list):
            raise DataError(f"{place}: 'conversations' is {shown(entries)}; a list is wanted")
        messages = []
        for i, entry in enumerate(entries):
            if isinstance(entry, dict) and entry.get("from") in ROLES and isinstance(entry.get("value"), str):
                messages.append({"role": ROLES[entry["from"]], "content": entry["value"]})
            elif isinstance(entry, dict) and "role" in entry:
                messages.append(entry)
            else:
                raise DataError(f"{place}: entry {i + 1} of 'conversations' is {shown(entry)}; wanted is 'from' ({', '.join(ROLES)}) with 'value', or 'role' "
                                f"with 'content'")
        return self.conversation(self.checked(messages, place, "conversations"), record, place)

    def messages(self, record, place):
        return self.conversation(self.checked(record["messages"], place, "messages"), record, place)

    def checked(self, messages, place, key):
        if not isinstance(messages, list) or not messages:
            raise DataError(f"{place}: {key!r} is {shown(messages)}; a list of messages is wanted")
        for i, message in enumerate(messages):
            if not isinstance(message, dict) or not isinstance(message.get("role"), str) or not isinstance(message.get("content"), (str, list, type(None))):
                raise DataError(f"{place}: message {i + 1} of {key!r} is {shown(message)}; wanted is {{\"role\": \"user\", \"content\": \"...\"}}")
        return messages

    def conversation(self, messages, record, place, begin=0):
        if self.template is None:
            raise DataError(f"{place}: a conversation, and the tokenizer's folder has no chat template; give one: --chat-template=FILE")
        others = {"tools": record.get("tools"), "settings": record.get("chat_template_kwargs")}
        for key, kind in (("tools", list), ("chat_template_kwargs", dict)):
            if not isinstance(record.get(key), (kind, type(None))):
                raise DataError(f"{place}: {key!r} is {shown(record[key])}; {'a list' if kind is list else 'an object'} is wanted")
        if self.options.loss_on == "all":
            return Example(place, "conversation", self.template.render(messages, place, **others))
        if self.options.loss_on == "completion" and not begin:
            raise DataError(f"{place}: --loss-on=completion, and the record is a conversation: --loss-on=assistant")
        turns = [i for i, message in enumerate(messages) if message["role"] == "assistant" and i >= begin]
        if not turns:
            raise DataError(f"{place}: no turn of an assistant, so nothing to learn; --loss-on=all counts every token")
        if self.template.has_generation and not begin:
            text, spans = self.template.marked(messages, place, **others)
            if not any(end > start for start, end in spans):
                raise DataError(f"{place}: the chat template of {self.template.where} has {{% generation %}}, and puts nothing of this conversation into it")
            return Example(place, "conversation", text, spans)
        text, spans = self.template.by_prefixes(messages, turns, place, **others)
        return Example(place, "conversation", text, spans, ends_turn=True)

    def label_of(self, record, place):
        key = self.options.label_key
        if not key or record.get(key) is None:
            if self.options.labelled:
                raise DataError(f"{place}: no label {key!r} in the record; --label-key=NAME says where it is")
            return None
        value = record[key]
        if isinstance(value, str) and self.names is not None and value in self.names:
            return self.names[value]
        known = f"; known: {', '.join(list(self.names)[:20])}" if self.names else "; say what they are: --labels=a,b,c, or leave them out: --label-key="
        if isinstance(value, str):
            raise DataError(f"{place}: label {shown(value)} is no class{known}")
        if type(value) is not int:
            raise DataError(f"{place}: label {shown(value)}; a whole number from 0, or a name of --labels, is wanted")
        most = self.count if self.count is not None else 1 << 31
        if not 0 <= value < most:
            raise DataError(f"{place}: label {value} is out of range; classes are 0 to {most - 1}")
        return value
