"""Conversations as ids: compared with transformers, and with parts that are put together by hand."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import datetime
from functools import cache
from importlib import import_module
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cpbpe
from cpbpe.tokenizer import chat_templates
from cpbpe.tokenizer.chat_templates import ChatTemplate
from cpbpe.tokenizer.marked_text import WRITTEN, Marked, Origin, Run, generated, joined, marked, runs_of
from tests.support import budget, tiers, zoo
from tests.support.chats import IM, STYLES, saved
from tests.support.time_limit import time_limit

DAILY = ["chatml", "llama-2", "qwen", "phi", "generation"]
styles = pytest.mark.parametrize("name", tiers.some(STYLES, DAILY))
PARTS = (
    "the cat",
    "Hi",
    " ",
    "\n",
    "\n\n",
    "🦙",
    "日本",
    "[INST",
    "<",
    "|>",
    "é",
    "{{ x }}",
    "user",
    "0",
    "\u3000",
)
CALL = {"function": {"name": "f", "arguments": {"a": [1, "the <cat>"], "é": None}}}
TOOL = {"type": "function", "function": {"name": "f", "description": 'the "cat" <b>', "parameters": {}}}


@cache
def style(name: str) -> tuple[cpbpe.Tokenizer, Any]:
    """A folder's tokenizer, and that of transformers."""
    with TemporaryDirectory() as folder:
        theirs = saved(STYLES[name], Path(folder))
        return cpbpe.load(Path(folder) / "saved"), theirs


def conversation(rng: random.Random, name: str, said: Callable[[], str]) -> list[dict[str, Any]]:
    """Messages in an order that every template takes, with content as this one takes it."""
    messages: list[dict[str, Any]] = []
    if name not in ("mistral", "gemma") and rng.random() < 0.4:
        messages.append({"role": "system", "content": said()})
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": said()})
        messages.append({"role": "assistant", "content": said()})
    if rng.random() < 0.4:
        messages.pop()
    if name == "qwen" and rng.random() < 0.5:
        messages.append({"role": "assistant", "content": None, "tool_calls": [CALL]})
        messages.append({"role": "tool", "content": said()})
        messages.append({"role": "assistant", "content": f"<think>\n{said()}\n</think>\n\n{said()}"})
    if name == "llama-3":
        for message in messages[::3]:
            message["content"] = [{"type": "text", "text": message["content"]}, {"type": "image"}]
    return messages


def text_from(rng: random.Random, parts: Any) -> Callable[[], str]:
    return lambda: "".join(rng.choices(parts, k=rng.randrange(7)))


@styles
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_same_as_transformers(name: str) -> None:
    """The text, the ids, and the ids of the parts, of conversations that spell no special token."""
    tok, theirs = style(name)
    options: Any = {"prefix_after_special": tok.file_options.get("prefix_after_special", True)}
    rng = random.Random(f"{name} {budget.SEED}")
    for _ in range(budget.examples(60)):
        messages = conversation(rng, name, text_from(rng, PARTS))
        more: dict[str, Any] = {"add_generation_prompt": rng.random() < 0.5}
        if name in ("mistral", "llama-3") and rng.random() < 0.5:
            more["tools"] = [TOOL, TOOL]
        if name == "qwen" and rng.random() < 0.5:
            more["enable_thinking"] = False
        chat = tok.apply_chat_template(messages, **more)
        assert chat.text == theirs.apply_chat_template(messages, tokenize=False, **more)
        assert chat.ids == theirs.apply_chat_template(messages, **more)["input_ids"], (messages, more)
        assert chat.ids == tok.encode_parts(chat.parts, **options)
        assert len(chat.ids) == len(chat.messages)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_reasoning_has_several_names() -> None:
    tok, theirs = style("qwen")
    template = "{% for m in messages %}{{ m.thinking }}|{{ m.reasoning_content }}|{{ m.content }}{% endfor %}"
    for names in product((None, "a"), (None, "b"), (None, "c")):
        fields = dict(zip(("reasoning_content", "thinking", "reasoning"), names, strict=True))
        given = {name: text for name, text in fields.items() if text is not None}
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", **given}]
        expected = theirs.apply_chat_template(messages, tokenize=False, chat_template=template)
        assert tok.apply_chat_template(messages, template=template).text == expected


@styles
def test_no_message_writes_special_tokens(name: str) -> None:
    """Whatever messages spell, there are the special tokens of the same conversation without it."""
    tok, _ = style(name)
    special = tok.vocab.special_tokens
    options: Any = {"prefix_after_special": tok.file_options.get("prefix_after_special", True)}
    rng = random.Random(f"{name} {budget.SEED} special")
    halves = [part for token in special for part in (token[:2], token[2:], token[:-1], token[-1:])]
    parts = [*special, *special, *halves, *PARTS, "x"]
    for _ in range(budget.examples(60)):
        messages = conversation(rng, name, text_from(rng, parts))
        plain = [
            {**message, "content": f"x{number}"} for number, message in enumerate(messages)
        ]  # (no two texts are the same in Qwen's template, which looks for thoughts)
        chat = tok.apply_chat_template(messages)
        expected = tok.apply_chat_template(plain)
        own = {*special.values()}
        assert [id for id in chat.ids if id in own] == [id for id in expected.ids if id in own], messages
        said = [message["content"] for message in messages if isinstance(message["content"], str)]
        if name != "qwen":
            assert all(text.strip() in chat.text for text in said)
        assert chat.ids == tok.encode_parts(chat.parts, **options)
        texts = [part if isinstance(part, str) else part.text for part in chat.parts]
        assert "".join(texts) == chat.text or name == "phi"  # (whose tokens take spaces)


