"""Chat templates in the styles of well-known models, and folders of transformers that have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cpbpe

CORPUS = [
    "the cat sat on the mat and the hat of the cat was acute",
    "user assistant system: hello, how are you today?\n\nfine",
    "a b c d e f [INST] [/INST] <|x|> </s>",
    "élan the fever of the cat 日本 日本",
] * 8
RULES: dict[str, Any] = {
    "byte_fallback": True,
    "character_coverage": 1.0,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}

CHATML = """\
{%- for turn in messages %}
{{- '<|im_start|>' + turn.role + '\\n' + turn['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA_2 = """\
{%- set system = '' %}
{%- if messages[0]['role'] == 'system' %}
{%- set system = '<<SYS>>\\n' ~ messages[0]['content'] ~ '\\n<</SYS>>\\n\\n' %}
{%- set messages = messages[1:] %}
{%- endif %}
{%- for turn in messages %}
{%- if (turn.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('user and assistant take turns') }}
{%- endif %}
{%- if turn.role == 'user' %}
{%- set said = system + turn.content if loop.first else turn.content %}
{{- bos_token + '[INST] ' + said.strip() + ' [/INST]' }}
{%- else %}{{ ' ' + turn.content.strip() + ' ' + eos_token }}{% endif %}
{%- endfor %}"""

MISTRAL = """\
{{- bos_token }}
{%- for turn in messages %}
{%- if turn.role == 'user' %}
{%- if tools and loop.last %}{{ '[TOOLS] ' ~ tools | tojson ~ '[/TOOLS]' }}{% endif %}
{{- '[INST] ' ~ turn.content ~ '[/INST]' }}
{%- elif turn.role == 'assistant' %}{{ ' ' ~ turn.content | trim ~ eos_token }}
{%- else %}{{ raise_exception('no ' ~ turn.role) }}
{%- endif %}
{%- endfor %}"""

LLAMA_3 = """\
{{- bos_token }}
{%- macro header(role) %}{{ '<|start_header_id|>' ~ role ~ '<|end_header_id|>\\n\\n' }}{% endmacro %}
{%- if tools is not none and tools %}
{{- header('system') }}Today is {{ strftime_now('%d %b %Y') }}.
{% for tool in tools %}{{ tool | tojson(indent=4) }}

{% endfor %}<|eot_id|>
{%- endif %}
{%- for turn in messages %}
{%- if turn.content is string %}{% set said = turn.content %}
{%- else %}
{%- set said %}
{%- for part in turn.content %}{{ part.text if part.type == 'text' else '<image>' }}{% endfor %}
{%- endset %}
{%- endif %}
{{- header(turn.role) + said | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ header('assistant') }}{% endif %}"""

GEMMA = """\
{{ bos_token }}
{%- for turn in messages %}
{%- set role = 'model' if turn.role == 'assistant' else turn.role %}
<start_of_turn>{{ role }}
{{ turn.content | trim }}<end_of_turn>
{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}"""

QWEN = """\
{%- set ns = namespace(last=-1) %}
{%- for turn in messages %}
{%- if turn.role == 'user' and not turn.content.startswith('<tool_response>') %}
{%- set ns.last = loop.index0 %}
{%- endif %}
{%- endfor %}
{%- for turn in messages %}
{%- set said = turn.content if turn.content is string else '' %}
{%- if turn.role == 'assistant' %}
{%- set thought = '' %}
{%- if '</think>' in said %}
{%- set thought = said.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
{%- set said = said.split('</think>')[-1].lstrip('\\n') %}
{%- endif %}
{{- '<|im_start|>assistant\\n' }}
{%- if loop.index0 > ns.last and thought %}
{{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}
{%- endif %}
{{- said }}
{%- for call in turn.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif turn.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + said + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}{{ '<|im_start|>' + turn.role + '\\n' + said + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}"""

PHI = """\
{%- for turn in messages %}
{{- '<|' + turn['role'] + '|>' + '\\n' + turn['content'] + '<|end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"""

GENERATION = """\
{%- for turn in messages %}
{{- '<|im_start|>' ~ turn.role ~ '\\n' }}
{%- if turn.role == 'assistant' %}{% generation %}{{ turn.content ~ '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ turn.content ~ '<|im_end|>' }}{% endif %}
{{- '\\n' }}
{%- endfor %}"""


class Style(NamedTuple):
    """A template with the tokens that it writes, and the class that has it."""

    template: str
    base: str
    options: dict[str, Any]
    special: tuple[str, ...]
    plain: tuple[str, ...] = ()
    flags: dict[str, bool] | None = None
    ends: tuple[str, ...] = ()
    """The tokens that end a turn."""


IM = ("<|im_start|>", "<|im_end|>")
HEADERS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
TURNS = ("<start_of_turn>", "<end_of_turn>")
PHI_TOKENS = ("<|user|>", "<|assistant|>", "<|system|>", "<|end|>")
TOOLS = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "</tool_response>")
STYLES = {
    "chatml": Style(CHATML, "qwen", {}, IM, ends=IM[1:]),
    "chatml-llama": Style(CHATML, "llama", {"legacy": False}, IM, ends=IM[1:]),
    "normalized": Style(CHATML, "llama", {"legacy": True}, IM, flags={"normalized": True}, ends=IM[1:]),
    "llama-2": Style(LLAMA_2, "llama", {"legacy": True}, (), ends=("</s>",)),
    "mistral": Style(MISTRAL, "llama", {"legacy": False}, ("[INST]", "[/INST]"), ends=("</s>",)),
    "llama-3": Style(LLAMA_3, "qwen", {"bos_token": "<|begin|>"}, HEADERS, ends=HEADERS[2:]),
    "gemma": Style(GEMMA, "gemma", {}, TURNS, ends=TURNS[1:]),
    "qwen": Style(QWEN, "qwen", {}, IM, TOOLS, ends=IM[1:]),
    "phi": Style(PHI, "llama", {"legacy": False}, PHI_TOKENS, flags={"rstrip": True}, ends=("<|end|>",)),
    "generation": Style(GENERATION, "qwen", {}, IM, ends=IM[1:]),
}
"""Own templates, in the styles of the models that their names say."""

_CLASSES = {"qwen": "Qwen2TokenizerFast", "llama": "LlamaTokenizerFast", "gemma": "GemmaTokenizerFast"}


def _trained(base: str, folder: Path) -> Callable[[Any, dict[str, Any]], Any]:
    """Train a small model, and return what makes a tokenizer of a class and options."""
    if base == "qwen":
        made = cpbpe.train(CORPUS, preset="gpt4", pattern="gpt2", vocab_size=300)
        made.tokenizer.save(folder / "vocab.json")
        return lambda cls, options: cls(str(folder / "vocab.json"), str(folder / "merges.txt"), **options)
    gemma: dict[str, Any] = {"bos_id": 2, "bos_piece": "<bos>", "eos_id": 1, "eos_piece": "<eos>"}
    gemma |= {"pad_id": 0, "unk_id": 3, "add_dummy_prefix": False}
    own = gemma if base == "gemma" else {}
    cpbpe.train(CORPUS, vocab_size=350, **own, **RULES).tokenizer.save(folder / "tokenizer.model")
    return lambda cls, options: cls.from_pretrained(str(folder), **options)


def saved(style: Style, folder: Path) -> Any:
    """Save a folder, and return what transformers makes of it."""
    import transformers

    source = folder / "source"
    source.mkdir(parents=True)
    made = _trained(style.base, source)(getattr(transformers, _CLASSES[style.base]), style.options)
    token, flags = transformers.AddedToken, {"normalized": False, **(style.flags or {})}
    made.add_tokens([token(text, special=True, **flags) for text in style.special])
    made.add_tokens([token(text, special=False, normalized=False) for text in style.plain])
    made.chat_template = style.template
    made.save_pretrained(str(folder / "saved"))
    return transformers.AutoTokenizer.from_pretrained(str(folder / "saved"))
