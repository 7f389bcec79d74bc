"""What the files beside a model say, in the order of precedence of transformers 4 and 5.

For tokens, that is `added_tokens_decoder` in tokenizer_config.json; only without it, special_tokens_map.json
and added_tokens.json. A tokenizer.json adds its own. For bos and eos around texts, a tokenizer.json comes
first, as in transformers 5. For chat templates, files named .jinja come first, and hide all others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cpbpe.errors import ModelError
from cpbpe.lazy import imported
from cpbpe.model.formats.folder.json_head import json_head

CONFIG = "tokenizer_config.json"
TOKENS = "special_tokens_map.json"
ADDED = "added_tokens.json"
TOKENIZER = "tokenizer.json"
GENERATION = "generation_config.json"
TEMPLATE = "chat_template.jinja"
TEMPLATES = "additional_chat_templates"
OLD_TEMPLATE = "chat_template.json"

NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""The parts that transformers knows, in the order in which it adds their tokens."""
_SUFFIX = "_token"
_LISTS = ("additional_special_tokens", "extra_special_tokens")
_SWITCHES = ("add_bos_token", "add_eos_token", "legacy", "add_prefix_space")
_KNOWN = {
    *_SWITCHES,
    *_LISTS,
    *(
        "added_tokens_decoder",
        "chat_template",
        "sp_model_kwargs",
        "tokenizer_class",
        "backend",
        "name_or_path",
    ),
    *("special_tokens_map_file", "tokenizer_file", "vocab_file", "is_local", "local_files_only", "use_fast"),
    *("transformers_version", "_commit_hash", "name_or_path"),
}
"""What is kept, and what says nothing about tokens."""
_DEFAULTS = {
    **dict.fromkeys(("clean_up_tokenization_spaces", "spaces_between_special_tokens"), False),
    **dict.fromkeys(("use_default_system_prompt", "split_special_tokens"), False),
    **dict.fromkeys(("padding_side", "truncation_side"), "right"),
    "init_inputs": [],
}
"""What goes without saying."""
_MOST_DIGITS = 10
_HUGE = 10**15
"""A length that means: no limit."""