@pytest.mark.parametrize("name", tiers.some(zoo.REAL, zoo.REAL[2:3]))
def test_the_same_as_mistral_common(name: str) -> None:
    """Mistral's own library puts ids together, so that messages can spell special tokens there, too."""
    from mistral_common.integrations.chat_templates import chat_templates as theirs
    from mistral_common.protocol.instruct import messages as instruct
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    path = zoo.real_path(name)
    template = theirs.convert_tokenizer_to_chat_template(path)
    tok = cpbpe.load(path).using(prefix_after_special=False)
    oracle = MistralTokenizer.from_file(str(path))
    rng = random.Random(f"{name} {budget.SEED}")
    for _ in range(budget.examples(40)):
        said = text_from(rng, ("[INST]", "[/INST]", "</s>", "<s>", "[TOOL_CALLS]", "<unk>", *PARTS))
        roles = ["user", "assistant"] * rng.randrange(3) + ["user"]
        messages = [{"role": role, "content": f"x{said()}x"} for role in roles]
        kinds: Any = {"user": instruct.UserMessage, "assistant": instruct.AssistantMessage}
        asked: Any = [kinds[message["role"]](content=message["content"]) for message in messages]
        expected = oracle.encode_chat_completion(ChatCompletionRequest(messages=asked))
        assert tok.apply_chat_template(messages, template=template).ids == expected.tokens, messages


def test_parts_by_hand() -> None:
    tok, _ = style("chatml")
    rng = random.Random(budget.SEED)
    start, end = map(cpbpe.Special, IM)
    for _ in range(budget.examples(100)):
        messages = conversation(rng, "chatml", text_from(rng, (*IM, *PARTS)))
        parts: list[Any] = []
        for message in messages:
            text = f"{message['role']}\n{message['content']}"
            parts += [start, text, end, "\n"]
        chat = tok.apply_chat_template(messages)
        assert chat.parts == parts
        assert chat.ids == tok.encode_parts(parts)


# --- Who says what --------------------------------------------------------------------------------


@styles
def test_what_the_assistant_said(name: str) -> None:
    """The ids of the mask decode to what it said, and to the token that ends its turn."""
    tok, _ = style(name)
    ends = STYLES[name].ends
    rng = random.Random(f"{name} {budget.SEED} masks")
    for _ in range(budget.examples(60)):
        words = text_from(rng, ("the cat", "Hi", " ", "🦙", "日本", "é", *ends, *IM))
        messages = [
            {"role": role, "content": f"x{words()}x"}
            for _ in range(rng.randrange(1, 4))
            for role in ("user", "assistant")
        ]
        chat = tok.apply_chat_template(messages)
        shown = [id for id, own in zip(chat.ids, chat.assistant, strict=True) if own]
        text = tok.decode(shown, skip_special_tokens=False)
        gap = " " if name == "llama-2" else ""
        answers = "".join(message["content"] + gap + ends[0] for message in messages[1::2])
        assert text.replace(" ", "") == answers.replace(" ", ""), messages
        for number, message in enumerate(messages):
            own = [id for begin, end in chat.spans(number) for id in chat.ids[begin:end]]
            assert tok.decode(own).replace(" ", "") == message["content"].replace(" ", "")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_masks_of_transformers() -> None:
    tok, theirs = style("generation")
    rng = random.Random(budget.SEED)
    for _ in range(budget.examples(100)):
        messages = conversation(rng, "chatml", text_from(rng, PARTS))
        expected = theirs.apply_chat_template(messages, return_assistant_tokens_mask=True)
        chat = tok.apply_chat_template(messages)
        assert chat.ids == expected["input_ids"]
        assert chat.assistant == list(map(bool, expected["assistant_masks"])), messages


SAID = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]


