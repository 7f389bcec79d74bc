"""Folders as transformers saves them, and what it gives for them: run by the Python that has the version.

    python tests/support/saved_folders.py MODELS OUTPUT

MODELS holds `llama.model`, `gemma.model` and the folder `qwen` (vocab.json, merges.txt). For each cell of
the matrix, OUTPUT gets a folder, and `expected.json` says what `AutoTokenizer` gives for it. Nothing but
transformers and the standard library is imported.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

FLAGS: dict[str, dict[str, bool] | None] = {
    "str": None,
    "raw": {"normalized": False},
    "normalized": {"normalized": True},
    "lstrip": {"lstrip": True},
    "rstrip": {"rstrip": True},
    "single_word": {"single_word": True},
    "raw-all": {"normalized": False, "lstrip": True, "rstrip": True, "single_word": True},
    "special": {"special": True},
    "special-spaces": {"special": True, "lstrip": True, "rstrip": True},
    "special-normalized": {"special": True, "normalized": True},
}
"""What an added token can be."""

PHI: dict[str, list[tuple[str, dict[str, bool] | None]]] = {
    "phi-3": [
        ("</s>", {"rstrip": True, "normalized": False}),
        ("<|endoftext|>", {"special": True, "normalized": False}),
        ("myocarditis", {"special": True, "rstrip": True, "normalized": False}),
        ("<tool_call>", {"special": True, "rstrip": True, "normalized": False}),
    ],
    "phi-2": [
        ("<|endoftext|>", {"special": True, "normalized": False}),
        *((" " * count, {"normalized": True}) for count in range(5, 1, -1)),
        *(("\t" * count, {"normalized": True}) for count in range(3, 1, -1)),
        ("<tool_call>", {}),
    ],
}
"""The tokens that published folders add like this: ends of turns that take the space after them; runs."""

TOKENS = ("myocarditis", "<tool_call>")
"""A word and a mark, to which a cell gives flags."""

TEXTS = (
    "",
    " ",
    "the cat",
    " the cat  sat ",
    "myocarditis",
    "acute myocarditis and fever",
    "myocarditisx xmyocarditis, myocarditis.",
    "the\tmyocarditis\nthe  myocarditis  cat",
    "<tool_call>",
    "the<tool_call>cat <tool_call> sat<tool_call>",
    "  <tool_call>  <tool_call>the",
    "<tool_call>myocarditis <tool_call> myocarditis",
    "a</s>b",
    "</s> the </s>cat<s> <s>",
    "the <tool_call></s> myocarditis</s>myocarditis",
    "élan myocarditisé e\u0301 <tool_call>\u0338 the\u0301 myocarditis e\u0301",
    "日本 myocarditis 日本<tool_call>日本",
    "the ▁myocarditis▁<tool_call>▁cat",
    "🦙<tool_call>🦙 myocarditis🦙",
    "the  cat   sat\t\ton      the\t\t\t\tmat  ",
    "the<|endoftext|> </s> \n <tool_call> \n the",
)
_RAW = {"normalized": False}
_WORD = {"single_word": True}
_NO_PREFIX = {"legacy": False, "add_prefix_space": False}
ODD: list[tuple[str, str, dict[str, Any], list[tuple[str, dict[str, bool]]], list[str]]] = [
    ("GemmaTokenizerFast", "gemma", {}, [("m", _WORD)], ["mm", "m m"]),
    ("LlamaTokenizerFast", "llama", {"legacy": False}, [("m", _WORD)], ["mm"]),
    ("LlamaTokenizerFast", "llama", _NO_PREFIX, [("ut", {}), ("acute", _WORD)], ["theacutecat"]),
    ("GemmaTokenizerFast", "gemma", {}, [("ut", {}), ("acute", _WORD)], ["theacutecat", "acute"]),
    ("GemmaTokenizerFast", "gemma", {}, [("ab", _RAW), ("bc", {"lstrip": True, **_RAW})], ["abc", "ab bc"]),
    ("GemmaTokenizerFast", "gemma", {}, [("bc", {"special": True, **_RAW}), ("ab", _RAW)], ["abc", "bcab"]),
    ("LlamaTokenizerFast", "llama", _NO_PREFIX, [("bc", {"special": True, **_RAW}), ("ab", _RAW)], ["abc"]),
    ("GPT2TokenizerFast", "qwen", {}, [("\n\n", {"lstrip": True, "rstrip": True, **_RAW})], ["a\n\n\n\na"]),
    (
        *("GPT2TokenizerFast", "qwen", {}),
        [("<x>", {"rstrip": True, **_RAW}), ("\n\n", {"lstrip": True, **_RAW})],
        ["<x>\n\na", "<x> \n\n<x>"],
    ),
    (
        *("GPT2TokenizerFast", "qwen", {}),
        [("<x>", {"rstrip": True, **_RAW}), ("\n", _RAW)],
        ["<x> \n a", "<x>\n\n <x>"],
    ),
    (
        *("LlamaTokenizerFast", "llama", {"legacy": False}),
        [("<x>", {"lstrip": True, **_RAW}), ("     ", {"normalized": True})],
        ["a     <x>", "a     b"],
    ),
    (
        *("GPT2TokenizerFast", "qwen", {}),
        [("<x>", {"rstrip": True, **_RAW}), ("\n", {"normalized": True})],
        ["<x>\na", "\n<x>"],
    ),
    ("PreTrainedTokenizerFast", "llamajson", {"add_prefix_space": False}, [], ["the", " the"]),
    ("PreTrainedTokenizerFast", "gemmajson", {"add_prefix_space": True}, [], ["the", " the"]),
    ("PreTrainedTokenizerFast", "llamajson", {}, [("cat", {})], ["cat", "catcat", "the cat"]),
    ("PreTrainedTokenizerFast", "llamajson", {}, [("<b>", {})], ["<b>", "a<b>"]),
    ("LlamaTokenizerFast", "llama", {"legacy": False, "add_bos_token": True}, [(" <y>", _RAW)], [" <y>"]),
    ("GemmaTokenizerFast", "gemma", {}, [("<bos>", {})], ["a", "<bos>a"]),
    ("LlamaTokenizerFast", "llama", _NO_PREFIX, [("</s>", {})], ["a</s>"]),
    ("LlamaTokenizerFast", "llama", {"clean_up_tokenization_spaces": True}, [], ["a , b . ?"]),
    ("GPT2TokenizerFast", "qwen", {}, [("<", {})], ["a<b", "<"]),
    ("PreTrainedTokenizerFast", "gemmajson", {}, [("▁the", {})], ["b▁▁the</s>", "b  the", "▁the"]),
    ("GemmaTokenizerFast", "gemma", {}, [("<", {}), ("<s>", {}), ("<t>", {"rstrip": True})], ["<s>", "<s"]),
    ("LlamaTokenizerFast", "llama", {"legacy": False}, [("fever", _WORD), ("acute", _RAW)], ["acutefever"]),
]
"""Tokens that overlap others, are pieces or take each other's spaces; and options; each with own texts."""