@dataclass
class Beside:
    """What the files beside a model say."""

    tokens: dict[int, str] = field(default_factory=dict)
    """Tokens by their ids: added ones, and pieces that are called special."""
    roles: dict[str, str] = field(default_factory=dict)
    """Which token has which part."""
    extra: dict[str, None] = field(default_factory=dict)
    """Other special tokens, which may have no ids yet."""
    options: dict[str, bool] = field(default_factory=dict)
    """The options of encoding that the files ask for, whether or not they are the usual ones."""
    prefix_space: bool | None = None
    """Whether the model has a dummy prefix, if that is said."""
    chat_templates: dict[str, str] = field(default_factory=dict)
    """The templates of conversations, by name."""
    is_legacy_lost: bool = False
    """See `is_legacy_lost`."""
    tokenizer_class: str = ""
    """The class of transformers that the folder is for, if it is said."""
    flags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The flags of tokens, as `Carried.tokens` has them."""
    stops: list[int] = field(default_factory=list)
    """The ids that end what is generated."""
    notes: list[str] = field(default_factory=list)
    """What cannot be kept."""


def read_beside(folder: str, main: str) -> Beside:
    """What the files of a folder say beside its model, the file `main`. Those that are missing say nothing.

    A ModelError has the name of a file that cannot be read, and says what is wrong with it.
    """
    found = Beside()
    config = _object(folder, CONFIG)
    # 1. Tokens, and which part each has.
    _read_config(found, config, f"{os.path.join(folder, CONFIG)}: ")
    if "added_tokens_decoder" not in config:
        _read_legacy(found, folder)
    # 2. What goes around texts, and in front of them.
    _read_switches(found, config, os.path.join(folder, CONFIG))
    if main != TOKENIZER:
        _read_tokenizer_json(found, folder)
    # 3. Everything else.
    _read_templates(found, folder, config)
    if isinstance(name := config.get("tokenizer_class"), str):
        found.tokenizer_class = name
    generation = _object(folder, GENERATION)
    where = os.path.join(folder, GENERATION)
    ends = generation.get("eos_token_id")
    for id in ends if isinstance(ends, list) else [] if ends is None else [ends]:
        if type(id) is not int:
            _wrong(where, f"eos_token_id must be an id or a list of ids, not {_shown(ends)}")
        found.stops.append(id)
    _note_the_rest(found, config)
    return found


# --- Tokens ---------------------------------------------------------------------------------------


def _read_config(found: Beside, config: Mapping[str, Any], where: str) -> None:
    name = where.removesuffix(": ")
    given = config.get("added_tokens_decoder")
    if given is not None and not isinstance(given, dict):
        _wrong(name, f"added_tokens_decoder must be an object, not {_shown(given)}")
    for key, token in (given or {}).items():
        if not key.isdecimal() or not key.isascii() or len(key) > _MOST_DIGITS:
            _wrong(name, f"added_tokens_decoder has the key {_shown(key)}, which is no id")
        _add(found, int(key), token, f"added_tokens_decoder[{key!r}]", name)
    _read_named(found, config, name)


def _read_named(found: Beside, content: Mapping[str, Any], name: str) -> None:
    """The members that name a token, and the lists of tokens."""
    for key, token in content.items():
        role = key.removesuffix(_SUFFIX)
        if role != key and not isinstance(token, bool) and key not in _SWITCHES:
            if token is None:
                found.roles.pop(role, None)
            elif isinstance(token, (str, dict)):
                text = _content(token, key, name)
                found.roles[_checked(role, f"the name {_shown(key)}", name)] = text
                _keep_flags(found, token, text, name)
    for key in _LISTS:
        given = content.get(key)
        if isinstance(given, dict):
            for role, token in given.items():
                role = role.removesuffix(_SUFFIX)
                if f"{role}{_SUFFIX}" in _SWITCHES:
                    _wrong(name, f"{key} calls a token {_shown(role)}, which is the name of a setting")
                _checked(role, f"the name {_shown(role)}", name)
                found.roles[role] = _content(token, f"{key}[{role!r}]", name)
        elif isinstance(given, list):
            for place, token in enumerate(given):
                text = _content(token, f"{key}[{place}]", name)
                found.extra[text] = None
                _keep_flags(found, token, text, name)
        elif given is not None:
            _wrong(name, f"{key} must be a list, not {_shown(given)}")


def _read_legacy(found: Beside, folder: str) -> None:
    """The files that transformers reads if tokenizer_config.json does not list the tokens."""
    _read_named(found, _object(folder, TOKENS), os.path.join(folder, TOKENS))
    where = os.path.join(folder, ADDED)
    for text, id in _object(folder, ADDED).items():
        if type(id) is not int or id < 0:
            _wrong(where, f"the id of {_shown(text)} must be a number from 0, not {_shown(id)}")
        _add(found, id, text, _shown(text), where)


def _add(found: Beside, id: int, token: Any, what: str, name: str) -> None:
    text = _content(token, what, name)
    if id in found.tokens and found.tokens[id] != text:
        found.notes.append(f"the id {id} is {found.tokens[id]!r} in one file, and {text!r} in another")
        return
    found.tokens[id] = text
    if isinstance(token, dict):
        found.flags[text] = _flags(token, name)


def _keep_flags(found: Beside, token: Any, text: str, name: str) -> None:
    """The flags of a token that is called special, unless those of its id are known, which come first."""
    if isinstance(token, dict):
        found.flags.setdefault(text, _flags({**token, "special": True}, name))


def _flags(token: dict[str, Any], name: str) -> tuple[str, ...]:
    """Flags as the class of transformers understands them that is built on sentencepiece."""
    special = imported("cpbpe.model.formats.tokenizer_json.special")
    try:
        flags: tuple[str, ...] = special.flags_of(token, None)
    except ModelError as error:
        _wrong(name, str(error).partition(": ")[2])
    return flags


def _content(token: Any, what: str, name: str) -> str:
    """The text of a token, which may be an object with more about it."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str) or not text:
        _wrong(name, f"{what} must be a token, and is {_shown(token)}")
    _checked(text, f"{what}, {_shown(text)},", name)
    return text.removeprefix("\0") or text  # see `names` of tokenizer_json