@pytest.mark.parametrize(
    ("template", "messages", "problem"),
    [
        (
            "{% for m in messages %}{{ m.content }}\n{% endfor %}",
            SAID,
            "no special token ends the turn of messages",
        ),
        ("{% for m in messages %}{{ m.content }}</s>{% endfor %}", SAID[:1] * 3, None),
        (
            "{% for m in messages %}{{ m.content }}</s>{% endfor %}",
            SAID + SAID[:1],
            "message is not the last",
        ),
        ("{{ messages[0].content }}</s>", SAID, r"the text has nothing of messages\[1\]"),
        (
            "{% for m in messages %}{{ '<%s' % m.content }}</s>{% endfor %}",
            SAID,
            "does not show who has said",
        ),
        ("{% for m in messages %}{{ m.content }}{{ loop.index }}</s>{% endfor %}", SAID, None),
        ("{{ messages[1].content }}{{ messages[0].content }}</s>", SAID, "no special token ends the turn"),
        (
            "{{ messages[0].content }}</s>x{{ messages[0].content }}</s>",
            SAID[1:],
            r"a special token is inside of what messages\[0\] says",
        ),
        (
            "{% for m in messages|reverse %}{{ m.content }}</s>{% endfor %}",
            [SAID[1], {**SAID[1], "content": "No"}],
            r"messages\[1\] comes before an earlier one",
        ),
        (
            "{% for m in messages %}{{ m.content }}{{ '<s>' if loop.index == 2 else '</s>' }}{% endfor %}",
            SAID * 2,
            r"the turn of messages\[3\] ends in another token",
        ),
        (
            "{% for m in messages %}{{ m.reasoning }}{{ m.content }}</s>{% endfor %}",
            [{"role": "assistant", "content": "a", "reasoning": "b"}],
            r"says more than its content \(reasoning\)",
        ),
        (
            "{% for m in messages %}{% generation %}{{ '%s' % m.content }}{% endgeneration %}{% endfor %}",
            SAID,
            None,
        ),
        (
            "{% set x %}{% generation %}{{ 'a' }}{% endgeneration %}{% endset %}{{ '<%s' % x }}",
            SAID,
            "does not show who has said",
        ),
        ("{{ [messages, 'a'] }}{% generation %}a{% endgeneration %}", SAID, None),
        (
            "{% filter upper %}{{ messages[1].content }}{% generation %}a{% endgeneration %}{% endfilter %}",
            SAID,
            "does not show who has said",
        ),
    ],
)
def test_doubtful_masks(template: str, messages: Any, problem: str | None) -> None:
    """Ids are there, and a mask where it is certain."""
    chat = mistral().apply_chat_template(messages, template=template)
    assert chat.ids
    if problem is None:
        assert len(chat.assistant) == len(chat)
    else:
        with pytest.raises(ValueError, match=f"{problem}.*generation"):
            _ = chat.assistant


def test_no_mask_of_a_prompt() -> None:
    """The beginning of an answer is not the end of one."""
    template = (
        "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<s>{% endif %}"
    )
    chat = mistral().apply_chat_template(SAID, template=template, add_generation_prompt=True)
    with pytest.raises(ValueError, match="message is not the last"):
        _ = chat.assistant


def test_generation_in_sets_and_macros() -> None:
    """The mask follows the text, wherever it goes. (transformers counts what was written before.)"""
    template = """{%- set all %}a{% generation %}b{{ messages[0].content }}{% endgeneration %}c{% endset -%}
    {{- 'x' ~ all | trim ~ '|' ~ all }}"""
    chat = mistral().apply_chat_template(SAID, template=template)
    assert chat.text == "xabHic|abHic"
    text = "".join(
        chat_piece for chat_piece, own in zip(chat_pieces(chat), chat.assistant, strict=True) if own
    )
    assert text.count("Hi") == 2


def chat_pieces(chat: cpbpe.ChatEncoding) -> list[str]:
    return [mistral().id_to_piece(id) for id in chat.ids]


# --- Templates ------------------------------------------------------------------------------------


@cache
def mistral() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model("tokenizer.model.v1"))


KEPT = (
    "{{ x.strip() }}|{{ x | trim }}|{{ x.lstrip('\\n') }}|{{ x.rstrip() }}",
    "{{ x.split('</think>')[-1] }}{{ x.split()[0] }}{{ x.rsplit(None, 1)[1] }}",
    "{{ x[1:] }}{{ x[0] }}{{ x[::-1] }}{{ x[:3] + '</s>' ~ x }}",
    "{{ x.replace('a', '<s>') | replace('b', 'a') }}",
    "{{ [x, '</s>', x] | join('<s>') }}{{ '<s>'.join([x, x]) }}",
    "{% for line in x.splitlines() %}{{ line }}<s>{% endfor %}",
    "{% set y %}<s>{{ x }}{% endset %}{{ y }}{{ y.partition('\\n')[2] }}",
    "{% macro f(a) %}<s>{{ a }}{{ caller() }}{% endmacro %}{% call f(x) %}{{ x }}</s>{% endcall %}",
    "{{ {'</s>': [x, 1, {2: x}]} | tojson(indent=2) }}{{ x | tojson(true) }}",
    "{{ {'a': x} | tojson }}{{ x | tojson }}{{ (x | upper) + x.title() }}{{ x * 2 }}",
    "{{ x if '</s>' in x and x.startswith(' ') and x | length > 3 and x != '' else '<s>' }}",
    "{{ x.removeprefix(' ') }}{{ x.removesuffix(' ') }}{{ x.rpartition('a')[0] }}",
    "{{ x | first }}{{ x | last }}{{ x | list | join }}{{ x | title }}{{ x | safe }}{{ '<s>' | safe }}",
    "{% filter trim %}<s>{{ x }}{% endfilter %}{% for c in x %}{{ c }}{% endfor %}",
)


