"""Conversations and prompts of ft-tokenize: tokens and what counts, against transformers' apply_chat_template."""
import itertools
import json
import sys
import unittest

from tokenizing import AWKWARD, CHATML, LLAMA3, PACKAGE, TokenizeTest, counts_of, documents_of, without_tags

sys.path.insert(0, str(PACKAGE))
import ft


def conversations(texts):
    """Of one to three turns, some with a system's word; of fortunes and awkward text."""
    found = []
    for i, (a, b, c) in enumerate(zip(texts, texts[1:], texts[2:])):
        turns = [{"role": "system", "content": f"Be {i}."}] * (i % 3 == 0)
        turns += [{"role": "user", "content": a}, {"role": "assistant", "content": b}]
        turns += [{"role": "user", "content": "And?"}, {"role": "assistant", "content": c}] * (i % 2)
        found.append({"messages": turns})
    return found


class Conversations(TokenizeTest):
    def theirs(self, kind, records, template=None):
        """(tokens, masks) of transformers."""
        _, tokenizer = self.tokenizer(kind)
        made = [tokenizer.apply_chat_template(record["messages"], chat_template=template, return_dict=True, return_assistant_tokens_mask=True)
                for record in records]
        return [each["input_ids"] for each in made], [each["assistant_masks"] for each in made]

    def ours(self, kind, records, *words):
        folder, _ = self.tokenizer(kind)
        self.program(f"--tokenizer={folder}", self.lines("chat.jsonl", records), "-o", "chat.ftd", *words)
        return ft.open_data(self.folder / "chat.ftd").verify()

    def test_masks_of_generation_tags(self):
        # Texts whose first and last characters are one token or the first of several: of those transformers marks the first alone.
        clean = [text for text in AWKWARD if text.isascii() and text.strip() and "\x00" not in text]
        for kind, records in itertools.product(("gpt2", "llama3", "sentencepiece_bpe"), (conversations(self.texts[:400]), conversations(clean))):
            if kind == "sentencepiece_bpe":
                records = [{"messages": [message for message in record["messages"] if message["role"] != "system"]} for record in records]
            data = self.ours(kind, records)
            ids, masks = self.theirs(kind, records)
            self.assertEqual(documents_of(data), ids)
            self.assertEqual(counts_of(data), masks)
            self.assertEqual(int(data.metadata["counted"]), sum(map(sum, masks)))
            self.assertEqual(data.metadata["kind"], "conversations")

    def test_masks_by_prefixes_are_those_of_tags(self):
        records = conversations(self.texts[:400] + AWKWARD)
        for kind, template in (("gpt2", CHATML), ("llama3", LLAMA3)):
            with_tags = self.ours(kind, records)
            (self.folder / "plain.jinja").write_text(without_tags(template))
            plain = self.ours(kind, records, f"--chat-template={self.folder / 'plain.jinja'}")
            self.assertEqual(documents_of(plain), documents_of(with_tags))
            self.assertEqual(counts_of(plain), counts_of(with_tags))

    def test_every_token_of_an_answer_counts_and_none_of_a_question(self):
        # Without blanks at their beginnings, which may be one token with the line end before; such a token counts.
        records = conversations([text for text in self.texts[:200] + AWKWARD if not text[0].isspace()])
        data = self.ours("gpt2", records)
        for begin, end, record in zip(data.documents[:-1].tolist(), data.documents[1:].tolist(), records):
            counts = data.counts(begin, end)
            said = b"".join(data.text(i, i + 1) for i in range(begin, end) if counts[i - begin])
            self.assertEqual(said, "".join(m["content"] + "<|im_end|>" for m in record["messages"] if m["role"] == "assistant").encode())

    def test_turns_that_blanks_end(self):
        """Of a template without a token that ends a turn, the line ends do, and count."""
        (self.folder / "t.jinja").write_text("{% for m in messages %}{{ m.role + ': ' + m.content }}\n\n\n{% endfor %}{% if add_generation_prompt %}{{ "
                                             "'assistant: ' }}{% endif %}")
        record = {"messages": [{"role": "user", "content": "Hello <|im_end|>"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "so"}]}
        data = self.ours("gpt2", [record], f"--chat-template={self.folder / 't.jinja'}")
        said = b"".join(data.text(i, i + 1) for i in range(len(data.tokens)) if data.counts()[i])
        self.assertEqual(said.strip(b" "), b"yes\n\n\n")

    def test_losses_and_lengths_together(self):
        records = conversations(self.texts[:60])
        ids, masks = self.theirs("gpt2", records)
        for loss, most, eos, bos in itertools.product((None, "assistant", "all"), (None, 50, 120), ("on", "off", None), ("on", "auto")):
            words = [*([f"--loss-on={loss}"] if loss else []), *([f"--max-length={most}"] if most else []), *([f"--append-eos={eos}"] if eos else []),
                     f"--prepend-bos={bos}", "--processes=1"]
            data = self.ours("gpt2", records, *words)
            cut = [most is not None and len(each) > most for each in ids]
            first = [0] if bos == "on" else []
            wanted = [(first + tokens + [0] * (eos == "on" and not short))[:most] for tokens, short in zip(ids, cut)]
            masked = [([0] * len(first) + mask + [1] * (eos == "on" and not short))[:most] for mask, short in zip(masks, cut)]
            if loss == "all":
                masked = [[1] * len(tokens) for tokens in wanted]
            kept = [i for i, mask in enumerate(masked) if any(mask)]
            self.assertEqual(documents_of(data), [wanted[i] for i in kept], words)
            self.assertEqual(counts_of(data), [masked[i] for i in kept], words)
            self.assertEqual(data.loss_mask is None, loss == "all")

    def test_prompts_and_completions(self):
        _, theirs = self.tokenizer("llama3")
        pairs = [(f"Question {i}: {a}\nAnswer:", f" {b}") for i, (a, b) in enumerate(zip(self.texts[:200], self.texts[1:])) if not b[0].isspace()]
        records = [{"prompt": a, "completion": b} for a, b in pairs]
        data = self.ours("llama3", records)
        for tokens, counts, (prompt, completion) in zip(documents_of(data), counts_of(data), pairs):
            whole = theirs(prompt + completion, return_offsets_mapping=True)
            self.assertEqual(tokens, whole.input_ids + [theirs.eos_token_id])
            self.assertEqual(counts, [int(end > len(prompt)) for _, end in whole.offset_mapping] + [1])
        everything = self.ours("llama3", records, "--loss-on=all")
        self.assertEqual((documents_of(everything), everything.loss_mask), (documents_of(data), None))
        turned = [{"prompt": [{"role": "user", "content": a}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}],
                   "completion": [{"role": "assistant", "content": b[1:]}]} for a, b in pairs]
        data = self.ours("gpt2", turned)
        said = [b"".join(data.text(a + i, a + i + 1) for i in range(b - a) if data.counts(a, b)[i]) for a,
                b in zip(data.documents[:-1].tolist(), data.documents[1:].tolist())]
        self.assertEqual(said, [f"{b[1:]}<|im_end|>".encode() for _, b in pairs])

    def test_other_shapes_of_records(self):
        chat = [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": None}]}]
        expected = documents_of(self.ours("gpt2", chat))
        self.assertEqual(documents_of(self.ours("gpt2", [{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}])), expected)
        data = self.ours("gpt2", [{"instruction": "Add.", "input": "1 2", "output": "3"}, {"instruction": "Say.", "input": "", "output": "It"}])
        texts = [data.text(a, b).decode() for a, b in zip(data.documents[:-1].tolist(), data.documents[1:].tolist())]
        self.assertTrue(texts[0].endswith("### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:\n3<|endoftext|>") and "### Input" not in texts[1])
        self.assertEqual([sum(counts) for counts in counts_of(data)], [2, 2])
        both = [{**chat[0], "text": "c", "prompt": "p", "completion": "q"}]
        folder, _ = self.tokenizer("gpt2")
        self.refused("could be messages or completion or text; say which", f"--tokenizer={folder}", self.lines("both.jsonl", both), "-o", "x.ftd")
        self.assertEqual(documents_of(self.ours("gpt2", both, "--chat-template")), expected)
        self.assertEqual(len(documents_of(self.ours("gpt2", both, "--text-key=text"))[0]), 2)
        self.assertEqual(len(documents_of(self.ours("gpt2", both, "--loss-on=completion"))[0]), 3)

    def test_what_templates_use(self):
        template = ("Begin\n    {% if true %}\n  {# nothing #}\nindented{% endif %}\n  {% set x = 1 %}\n{%- set ns = namespace(n=0) %}{% for m in messages "
                    "%}{% if m.role == 'skip' %}{% continue %}{% endif %}{% set ns.n = ns.n + 1 %}{{ "
                    "m.role }}{{ m.tool_calls | tojson if m.tool_calls }}"
                    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}{% endif %}\n{% "
                    "endfor %}{{ ns.n }} {{ bos_token }} {{ extra }} "
                    "{% if tools %}{{ tools | tojson(indent=1) }}{% endif %}{{ strftime_now('%d %b %Y') }}")
        (self.folder / "t.jinja").write_text(template)
        tools = [{"type": "function", "function": {"name": "<add> é", "parameters": {"b": 1, "a": 2}}}]
        record = {"messages": [{"role": "user", "content": "é"}, {"role": "skip", "content": ""},
                               {"role": "assistant", "content": "ok", "tool_calls": [{"x": "<y>"}]}], "tools": tools, "chat_template_kwargs": {"extra": "more"}}
        data = self.ours("gpt2", [record], f"--chat-template={self.folder / 't.jinja'}", "--date=2026-02-03")
        _, theirs = self.tokenizer("gpt2")
        wanted = theirs.apply_chat_template(record["messages"], chat_template=template.replace("strftime_now('%d %b %Y')", "'03 Feb 2026'"), tools=tools,
                                            extra="more", return_dict=True, return_assistant_tokens_mask=True)
        self.assertEqual((documents_of(data), counts_of(data)), ([wanted["input_ids"]], [wanted["assistant_masks"]]))

    def test_templates_from_everywhere(self):
        folder, _ = self.tokenizer("gpt2")
        copy = self.folder / "tokenizer"
        copy.mkdir()
        (copy / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
        config = {"eos_token": {"content": "<|endoftext|>", "__type": "AddedToken"}}
        chat = conversations(self.texts[:20])
        expected = documents_of(self.ours("gpt2", chat))
        for content, own in (({"chat_template": CHATML}, None), ({"chat_template": [{"name": "tool_use", "template": "x"},
                                                                                    {"name": "default", "template": CHATML}]}, None),
                             ({"chat_template": "no"}, CHATML)):
            (copy / "tokenizer_config.json").write_text(json.dumps({**config, **content}))
            if own:
                (copy / "chat_template.jinja").write_text(own)
            self.program(f"--tokenizer={copy}", self.folder / "chat.jsonl", "-o", "x.ftd")
            self.assertEqual(documents_of(ft.open_data(self.folder / "x.ftd")), expected)

    def test_prompts(self):
        folder, theirs = self.tokenizer("llama3")
        self.program(f"--tokenizer={folder}", "--prompt=Tell me é", "--chat", "-o", "p.ftd")
        data = ft.open_data(self.folder / "p.ftd").verify()
        wanted = theirs.apply_chat_template([{"role": "user", "content": "Tell me é"}], add_generation_prompt=True, return_dict=True)["input_ids"]
        self.assertEqual((documents_of(data), data.metadata["kind"]), ([wanted], "conversations"))
        self.assertIn("document 0: ", self.program(f"--tokenizer={folder}", "--prompt=Tell", "-o", "p.ftd", "--show=1")[0])
        self.assertEqual(documents_of(ft.open_data(self.folder / "p.ftd")), [theirs("Tell").input_ids])
        self.refused("no tokens", f"--tokenizer={self.tokenizer('gpt2')[0]}", "--prompt=", "-o", "q.ftd")

    def test_conversations_that_are_refused(self):
        def turns(*roles):
            return [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
                    {"messages": [{"role": role, "content": "c"} for role in roles]}]
        drops = "{% for m in messages %}{% if m.role == 'assistant' and not loop.last %}-{% else %}{{ m.content }}{% endif %}{% endfor %}"
        cases = [
            (CHATML, turns("user"), "bad.jsonl:2: no turn of an assistant"),
            (drops, turns("user", "assistant", "user", "assistant"), r"bad.jsonl:2: .* does not tell what turn 2 adds: it is another once more follows"),
            ("{{ messages[0].content }}{% if add_generation_prompt %}?{% endif %}", turns("user", "assistant"),
             "bad.jsonl:1: .* the text before it is another once it follows"),
            ("{{ raise_exception('roles must alternate') }}", turns("user", "assistant"), "bad.jsonl:1: .*roles must alternate"),
            ("{{ ''.__class__.__mro__ }}", turns("user", "assistant"), "bad.jsonl:1: .*unsafe"),
            ("{% set n = namespace(__class__=1) %}", turns("user", "assistant"), "bad.jsonl:1: .*cannot set __class__"),
            ("{{ messages[0].content }}", turns("user", "assistant"), "bad.jsonl:1: .*writes nothing for turn 2"),
            ("{% for m in messages %}", turns("user", "assistant"), r"chat template, line 1: Unexpected end of template"),
            ("{% generation %}x{% generation %}y{% endgeneration %}{% endgeneration %}", turns("user", "assistant"), "inside {% generation %}"),
            ("{% generation %}{% endgeneration %}", turns("user", "assistant"), "puts nothing of this conversation into it"),
            ("{% set x %}{% generation %}  {{ messages[1].content }} {% endgeneration %}{% endset %}{{ x | trim }}", turns("user", "assistant"),
             "changes what is inside"),
            (CHATML, [{"messages": []}], "bad.jsonl:1: 'messages' is \\[\\]; a list of messages is wanted"),
            (CHATML, [{"messages": [{"content": "a"}]}], "bad.jsonl:1: message 1 of 'messages' is"),
            (CHATML, [{"messages": [{"role": "assistant", "content": 3}]}], "bad.jsonl:1: message 1 of 'messages' is"),
            (CHATML, [{"messages": "hello"}], "bad.jsonl:1: 'messages' is 'hello'"),
            (CHATML, [{"conversations": [{"from": "dog", "value": "a"}]}], "bad.jsonl:1: entry 1 of 'conversations'"),
            (CHATML, [{**turns()[0], "tools": "x"}], "bad.jsonl:1: 'tools' is 'x'; a list is wanted"),
            (CHATML, [{**turns()[0], "label": 1}], "labels go with texts"),
            (CHATML, [{"prompt": "a", "completion": ""}], "bad.jsonl:1: the completion is empty"),
            (CHATML, [{"prompt": "a", "completion": 1}], "bad.jsonl:1: 'completion' is 1; a text is wanted"),
        ]
        for template, records, pattern in cases:
            with self.subTest(pattern):
                (self.folder / "t.jinja").write_text(template)
                self.refused(pattern, f"--tokenizer={self.tokenizer('gpt2')[0]}", "--chat-template=t.jinja", self.lines("bad.jsonl", records), "-o", "x.ftd")
        self.refused("has no chat template", f"--tokenizer={self.tokenizer('unigram')[0]}", self.lines("bad.jsonl", turns("user", "assistant")), "-o", "x.ftd")


if __name__ == "__main__":
    unittest.main()