def _checked(text: str, what: str, name: str) -> str:
    """A text that a file of ours can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        _wrong(name, f"{what} holds half of a surrogate pair, which is no text")
    return text


# --- Options --------------------------------------------------------------------------------------


def _read_switches(found: Beside, config: Mapping[str, Any], name: str) -> None:
    for key in _SWITCHES:
        if not isinstance(config.get(key), (bool, type(None))):
            _wrong(name, f"{key} must be true, false or null, not {_shown(config[key])}")
    for end in ("bos", "eos"):
        if (wanted := config.get(f"add_{end}_token")) is not None:
            found.options[f"add_{end}"] = wanted
    if config.get("legacy") is False:
        found.options["prefix_after_special"] = False
    found.is_legacy_lost = is_legacy_lost(config)
    found.prefix_space = config.get("add_prefix_space")
    if (arguments := config.get("sp_model_kwargs")) not in (None, {}):
        found.notes.append(f"{CONFIG} asks sentencepiece for {_shown(arguments)}, which is not done here")


def is_legacy_lost(config: Mapping[str, Any]) -> bool:
    """Whether transformers 5 puts no prefix after a special token, whatever the tokenizer.json says.

    Its class for Llama makes the pre-tokenizer anew from the option `legacy`, which it does not save.
    """
    name = config.get("tokenizer_class")
    is_llama = name in ("LlamaTokenizer", "LlamaTokenizerFast")
    return is_llama and config.get("backend") == "tokenizers" and not config.get("legacy")


def _read_tokenizer_json(found: Beside, folder: str) -> None:
    """The tokens of a tokenizer.json beside the model, and what it puts around texts."""
    path = os.path.join(folder, TOKENIZER)
    try:
        with open(path, "rb") as file:
            head = json_head(file)
    except FileNotFoundError:
        return
    except (ValueError, UnicodeDecodeError) as error:
        _wrong(path, f"it is not valid JSON ({error}); copy or download it again, or remove it")
    tokens = head.get("added_tokens")
    ids: dict[str, int] = {}
    for place, token in enumerate(tokens if isinstance(tokens, list) else []):
        id = token.get("id") if isinstance(token, dict) else None
        if type(id) is not int or id < 0:
            _wrong(path, f"added_tokens[{place}] must be an object with an id, and is {_shown(token)}")
        _add(found, id, token, f"added_tokens[{place}]", path)
        ids[token["content"]] = id
    processor = head.get("post_processor")
    special = imported("cpbpe.model.formats.tokenizer_json.special")
    try:
        ends = special.ends_of(processor, ids) if isinstance(processor, (dict, type(None))) else None
    except ModelError as error:
        _wrong(path, str(error).partition(": ")[2])
    if ends is None:
        found.notes.append(
            f"what {TOKENIZER} puts around texts is more than one token in front and at the end"
        )
        return
    for option, end in zip(("add_bos", "add_eos"), ends, strict=True):
        wanted = end is not None
        if found.options.get(option, wanted) != wanted:
            found.notes.append(
                f"{CONFIG} says {option}_token={found.options[option]}, and {TOKENIZER}, which "
                f"transformers 5 follows, {'adds' if wanted else 'does not add'} it"
            )
        found.options[option] = wanted


# --- Chat templates -------------------------------------------------------------------------------


def _read_templates(found: Beside, folder: str, config: Mapping[str, Any]) -> None:
    files = {name: _text(path) for name, path in _template_files(folder)}
    if files:
        found.chat_templates = files
        return
    for name, given in ((CONFIG, config), (OLD_TEMPLATE, _object(folder, OLD_TEMPLATE))):
        template = given.get("chat_template")
        if template is not None:
            found.chat_templates = dict(_templates(template, os.path.join(folder, name)))
            return


def _template_files(folder: str) -> Iterator[tuple[str, str]]:
    path = os.path.join(folder, TEMPLATE)
    if os.path.isfile(path):
        yield "default", path
    others = os.path.join(folder, TEMPLATES)
    if os.path.isdir(others):
        for name in sorted(os.listdir(others)):
            if name.endswith(".jinja"):
                yield name.removesuffix(".jinja"), os.path.join(others, name)


def _templates(given: Any, where: str) -> Iterator[tuple[str, str]]:
    """The templates in a member: one, an object of them, or a list of objects with names."""
    if isinstance(given, str):
        yield "default", _checked(given, "chat_template", where)
        return
    items: Iterable[tuple[Any, Any]] | None = given.items() if isinstance(given, dict) else None
    if isinstance(given, list) and all(isinstance(item, dict) for item in given):
        items = [(item.get("name"), item.get("template")) for item in given]
    if items is None:
        _wrong(where, f"chat_template must be a text or a list of named ones, not {_shown(given)}")
    for name, template in items:
        if not isinstance(name, str) or not isinstance(template, str):
            _wrong(where, f"a chat_template needs a name and a template, and {_shown(name)} has none")
        what = f"the chat_template {_shown(name)}"
        yield _checked(name, what, where), _checked(template, what, where)


# --- Files ----------------------------------------------------------------------------------------


def _note_the_rest(found: Beside, config: Mapping[str, Any]) -> None:
    """What the files say that has no place here."""
    rest = {
        key: value
        for key, value in config.items()
        if key not in _KNOWN
        and not key.endswith((_SUFFIX, "_class", "auto_map"))
        and not (key.startswith("model_max_length") and isinstance(value, (int, float)) and value > _HUGE)
        and value is not None
        and _DEFAULTS.get(key, ...) != value
    }
    if rest:
        shown = ", ".join(f"{key} ({_shown(value)})" for key, value in list(rest.items())[:4])
        more = f" and {len(rest) - 4} more" if len(rest) > 4 else ""
        found.notes.append(f"{CONFIG} also says {shown}{more}, which is not kept")


def _object(folder: str, name: str) -> dict[str, Any]:
    """The object in a file; empty if there is no such file."""
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        _wrong(path, f"byte {error.start} is not UTF-8")
    except RecursionError:
        _wrong(path, "it is nested too deeply to be read")
    except json.JSONDecodeError as error:
        _wrong(path, f"it is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})")
    except ValueError:  # newer versions of Python refuse to read such a number
        _wrong(path, "it holds a number of thousands of digits")
    if not isinstance(content, dict):
        _wrong(path, f"it must hold an object, not {_shown(content)}")
    return content


def _text(path: str) -> str:
    with open(path, "rb") as file:
        data = file.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        _wrong(path, f"byte {error.start} is not UTF-8")


def _wrong(path: str, problem: str) -> NoReturn:
    raise ModelError(f"{path}: {problem}")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= 60 else f"{text[:60]}..."