@pytest.mark.parametrize("template", KEPT)
@pytest.mark.parametrize("said", [" </s>a\n<s>b</think> a ", "\n\na b </s>", " x"])
def test_what_templates_do_with_messages(template: str, said: str) -> None:
    """The text is that of transformers, and its special tokens are the template's."""
    from transformers.utils.chat_template_utils import render_jinja_template

    source = "{%- set x = messages[0].content -%}" + template
    messages = [{"role": "user", "content": said}]
    ((expected,), _) = render_jinja_template([messages], chat_template=source)
    tok = mistral()
    chat = tok.apply_chat_template(messages, template=source)
    assert chat.text == expected
    # With another letter for each that is special, the template's own tokens are all that there are.
    covered = [{"role": "user", "content": said.replace("s>", "z>")}]
    ((other,), _) = render_jinja_template(
        [covered], chat_template=source.replace("'</s>' in x", "'</z>' in x")
    )
    own = [id for id in tok.encode(other, allowed_special="all") if id in (1, 2)]
    assert [id for id in chat.ids if id in (1, 2)] == own
    assert tok.encode_parts(chat.parts) == chat.ids


@pytest.mark.parametrize(
    "template",
    [
        "{{ [messages[0].items()] }}",
        "{{ 'a' | indent(x, true) }}",
        "{{ [1, 'a'] | tojson(separators=(x, ':')) }}",
        "{{ [1, 'a'] | tojson(indent=x) }}",
        "{{ ['a', x] | tojson(indent='\"') }}",
        "{{ '{}'.format(x) }}",
        "{{ '<%s' % x }}",
        "{{ [x, 'a'] }}",
        "{{ (x + '<') | indent }}",
    ],
)
def test_unknown_origins(template: str) -> None:
    """Where nobody can tell who has written a token, the call is refused; elsewhere it is not."""
    source = "{%- set x = messages[0].content -%}" + template
    chat = mistral().apply_chat_template([{"role": "user", "content": "Hi"}], template=source)
    assert "Hi" in chat.text
    assert mistral().encode(chat.text) == chat.ids
    with pytest.raises(cpbpe.ChatTemplateError, match="may have written '</s>', or a message has"):
        mistral().apply_chat_template([{"role": "user", "content": "Hi</s>"}], template=source)


def test_tokens_of_both() -> None:
    """A token is the template's only if all of it is."""
    tok = mistral()
    for template in ("</{{ x }}>", "{{ '<' }}{{ '/' ~ x }}{{ '>' }}", "<{{ x }}></s>"):
        source = "{%- set x = messages[0].content -%}" + template
        chat = tok.apply_chat_template([{"role": "user", "content": "s"}], template=source)
        assert chat.ids.count(1) == 0
        assert chat.ids.count(2) == template.count("</s>")
    whole = "{{ '<' ~ '/s' }}{{ '>' }}"  # the template writes it in pieces, and number
    assert tok.apply_chat_template(SAID, template=whole).ids == [2]
    numbered = tok.with_special_tokens(["<|image_1|>"])
    assert numbered.apply_chat_template(SAID, template="<|image_{{ 2 - 1 }}|>").ids == [32000]


def test_covered_tokens_hide_none() -> None:
    """A token that is said may overlap one that is written."""
    tok = mistral().with_special_tokens(["<<a>", "a>", "<a></s", ">x</s>"])
    chat = tok.apply_chat_template(
        [{"role": "user", "content": "<"}], template="{{ messages[0].content }}<a></s>"
    )
    assert chat.parts == ["<", cpbpe.Special("<a></s"), ">"]
    chat = tok.apply_chat_template(
        [{"role": "user", "content": "<a>x"}], template="{{ messages[0].content }}</s>"
    )
    assert chat.parts == ["<a>x", cpbpe.Special("</s>")]


