"""Chat mode: what the page makes of conversations, compared with transformers, which runs the templates."""

import json
import random
import re
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from gzip import decompress
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

import cpbpe
from cpbpe.tools.chat import chat_table, chats_of
from cpbpe.view import static_page
from tests.bytes.models import made
from tests.support import browser as browsers
from tests.support import budget, tiers, zoo
from tests.support import node as nodes
from tests.support.browser import Opener, until
from tests.tools.conftest import stored

in_node = pytest.mark.skipif(not nodes.RUNS, reason=f"not there: {', '.join(nodes.MISSING)}")
in_browser = pytest.mark.skipif(not browsers.RUNS, reason=f"not there: {', '.join(browsers.MISSING)}")

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TEMPLATES = {
    "turns": """
        {%- for turn in messages -%}
        <turn:{{ turn['role'] }}>{{ turn.content | trim }}</s>\n
        {%- endfor -%}
        {%- if add_generation_prompt -%}<turn:assistant>{%- endif -%}
    """,
    "a system of its own": """
        {%- if messages[0].role != 'system' %}{{ '<sys>Be brief.' }}{% endif -%}
        {%- for turn in messages %}{{ '<' ~ turn.role[:3] ~ '>' ~ turn.content }}{% endfor -%}
    """,
    "the system in the first message, and strict turns": """
        {%- set first = '' -%}
        {%- if messages[0].role == 'system' -%}
        {%- set first = '(' ~ messages[0].content ~ ')' -%}
        {%- set messages = messages[1:] -%}
        {%- endif -%}
        {%- for turn in messages -%}
        {%- if turn.role != ('assistant' if loop.index0 % 2 else 'user') -%}
        {{- raise_exception('turns must alternate') -}}
        {%- endif -%}
        {%- if turn.role == 'user' -%}
        {%- set said = first ~ turn.content if loop.first else turn.content -%}
        {{- bos_token ~ '[INST]' ~ said.strip() ~ '[/INST]' -}}
        {%- else -%}{% generation %}{{- turn.content.rstrip() ~ eos_token -}}{% endgeneration %}
        {%- endif -%}
        {%- endfor -%}
    """,
    "the system moves to the last question": """
        {%- for turn in messages if turn.role != 'system' -%}
        {%- if loop.last and turn.role == 'user' and messages[0].role == 'system' -%}
        {{- messages[0].content ~ ': ' -}}
        {%- endif -%}
        {{- '<' ~ turn.role ~ '>' ~ turn.content -}}
        {%- endfor -%}
    """,
    "thoughts": """
        {%- for turn in messages -%}
        {{- '<' ~ turn.role ~ '>' -}}
        {{- turn.content.split('</think>')[-1] if turn.role == 'assistant' else turn.content -}}
        {%- if loop.last and turn.role == 'assistant' %}<think></think>{% endif -%}
        {%- endfor -%}
        {%- if add_generation_prompt and messages[-1].role == 'user' %}<assistant><think>{% endif -%}
    """,
}
REAL = ("mistral_instruct_tokenizer_240323.model.v3", "mistral_instruct_tokenizer_241114.model.v7")
PARTS = ("hello", "\n", " ", "</think>", "🦙", "[INST]", "\x1f", "\u3000", "</s>", "{{ x }}", "0")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
ALWAYS_ANSWERED = ("turns", "a system of its own")


def template_of(name: str) -> str:
    if name in TEMPLATES:
        return re.sub(r"\n +", "\n", TEMPLATES[name]).strip()
    from mistral_common.integrations.chat_templates.chat_templates import convert_tokenizer_to_chat_template

    return convert_tokenizer_to_chat_template(zoo.real_path(name))


def conversation(rng: random.Random, roles: list[str]) -> list[dict[str, str]]:
    """Some messages: half of the time in the order that most templates want."""
    size = rng.randrange(1, 10)
    order = rng.choices(roles, k=size)
    if rng.random() < 0.6:
        order = [*(["system"] * ("system" in roles and rng.random() < 0.5)), *(["user", "assistant"] * 5)][
            :size
        ]
    odd = rng.random() < 0.3
    content = "".join if odd else lambda parts: f"{''.join(parts)}x".replace("</think>", "")
    return [{"role": role, "content": content(rng.choices(PARTS, k=rng.randrange(5)))} for role in order]