CHAT = [
    {"role": "user", "content": "the cat <tool_call> sat"},
    {"role": "assistant", "content": " acute myocarditis</s>"},
]
TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + eos_token }}{% endfor %}"


Cell = tuple[str, bool, Callable[[], Any], "tuple[str, ...] | list[str]"]


def cells(models: str) -> Iterator[Cell]:
    """The name of each cell, whether it is one of a class in Python, what makes its tokenizer, and texts."""
    import transformers
    from transformers import AddedToken

    def with_tokens(made: Any, name: str) -> Any:
        return adding(made, PHI.get(name) or [(text, FLAGS[name]) for text in TOKENS])

    def adding(made: Any, tokens: Any) -> Any:
        made.add_tokens([text if flags is None else AddedToken(text, **flags) for text, flags in tokens])
        return made

    def base(cls: str, source: str, options: dict[str, Any]) -> Any:
        made = getattr(transformers, cls)
        path = os.path.join(models, source)
        if source == "qwen":
            return made(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt"), **options)
        if source.endswith("json"):
            return made.from_pretrained(path, **options)
        folder = os.path.join(models, f"{source}-folder")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(f"{path}.model", os.path.join(folder, "tokenizer.model"))
        return made.from_pretrained(folder, **options)

    new = int(transformers.__version__.split(".")[0]) >= 5
    llama = [{"legacy": legacy} for legacy in (None, True, False)]
    llama = [{k: v for k, v in options.items() if v is not None} for options in llama]
    llama += [{"legacy": False, "add_prefix_space": False}, {"legacy": True, "add_eos_token": True}]
    families: list[tuple[str, str, list[dict[str, Any]]]] = [
        ("LlamaTokenizer", "llama", llama),
        ("LlamaTokenizerFast", "llama", llama),
        ("GemmaTokenizer", "gemma", [{}]),
        ("GemmaTokenizerFast", "gemma", [{}]),
        ("Qwen2Tokenizer", "qwen", [{}]),
        ("Qwen2TokenizerFast", "qwen", [{}]),
        ("TokenizersBackend" if new else "PreTrainedTokenizerFast", "llama", [{}] if new else []),
        ("CodeGenTokenizer", "qwen", [{}]),
        ("CodeGenTokenizerFast", "qwen", [{}]),
    ]
    for cls, source, all_options in families:
        for options in all_options:
            phi = ["phi-2"] if source == "qwen" else ["phi-3"] if cls.startswith("Llama") else []
            for name in phi if cls.startswith("CodeGen") else [*FLAGS, *phi]:
                shown = "-".join(f"{key}={value}" for key, value in options.items()) or "default"
                slow = not new and not cls.endswith("Fast")

                def make(
                    cls: str = cls,
                    source: str = source,
                    options: dict[str, Any] = options,
                    name: str = name,
                ) -> Any:
                    return with_tokens(base(cls, source, options), name)

                yield f"{cls}-{shown}-{name}", slow, make, TEXTS
    for number, (cls, source, options, tokens, texts) in enumerate(ODD):
        if "clean_up_tokenization_spaces" in options and not new:
            continue  # version 4 does clean up, which is left to its class

        def make_odd(
            cls: str = cls, source: str = source, options: dict[str, Any] = options, tokens: Any = tokens
        ) -> Any:
            return adding(base(cls, source, options), tokens)

        yield f"{cls}-{'-'.join(options)}-odd-{number}", False, make_odd, texts


def said_by(tokenizer: Any, texts: Any) -> dict[str, Any]:
    """What a tokenizer gives for texts."""
    rows = []
    for text in texts:
        ids = tokenizer.encode(text)
        row = {
            "text": text,
            "ids": ids,
            "bare": tokenizer.encode(text, add_special_tokens=False),
            "decoded": tokenizer.decode(ids),
            "skipped": tokenizer.decode(ids, skip_special_tokens=True),
        }
        if tokenizer.is_fast:
            both = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            row["offsets"] = both["offset_mapping"]
        rows.append(row)
    chat = tokenizer.apply_chat_template(CHAT, chat_template=TEMPLATE, tokenize=False)
    return {"rows": rows, "chat": tokenizer.encode(chat, add_special_tokens=False)}


def expect(auto: Any, folder: str, slow: bool, texts: Any) -> None:
    """Write what a folder gives. `slow`: with the class that is written in Python."""
    import tokenizers

    loaded = auto.from_pretrained(folder, **({"use_fast": False} if slow else {}))
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        said = {"slow": slow, "tokenizers": tokenizers.__version__, **said_by(loaded, texts)}
        json.dump(said, file, ensure_ascii=False)


def main(models: str, output: str) -> None:
    """Save all folders."""
    from transformers import AutoTokenizer

    for name, slow, make, texts in cells(models):
        folder = os.path.join(output, name)
        tokenizer = make()
        tokenizer.save_pretrained(folder)
        # A folder with both files is what the class built on sentencepiece makes of it. What the other class
        # makes of it is that of its tokenizer.json alone.
        both = {"tokenizer.model", "tokenizer.json"} <= {*os.listdir(folder)}
        expect(AutoTokenizer, folder, slow or both, texts)
        if both and "add_prefix_space" not in name:  # it needs the model to make the tokenizer.json anew
            alone = f"{folder}-alone"
            shutil.copytree(folder, alone, ignore=shutil.ignore_patterns("tokenizer.model", "expected.json"))
            expect(AutoTokenizer, alone, False, texts)


if __name__ == "__main__":
    sys.path.pop(0)  # where a file of ours has the name of the library `tokenizers`
    main(*sys.argv[1:])