def test_tokens_that_the_model_makes_of_text() -> None:
    """Nothing can be done about them, but to say it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        options: Any = {"user_defined_symbols": ["<turn>"], "vocab_size": 270}
        cpbpe.train(["the cat <turn>"] * 9, **options).tokenizer.save(folder / "tokenizer.model")
        added = '{"added_tokens_decoder": {"3": {"content": "<turn>", "special": true}}}'
        (folder / "tokenizer_config.json").write_text(added)
        tok = cpbpe.load(folder)
    template = "<turn>{{ messages[0].content }}"
    assert tok.vocab.special_tokens["<turn>"] == 3
    assert tok.apply_chat_template(SAID, template=template).ids.count(3) == 1
    with pytest.raises(ValueError, match="makes it of plain text"):
        tok.apply_chat_template([{"role": "user", "content": "<turn>"}], template=template)


def test_bos_and_options() -> None:
    """One bos, whatever a file asks for; and no options that would change what a network is asked with."""
    tok = mistral()
    template = "{{ bos_token }}{{ messages[0].content }}"
    expected = [1, *tok.encode("Hi")]
    assert tok.apply_chat_template(SAID, template=template).ids == expected
    bound = tok.using(add_bos=True, add_eos=True, allowed_special="all", disallowed_special=())
    assert bound.apply_chat_template(SAID, template=template).ids == expected
    assert tok.using(disallowed_special="raise").apply_chat_template(SAID, template=template).ids == expected
    assert tok.apply_chat_template(SAID, template=template, bos_token="").ids == expected[1:]
    bare = tok.using(prefix_after_special=False).apply_chat_template(SAID, template=template)
    assert bare.ids == tok.encode_parts([1, "Hi"], prefix_after_special=False) != expected
    for options in ({"reverse": True}, {"alpha": 0.1}, {"seed": 5}):
        with pytest.raises(TypeError, match=f"apply_chat_template.. has no option '{next(iter(options))}'"):
            tok.using(**options).apply_chat_template(SAID, template=template)


def test_names_of_templates() -> None:
    from dataclasses import replace

    spec = mistral().spec
    templates = {"default": "{{ messages[0].content }}", "tool_use": "{{ tools | length }}"}
    tok = cpbpe.Tokenizer.from_spec(replace(spec, carried=replace(spec.carried, chat_templates=templates)))
    assert tok.apply_chat_template(SAID).text == "Hi"
    assert tok.apply_chat_template(SAID, tools=[TOOL]).text == "1"  # as in transformers
    assert tok.apply_chat_template(SAID, template="tool_use", tools=[]).text == "0"
    with pytest.raises(ValueError, match=r"no chat template 'x'; it has 'default', 'tool_use'\. Give"):
        tok.apply_chat_template(SAID, template="x")
    with pytest.raises(ValueError, match="no chat template 'default'; it has none"):
        mistral().apply_chat_template(SAID)


@pytest.mark.parametrize(
    ("messages", "more", "error", "problem"),
    [
        ({"role": "user"}, {}, TypeError, "takes a list of messages, not dict; put it into a list"),
        ("Hi", {}, TypeError, "takes a list of messages, not str"),
        ([], {}, ValueError, "there is no message"),
        ([SAID], {}, TypeError, r"messages\[0\] is a list; give one conversation after the other"),
        (["Hi"], {}, TypeError, r"messages\[0\] must be a dict such as"),
        ([{"content": "Hi"}], {}, ValueError, r"messages\[0\] must have a 'role' such as 'user', not None"),
        ([{"role": "a|><|b", "content": ""}], {}, ValueError, "they consist of letters, digits"),
        (
            [{"role": "user", "content": 5}],
            {},
            TypeError,
            r"\['content'\] must be text, a list of parts or None",
        ),
        ([{"role": "user", "content": b"Hi"}], {}, TypeError, r"\['content'\] is a bytes.*; decode it"),
        ([{"role": "user"}], {}, ValueError, r"messages\[0\] says nothing; give it a 'content'"),
        (SAID, {"tols": 1}, ValueError, "looks at no variable 'tols'.*; is it tools?"),
        (SAID, {"tokenize": False}, ValueError, r"'tokenize'.*; leave it out: the result has the text"),
        (SAID, {"thinking": 1}, ValueError, r"no variable 'thinking'.*; leave it out \(its own are day"),
        (SAID, {"tools": [print]}, TypeError, r"tools\[0\] is a builtin.*; give its JSON schema"),
        (SAID, {"day": datetime(2026, 1, 1)}, TypeError, "day is a datetime, and templates take text"),
    ],
)
def test_wrong_arguments(messages: Any, more: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        mistral().apply_chat_template(messages, template="{{ messages }}{{ tools }}{{ day }}", **more)


def test_what_content_may_be() -> None:
    """None is as if it were not there, parts go to the template, and all types become Python's own."""
    import numpy as np

    class Name(str):
        pass

    template = (
        "{% for m in messages %}{{ m.content is defined }}{{ m.content[0].text }}{{ m.n + 1 }}{% endfor %}"
    )
    message = {"role": Name("user"), "content": [{"type": "text", "text": Name("Hi")}], "n": np.float64(1)}
    assert mistral().apply_chat_template([message], template=template).text == "TrueHi2.0"
    none: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
    assert (
        mistral().apply_chat_template([none], template="{{ messages[0].content is defined }}").text == "False"
    )


def grown(start: str, step: str, times: int = 99) -> str:
    """A template in which n.x becomes larger and larger."""
    loop = f"{{% for i in range({times}) %}}{{% set n.x = {step} %}}{{% endfor %}}"
    return f"{{% set n = namespace(x={start}) %}}{loop}"