@in_node
@pytest.mark.parametrize("name", tiers.some([*TEMPLATES, *REAL], [*TEMPLATES]))
def test_conversations(name: str) -> None:
    """What the page writes is what the template writes. Where it does not know that, it says so."""
    source = template_of(name)
    table = chat_table(source, TOKENS)
    rng = random.Random(budget.SEED)
    cases = [(conversation(rng, table["roles"]), rng.random() < 0.5) for _ in range(budget.examples(200))]
    with nodes.started() as node:
        rows = node.ask(
            """return cases.map(([messages, prompt]) => {
              try {
                return [cpbpe.chat(table, messages, prompt).map((part) => part.text).join(''), ''];
              } catch (error) {
                return [null, error.message];
              }
            });""",
            table=table,
            cases=cases,
        )
    seen: Counter[str] = Counter()
    for (messages, prompt), (text, problem) in zip(cases, rows, strict=True):
        try:
            ((expected,), _) = render_jinja_template(
                [messages], chat_template=source, add_generation_prompt=prompt, **TOKENS
            )
        except Exception:
            expected = None
        assert text is None or text == expected, (messages, prompt)
        if text is None and expected is not None:
            assert re.search("in a way of its own|^As far as is known", problem)
        seen["same" if text is not None else "refused by both" if expected is None else "not known"] += 1
    assert seen["same"] > len(cases) / 8, seen
    if name in ALWAYS_ANSWERED:
        assert seen == {"same": len(cases)}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{{ messages | length }}", "leaves messages out, moves them or repeats them"),
        ("{% for m in messages | reverse %}{{ m.content }}{% endfor %}", None),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "leaves messages out"),
        (
            "{% for m in messages %}{{ m.content | replace('a', 'b') }}{% endfor %}",
            "changes what messages say",
        ),
        ("{% for m in messages %}{{ m.content ~ loop.index }}{% endfor %}", "follows no simple rule"),
        ("{{ raise_exception('no tools, no chat') }}", "says: no tools, no chat"),
        ("{{ tools[0].name }}", "fails: "),
        ("{% for %}", "has a mistake"),
        ("{{ ''.__class__.__mro__ }}{{ messages.append(1) }}", "fails: "),
    ],
)
def test_templates_without_a_table(source: str, problem: str | None) -> None:
    found = chat_table(source)
    if problem is None:  # (of one message, it is one)
        assert all(len(key.split()) == 6 for key in found["texts"])
    else:
        assert problem in found["problem"]
        assert found["problem"].endswith("; tok.apply_chat_template() renders it in Python.")


def test_without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jinja2.__version__", "3.1.5")
    assert "needs the package jinja2, in version 3.1.6 or newer" in chat_table("")["problem"]


# --- Ids ------------------------------------------------------------------------------------------


def with_templates(tok: cpbpe.Tokenizer, **templates: str) -> cpbpe.Tokenizer:
    spec = tok.spec
    return cpbpe.Tokenizer.from_spec(replace(spec, carried=replace(spec.carried, chat_templates=templates)))


def llama() -> cpbpe.Tokenizer:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["[INST]", "[/INST]"])
    return with_templates(tok, default=template_of("the system in the first message, and strict turns"))


def byte_level() -> cpbpe.Tokenizer:
    tok = cpbpe.Tokenizer.from_spec(made()).with_special_tokens(["<turn:user>", "</s>"])
    return with_templates(tok, default=template_of("turns"), other=template_of("thoughts"))


@in_node
@pytest.mark.parametrize("make", [llama, byte_level])
def test_ids(make: Any) -> None:
    """The ids of each part are those of `apply_chat_template`: only the template writes special tokens."""
    tok = make()
    ((found,),) = [
        json.loads(data)["models"] for data in re.findall(r'id="data">(.*?)</script>', static_page(tok))
    ]
    assert found["chats"] == json.loads(json.dumps(chats_of(tok)))
    rng = random.Random(budget.SEED)
    special = [part for token in tok.vocab.special_tokens for part in (token, token[:-2], token[1:])]
    cases = []
    for _ in range(budget.examples(40)):
        roles = ["user", "assistant"] * rng.randrange(1, 4)
        said = ("".join(rng.choices((*special, *PARTS, "Hi", "x"), k=rng.randrange(6))) + "y" for _ in roles)
        texts = (text.replace("</think>", "") for text in said)
        cases.append([{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)])
    with nodes.started() as node:
        node.load(decompress(b64decode(found["file"])))
        rows = node.ask(
            """return cases.map((messages) => {
              const parts = cpbpe.chat(table, messages, true);
              return [parts, cpbpe.chatTokens(models.model, parts)];
            });""",
            table=found["chats"]["default"],
            cases=cases,
        )
    for messages, (parts, answer) in zip(cases, rows, strict=True):
        chat = tok.apply_chat_template(messages, add_generation_prompt=True)
        assert "".join(part["text"] for part in parts) == chat.text
        pairs = [(id, part["message"]) for part, own in zip(parts, answer["ids"], strict=True) for id in own]
        assert sorted(pairs, key=str) == sorted(zip(chat.ids, chat.messages, strict=True), key=str), messages
        assert [id for id, _ in pairs] == chat.ids
        assert answer["whole"] == tok.encode(chat.text, allowed_special="all", **tok.file_options)


