"""``cpbpe compare``: what the same texts cost with several models."""

from __future__ import annotations

import argparse
import os
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.cli.arguments import (
    OUT,
    add_given,
    add_reading,
    check_columns,
    documents_of,
    files_of,
    incomplete,
    load,
)
from cpbpe.cli.output import as_json, canvas, check_outputs, form_of, write_text
from cpbpe.cli.parsing import NotUnderstoodError, OneOf, Parser, refuse
from cpbpe.lazy import importing

if TYPE_CHECKING:
    from cpbpe.corpus.documents import Documents
    from cpbpe.tools.comparison import Comparison

_DESCRIPTION = """\
Compare what the same texts cost with several models: tokens for each byte,
character and word, the price beside English (with --base), the share of bytes,
how evenly tokens are used, and the time. Also what JSON, YAML and other formats
cost for the same data, numbers of 1 to 12 digits, and indented code.

A model is whatever cpbpe loads (.model, tokenizer.json, .gguf, .tiktoken, a
folder with one of these), or an encoding of another library, if that is
installed: tiktoken:cl100k_base, tokenizers:tokenizer.json,
sentencepiece:unigram.model. Everything else is a text, of the kinds that
cpbpe train takes. A name can stand before each: en=manual.txt, old=a.model.
Texts with the same name are one text.
"""

_EXAMPLES = """\
examples:
  cpbpe compare llama.model mistral.model en=manual.en.txt de=manual.de.txt \\
    --base en
  cpbpe compare tokenizer.json tiktoken:o200k_base 'texts/*.txt' -o costs.html
  cpbpe compare tokenizer.model data.jsonl --format csv > costs.csv
"""

_FORMATS = ("table", "json", "csv", "html")
_MODEL_NAMES = ("tokenizer.json", "tekken.json", "vocab.json", "tokenizer_config.json")
_MODEL_ENDINGS = (".model", ".gguf", ".tiktoken", ".vocab", ".bin")
_MODEL_JSON = re.compile(r"(tokenizer|tekken)[-_.\d].*\.json")
"""Such as tekken_240911.json and tokenizer-8k.json."""