TOWER = grown("[1]", "[n.x, n.x]", 20)
"""A few lists, which are a long text."""
NUMBER = "{% set n = 7 ** 40000 %}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{% for %}", "has a mistake in line 1"),
        ("{{" + "(" * 3000 + ")" * 3000 + "}}", "has a mistake"),
        ("{{ raise_exception('no ' ~ messages[0].role) }}", "says: no user"),
        ("{{ messages[0].name.first }}", "fails: 'dict object' has no attribute 'name'"),
        ("{{ messages.append(1) }}", "fails: .*unsafe"),
        ("{{ ''.__class__.__mro__ }}", "fails: .*unsafe"),
        ("{{ dict.mro() }}{{ namespace(__init__=1) }}", "fails|begin with a letter"),
        ("{% set n = namespace() %}{% set n._x = 1 %}", "not begin with a letter"),
        ("{{ namespace(a=1) }}", "writes a namespace"),
        ("{% include 'x' %}", "fails: no loader"),
        ("{% autoescape true %}{{ 1 }}{% endautoescape %}", "has {% autoescape %}"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "more than"),
        ("{% for a in range(10**9) %}{% endfor %}", "fails: .*Range too big"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion|stopped"),
        (grown("'ab'", "n.x + n.x"), "stopped"),
        (grown("'ab'", "n.x ~ n.x"), "stopped"),
        (grown("[1]", "n.x + n.x"), "stopped"),
        (grown("7", "n.x * n.x"), "stopped"),
        (grown("[1]", "[n.x, n.x]") + "{{ n.x }}", "stopped"),
        (grown("[1]", "[n.x, n.x]") + "{{ n.x | tojson }}", "stopped"),
        ("{{ 'ab' * 10**9 }}", "stopped"),
        ("{{ [1] * 10**9 }}", "stopped"),
        ("{{ 7 ** (7 ** 9) }}", "stopped"),
        ("{{ ('a' * 10**5).replace('a', 'b' * 10**5) }}", "stopped"),
        ("{{ ('a' * 10**5) | replace('a', 'b' * 10**5) }}", "stopped"),
        ("{{ ('a' * 10**4).join(range(10**4) | map('string')) }}", "stopped"),
        ("{{ range(10**4) | join('a' * 10**4) }}", "stopped"),
        ("{{ '%099999999d' % 5 }}", "formats with a width"),
        ("{{ '{:099999999}'.format(5) }}", "formats with a width"),
        ("{{ '{:{}}'.format(5, 99999999) }}", "formats with a width"),
        ("{{ '%*d' % (99999999, 5) }}", "formats with a width"),
        ("{{ '%(a)-.99999999f' % {'a': 5} }}", "formats with a width"),
        ("{{ '{:x>99999999}'.format(5) }}", "formats with a width"),
        ("{{ '{0[}]:99999999}'.format({'}': 5}) }}", "formats with a width"),
        ("{{ '{:\u0669\u0669\u0669\u0669\u0669}'.format(5) }}", "formats with a width"),
        ("{{ '%(a(b)c)99999999d' % {'a(b)c': 5} }}", "formats with a width"),
        (NUMBER + "{% set y = '%(n)x' * 100 % {'n': n} %}", "stopped"),
        (NUMBER + "{% set y = ('{0:x}' * 100).format(n) %}", "stopped"),
        ("{% set y = ([10 ** 4000] * 10 ** 4) | lower %}", "stopped"),
        ("{% set y = '%(a)999d' * 10 ** 4 % {'a': 1} %}", "stopped"),
        ("{% set y = ('{0:999}' * 10 ** 4).format(1) %}", "stopped"),
        ("{% set y = strftime_now('%999d' * 10 ** 4) %}", "stopped"),
        (TOWER + "{% set y = n.x | upper %}", "stopped"),
        (TOWER + "{% set y = n.x | wordcount %}", "stopped"),
        (TOWER + "{{ raise_exception(n.x) }}", "stopped"),
        (TOWER + "{% set y = {1: n.x}.items() | lower %}", "stopped"),
        (TOWER + "{% set y = [{1: n.x}.values()] | lower %}", "stopped"),
        (TOWER + "{% set y = [1][n.x].a %}", "stopped"),
        (TOWER + "{% set y = [1].index(n.x) %}", "stopped"),
        (grown("[1] * 10**4", "[n.x]", 90) + "{% set y = n.x | tojson(indent=16) %}", "stopped"),
        (grown("'&' * 10**4", "n.x | forceescape"), "stopped"),
        (grown("'&' * 10**4", "n.x | e | title"), "stopped"),
        ("{{ ('' | safe).escape('&') }}", "unsafe|no attribute"),
        ("{{ {} | tojson(indent=99999999) }}", "writes JSON with more than 16 spaces"),
        ("{{ 'a' | indent(99999999, true) }}", "stopped"),
        ("{{ 'a'.center(99999999) }}{{ 'a'.zfill(99999999) }}", "unsafe"),
        ("{{ 'a' | center(99999999) }}", "No filter named 'center'"),
        ("{{ strftime_now('%099999999d') }}", "writes the date with a width"),
        ("{% for a in range(99999) %}{{ 'a' * 10**4 }}{% endfor %}", "stopped"),
        ("{% set a = 'a' * 10**4 %}" + grown("[]", "n.x + [a ~ i]", 9999), "stopped"),
        ("{{ lipsum(99999) }}", "fails: 'lipsum' is undefined"),
    ],
)  # fmt: skip
def test_hostile_templates(template: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They neither hang nor fill the memory, with marks or without, and the message says what they did."""
    if problem in ("stopped", "more than"):  # (where a slow machine may be stopped for the other reason)
        monkeypatch.setattr(chat_templates, "SECONDS", 0.2)
    monkeypatch.setattr(chat_templates, "MOST", 1 << 17)
    with pytest.raises(cpbpe.ChatTemplateError, match=problem) as caught:
        mistral().apply_chat_template(SAID, template=template)
    assert str(caught.value) == f"the chat template {caught.value.reason}"
    with pytest.raises(cpbpe.ChatTemplateError, match=problem):
        ChatTemplate(template).render({"messages": SAID}, marks=True)


def test_a_text_that_is_put_together_message_by_message() -> None:
    """It has two runs a message, which are copied each time, but not looked at one by one."""
    loop = "{% for m in messages %}{% set ns.t = ns.t + m.content + ';' %}{% endfor %}"
    template = "{% set ns = namespace(t='') %}" + loop + "{{ ns.t }}"
    messages = [{"role": "user", "content": "some words"}] * 1500
    with time_limit(10):
        assert mistral().apply_chat_template(messages, template=template).text == "some words;" * 1500


@pytest.mark.parametrize("made", ["map('upper')", "map('length')", "select('in', ['a'])"])
def test_filters_of_lists_ask_what_time_it_is(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So one expression neither runs for long nor makes texts without end."""
    clock = count()
    monkeypatch.setattr(chat_templates, "time", SimpleNamespace(monotonic=lambda: next(clock) / 50))
    with pytest.raises(cpbpe.ChatTemplateError, match="takes more than 10 seconds"):
        ChatTemplate(f"{{{{ (['a'] * 999) | {made} | list | length }}}}").render({})


def test_a_long_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is allowed grows with what is given."""
    monkeypatch.setattr(chat_templates, "MOST", 100)
    messages = [{"role": "user", "content": "the cat sat. " * 1000}] * 3
    template = "{% for m in messages %}{{ '[INST]' + m.content | trim + '[/INST]' }}{% endfor %}"
    assert len(mistral().apply_chat_template(messages, template=template).text) > 39_000


@pytest.mark.parametrize(
    "template", ["(x | safe | string) + '<'", "x | e | string | trim + '<'", "[x] | upper"]
)
def test_html(template: str) -> None:
    """Texts that are HTML stay it, as in transformers."""
    from transformers.utils.chat_template_utils import render_jinja_template

    source = f"{{% set x = messages[0].content %}}{{{{ {template} }}}}"
    messages = [{"role": "user", "content": "a<b"}]
    expected = render_jinja_template([messages], chat_template=source)[0][0]
    assert ChatTemplate(source).render({"messages": messages}) == expected


def test_texts_of_many_origins() -> None:
    """What takes a text apart looks at each origin once."""
    template = """{%- set x %}{% for i in range(20000) %}a{{ messages[0].content }}{% endfor %}{% endset -%}
    {{- x | list | length }} {{ x.split('a') | length }} {{ x[::-1] | length }} {{ x.split() | length }}"""
    assert mistral().apply_chat_template(SAID, template=template).text == "60000 20001 60000 1"


def test_marks_have_no_names() -> None:
    """A template cannot ask for what only marked texts have."""
    template = "{{ messages[0].content.runs is defined or messages[0].content.parts is defined }}"
    assert mistral().apply_chat_template(SAID, template=template).text == "False"


def test_the_time_is_asked_once() -> None:
    """Both renderings have the same."""
    chat = mistral().apply_chat_template(SAID, template="{{ strftime_now('%f') }}{{ strftime_now('%f') }}")
    assert chat.text[:6] == chat.text[6:]


def test_an_old_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jinja2.__version__", "3.1.5")
    with pytest.raises(ImportError, match=r"newer, and this is 3\.1\.5: pip install"):
        ChatTemplate("{{ messages }}")
    monkeypatch.setattr("jinja2.__version__", "3.2.0rc1")
    assert ChatTemplate("{{ messages }}").render({"messages": 1}) == "1"


def test_without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "cpbpe.tokenizer.chat_templates")
    with pytest.raises(ImportError, match=r"jinja2, 3\.1\.6 or newer: pip install 'jinja2>=3\.1\.6'"):
        import_module("cpbpe.tokenizer.chat_templates")


# --- Texts with origins ---------------------------------------------------------------------------

ONE, OTHER = "ab<cdéß \n\t\r\u2003\x1f", "xyz🦙\u3000"
STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda one, other, at: one + other + one,
    "mul": lambda one, other, at: one * at + 2 * other,
    "item": lambda one, other, at: one[at] if -len(one) <= at < len(one) else one,
    "slice": lambda one, other, at: one[at : at + 3] + one[:at] + one[::-2],
    "strip": lambda one, other, at: one.strip() + one.strip("b \n") + one.lstrip("a ") + one.rstrip(),
    "split": lambda one, other, at: other.join([*one.split(), *one.split(None, at), *one.split("a", at)]),
    "rsplit": lambda one, other, at: other.join([*one.rsplit(None, at), *one.rsplit("c", at)]),
    "splitlines": lambda one, other, at: other.join([*one.splitlines(), *one.splitlines(True)]),
    "partition": lambda one, other, at: other.join([*one.partition("a"), *one.rpartition("\n")]),
    "replace": lambda one, other, at: one.replace("a", other) + one.replace("b", one, at),
    "removeprefix": lambda one, other, at: one.removeprefix(str(one)[:1]) + one.removesuffix(str(one)[-1:]),
    "iter": lambda one, other, at: other.join(one) + other.join(reversed(one)),
    "str": lambda one, other, at: str(one),
}


@given(
    st.lists(st.sampled_from(ONE), unique=True),
    st.permutations(OTHER),
    st.integers(-5, 5),
    st.sampled_from([*STEPS]),
)
@settings(max_examples=budget.examples(200), deadline=None)
def test_origins(letters: list[str], others: list[str], at: int, step: str) -> None:
    """No letter is in a text twice, so each one shows which origin it must have."""
    one, other = "".join(letters), "".join(others)
    origins = {letter: Origin("said", number) for number, letter in enumerate(one + other)}

    def with_origins(text: str) -> Marked:
        return joined(marked(letter, origins[letter]) for letter in text)

    found = STEPS[step](with_origins(one), with_origins(other), at)
    assert found == STEPS[step](one, other, at)
    assert sum(run.size for run in found.runs) == len(found)
    own = [origin for size, origin in found.runs for _ in range(size)]
    assert own == [origins[letter] for letter in str(found)]


FILTERS = sorted(chat_templates.ChatTemplate("").tree.environment.filters)  # type: ignore[union-attr]
METHODS = [
    *(name for name in vars(str) if not name.startswith("_")),
    "items",
    "keys",
    "values",
    "get",
    "index",
]


def expression(rng: random.Random, depth: int) -> str:
    """An expression of the language of templates, of everything that makes texts of texts."""
    one, two = (expression(rng, depth - 1) if depth else rng.choice("xxml3") for _ in range(2))
    given = [rng.choice((two, "'a'", "' '", "1", "-1", "none", "true")) for _ in range(rng.randrange(3))]
    if rng.random() < 0.2:
        given.append(rng.choice(("indent", "separators", "attribute", "sort_keys", "width", "d")) + f"={two}")
    forms = (
        *(f"({one} | {rng.choice(FILTERS)}({', '.join(given)}))" for _ in range(4)),
        *(f"({one}).{rng.choice(METHODS)}({', '.join(given)})" for _ in range(4)),
        *(f"({one} {rng.choice('+~*%')} {two})", f"[{one}, {two}]", f"{{{one}: {two}}}", "'<s>'", "x"),
        *(f"({one})[{rng.choice(('0', '1:', '::-1', ':2', 'x'))}]", f"f({one})", f"dict(a={one})"),
    )
    return rng.choice(forms)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_expressions() -> None:
    """Whatever a template does, it has not written what others said."""
    rng = random.Random(budget.SEED)
    given: dict[str, Any] = {"x": ' ①②③ ④\n⑤⑥" ', "m": {"①": "②", "r": ["③", 4]}, "l": ["①②", {"④": None}]}
    with_origins = {name: marked(value, Origin("said", 0)) for name, value in given.items()}
    rendered = 0
    for _ in range(budget.examples(150)):
        source = (
            f"{{% macro f(a) %}}<{{{{ a }}}}>{{% endmacro %}}{{{{ {expression(rng, rng.randrange(4))} }}}}"
        )
        try:
            template = ChatTemplate(source)
            text = template.render(given)
        except cpbpe.ChatTemplateError:
            continue
        found = template.render(with_origins, marks=True)
        if found == text:  # (otherwise the call is refused)
            kinds = [origin.kind for size, origin in runs_of(found) for _ in range(size)]
            own = {kind for kind, letter in zip(kinds, text, strict=True) if letter in "①②③④⑤⑥"}
            assert "written" not in own, source
            rendered += 1
    assert rendered > 10


def test_origins_that_are_lost() -> None:
    """Other methods make ordinary texts, of which nobody knows the origin; some keep it if there is one."""
    said: Any = marked("Straße", Origin("said", 3))
    written = Marked("a", [Run(1, WRITTEN)])
    text: Any = said + written
    arguments: Any
    for name in vars(str):
        if name not in vars(Marked) and name.islower() and not name.startswith("_"):
            for arguments in ((), ("a",), (9,), ("a", "b"), ({},)):
                try:
                    result = getattr(text, name)(*arguments)
                except (TypeError, LookupError):
                    continue
                assert not isinstance(result, Marked) or result is text
    assert said.upper().runs == (Run(7, Origin("said", 3)),)
    assert text.upper().runs == (Run(8, Origin("unknown", 3)),)
    assert (said + marked("x", Origin("said", 4))).lower().runs == (Run(7, Origin("unknown")),)
    assert runs_of(generated(said).upper()) == (Run(7, Origin("said", 3, "", True)),)
    assert runs_of("ab") == (Run(2, Origin("unknown", generated=None)),)
    assert runs_of((written + generated(said)).upper()) == (Run(8, Origin("unknown", 3, generated=None)),)
    assert runs_of(Marked("").upper()) == (Run(0, WRITTEN),)