# --- The panel ------------------------------------------------------------------------------------


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_it_looks(scheme: str, opened: Opener, tmp_path: Path) -> None:
    """Everything can be read (WCAG, AA), and fits on a phone."""
    address = stored(tmp_path, {"a": llama()})
    page = opened(address, color_scheme=scheme, viewport={"width": 360, "height": 740})
    page.click("#chat summary")
    until(page, "document.querySelector('#chat-tokens .special')")
    assert page.evaluate(CONTRAST)["low"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    nameless = "all => all.filter((one) => !(one.getAttribute('aria-label') || one.labels?.length)).length"
    assert page.locator("#chat-form :is(select, textarea, input)").evaluate_all(nameless) == 0


@in_browser
def test_the_panel(opened: Opener, tmp_path: Path) -> None:
    tok = llama()
    plain = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    page = opened(stored(tmp_path, {"a": tok, "b": byte_level(), "none": plain}))
    page.click("#chat summary")
    until(page, "document.querySelectorAll('#messages li').length === 3")
    while page.locator("#messages li").count() > 1:
        page.locator("#messages [aria-label=Remove]").last.click()
    page.locator("#messages textarea").fill("Hi [INST]")
    said = len(tok.encode("Hi [INST]"))
    assert page.inner_text("#messages output") == f"{said} tokens"
    assert page.locator("#chat-tokens .special").all_inner_texts() == ["<s>", "[INST]", "[/INST]"]
    assert page.inner_text("#chat-counts").startswith(f"{said + 3} tokens, of which the template writes 3.")
    assert "As one text" in page.inner_text("#chat-counts")
    # Two more messages, of which the last one becomes the system's, and the first.
    page.click("#chat-add")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.keyboard.type("Yes.")
    page.click("#chat-add")
    page.keyboard.type("Be brief.")
    page.locator("#messages select").last.select_option("system")
    assert "turns must alternate" in page.inner_text("#chat-counts")
    assert page.locator("#chat-tokens .symbol").count() == 0
    page.locator("#messages [aria-label='Move up']").last.click()
    page.keyboard.press("Enter")  # the button has moved with its message, and is still in focus
    assert (
        page.locator("#messages textarea").evaluate_all("all => all.map(one => one.value)")[0] == "Be brief."
    )
    drawn = page.locator("#chat-tokens .symbol").all_text_contents()
    assert "[INST]" in drawn
    roles, texts = ("system", "user", "assistant"), ("Be brief.", "Hi [INST]", "Yes.")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    chat = tok.apply_chat_template(messages, add_generation_prompt=True)
    counts = [f"{chat.messages.count(number)} tokens" for number in range(3)]
    assert page.locator("#messages output").all_inner_texts() == counts
    # Another template of another model, and a model without one.
    page.select_option("#which", "1")
    assert page.locator("#chat-name option").all_inner_texts() == ["default", "other"]
    before = page.inner_text("#chat-counts")
    page.select_option("#chat-name", "other")
    assert page.inner_text("#chat-counts") != before
    page.uncheck("#chat-prompt")
    page.select_option("#which", "2")
    assert page.inner_text("#chat-problem") == "This model has no chat template."
    assert not page.is_visible("#messages")
    # A model that was dropped on the page: its template is a program, which is not run.
    path = tmp_path / "dropped.model"
    path.write_bytes(with_templates(tok, default="{{ messages }}").to_bytes())
    page.set_input_files("#files", path)
    until(page, "document.getElementById('which').options.length === 4")
    page.select_option("#which", "3")
    assert "is a program, which is not run here" in page.inner_text("#chat-problem")