class _Named(NamedTuple):
    """An argument: NAME=FILE, or only a file."""

    name: str | None
    path: str


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe compare MODEL [MODEL ...] TEXT [TEXT ...] [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {
            "models": "the models come first, without a name",
            "text-format": "it is --input-format",
            **{name: f"it is --format {name}" for name in ("json", "csv", "html")},
            "threads": "every library uses one thread, so that they can be compared",
        },
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="MODEL|TEXT",
        help="models and texts; the endings of files tell them apart",
    )
    parser.section("what to compare")
    parser.add("--model [NAME=]FILE", "a model, whatever it is called", action="append", default=[])
    parser.add("--text [NAME=]FILE", "a text, likewise", action="append", default=[])
    parser.add(
        "--base NAME",
        "the texts say the same in several languages, and prices are relative to this one (default: "
        "no prices)",
    )
    parser.add("--no-probes", "without formats of data, numbers and indentation")
    parser.add("--rounds N", "how often to take the time; 0: not (default: 3)", default=3)
    add_reading(parser, "Parquet, Arrow, csv or tsv")
    add_given(parser)
    parser.section("how")
    parser.add(
        "--format FORMAT",
        "table, json, csv or html (default: what the name of the file says, or table)",
        type=OneOf(_FORMATS),
    )
    parser.add("--out -o FILE", f"{OUT}; .html, .json and .csv say the format")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Compare."""
    models, texts = _models_and_texts(arguments)
    if not models:
        raise NotUnderstoodError(
            "there is no model; name one, such as tokenizer.model, or say which file is one: --model FILE"
        )
    if not texts:
        raise NotUnderstoodError(
            "there is no text; name one: cpbpe compare tokenizer.model en=manual.txt; or say which file is "
            "one: --text FILE"
        )
    if [text.path for text in texts].count("-") > 1:
        raise NotUnderstoodError("the standard input ('-') can be read only once; give it once")
    if arguments.rounds < 0:
        raise NotUnderstoodError("--rounds must be 0 or more")
    check_columns(arguments, [text.path for text in texts])
    form = form_of(arguments.out, arguments.format, _FORMATS)
    read = files_of(arguments, [given.path for given in texts])
    check_outputs([arguments.out], chain((given.path for given in models), read))
    named = _texts(arguments, texts)
    if arguments.base is not None and arguments.base not in named:
        raise NotUnderstoodError(
            f"--base must be one of the texts ({', '.join(named)}), not {arguments.base}"
        )
    if len(named) == 1:
        refuse(arguments, {"base": None}, "prices need several texts, and there is one")
    with importing:
        from cpbpe.tools.compare import compare
    loaded = _models(arguments, models)
    comparison = compare(
        loaded, named, base=arguments.base, rounds=arguments.rounds, probe=not arguments.no_probes
    )
    _write(arguments, comparison, form)
    return 0


def _models_and_texts(arguments: argparse.Namespace) -> tuple[list[_Named], list[_Named]]:
    """The models and the texts among the arguments, each with the name before it, if there is one."""
    models, texts = list(map(_split, arguments.model)), list(map(_split, arguments.text))
    for given in map(_split, arguments.files):
        if is_model(given.path):
            models.append(given)
        elif given.path.lower().endswith(".json"):
            path = given.path
            raise NotUnderstoodError(
                f"{path} may be a model or a text; say which: --model {path} or --text {path}"
            )
        else:
            texts.append(given)
    return models, texts


def _split(given: str) -> _Named:
    """Take NAME=FILE apart, unless that is the name of a file, or the = is inside a path.

    >>> _split("en=a.txt"), _split("x/lang=en/*.txt")
    (_Named(name='en', path='a.txt'), _Named(name=None, path='x/lang=en/*.txt'))
    """
    with importing:
        from cpbpe.tools.compared_models import is_of_another_library
    name, equals, path = given.partition("=")
    is_name = bool(name and path) and not {"/", os.sep} & set(name)
    if not equals or not is_name or is_of_another_library(given) or os.path.exists(given):
        return _Named(None, given)
    return _Named(name, path)


def _models(arguments: argparse.Namespace, models: list[_Named]) -> dict[str, Any]:
    """The models by name; all but those of other libraries are loaded."""
    with importing:
        from cpbpe.tools.compare import names_of
        from cpbpe.tools.compared_models import is_of_another_library
    ours = [model.path for model in models if not is_of_another_library(model.path)]
    if not ours:
        refuse(arguments, {"pattern": None, "special_token": None}, "other libraries know it")
    needing = incomplete(ours)
    others = iter(names_of([model.path for model in models if model.name is None]))
    by_name: dict[str, Any] = {}
    for name, path in models:
        key = next(others) if name is None else name
        if key in by_name:
            raise NotUnderstoodError(f"two models are called {key}; give each a name: NAME=FILE")
        by_name[key] = _loaded(arguments, path, path not in needing)
    return by_name


def _loaded(arguments: argparse.Namespace, path: str, plain: bool) -> Any:
    """A model, loaded; of another library, only its name."""
    with importing:
        from cpbpe.tools.compared_models import is_of_another_library, way_out
    if is_of_another_library(path):
        return path
    try:
        return load(arguments, path, plain=plain)
    except ValueError as error:
        raise ValueError(f"{error}{way_out(path, error)}") from error


def is_model(name: str) -> bool:
    """Whether an argument is a model: by its ending, the library named before it, or what is in the folder.

    >>> [is_model(name) for name in ("a/tokenizer.json", "tiktoken:gpt2", "records.json", "en=a.txt")]
    [True, True, False, False]
    """
    with importing:
        from cpbpe.tools.compared_models import is_of_another_library
    if is_of_another_library(name):
        return True
    base = os.path.basename(name)
    if base in _MODEL_NAMES or base.endswith(_MODEL_ENDINGS) or _MODEL_JSON.fullmatch(base):
        return True
    if os.path.isdir(name):
        return any(entry in _MODEL_NAMES or entry == "tokenizer.model" for entry in os.listdir(name))
    return False


def _texts(arguments: argparse.Namespace, texts: list[_Named]) -> dict[str, Documents]:
    """The texts by name: the given one, or else that of the file without its endings.

    Files with the same given name are one text.
    """
    short = [_name_of(text) for text in texts]
    paths: dict[str, list[str]] = {}
    for text in texts:
        name = _name_of(text)
        key = name if text.name is not None or short.count(name) == 1 else text.path
        if text.name is None and key in paths:
            raise NotUnderstoodError(f"two texts are called {key}; give each a name: NAME=FILE")
        paths.setdefault(key, []).append(text.path)
    return {key: documents_of(arguments, files) for key, files in paths.items()}


def _name_of(text: _Named) -> str:
    file = os.path.basename(text.path.rstrip("/" + os.sep))
    return text.name or file.partition(".")[0] or text.path


def _write(arguments: argparse.Namespace, comparison: Comparison, form: str) -> None:
    if form in ("json", "csv"):
        text = as_json(comparison.to_dict()) + "\n" if form == "json" else comparison.to_csv()
    else:
        page = canvas(arguments.out, form)
        comparison.draw(page)
        text = page.document()
    write_text(arguments.out, [text])
