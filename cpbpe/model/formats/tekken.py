"""`tekken.json`: the byte-level vocabularies of Mistral's newer models, as mistral-common has them.

    {"config": {"pattern": "...", "default_vocab_size": 131072, "default_num_special_tokens": 1000, ...},
     "vocab": [{"rank": 0, "token_bytes": "AA==", "token_str": "..."}, ...],
     "special_tokens": [{"rank": 0, "token_str": "<unk>", "is_control": true}, ...]}

Special tokens have the first ids, so the id of a piece is its rank plus the number of special tokens. Their
list may be shorter than this number: the others are called `<SPECIAL_20>` and so on. Files up to version v7
may have no list, because all models had the same tokens. The vocabulary may have more pieces than are used.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cpbpe.errors import ConversionError
from cpbpe.model.byte_level import AS_IT_IS, of_ranks, tiktoken_splitter
from cpbpe.model.formats.json_file import JsonFile, as_json
from cpbpe.model.formats.values import TO_WRITE, ReadModel, Written, refuse, unlike
from cpbpe.model.spec import ModelSpec, Pieces, PieceType
from cpbpe.text.split_patterns import name_of
from cpbpe.text.utf8 import valid_text

_WITHOUT_LIST = ("v1", "v2", "v3", "v7")
VERSIONS = (*_WITHOUT_LIST, "v11", "v13", "v15")
"""The known versions. The version decides how conversations are written, but not which ids a text gets."""

_USUAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]"),
    *("[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
"""The special tokens of files without a list."""
_FILLER = "<SPECIAL_%d>"
_MEMBERS = frozenset(
    {"config", "vocab", "special_tokens", "image", "audio", "multimodal", "version", "type"}
    | {"model_settings_builder"}
)
_OF_CONFIG = frozenset(
    {"pattern", "num_vocab_tokens", "default_vocab_size", "default_num_special_tokens", "version"}
)
_MOST = 1 << 24
"""More ids than any vocabulary has."""
_MOST_SPECIAL = 1 << 16
"""More special tokens than any vocabulary has. (A file need not list them, so its size sets no limit.)"""


_FILE = JsonFile("this tekken.json cannot be read", as_json)
_wrong, _shown = _FILE.wrong, _FILE.shown


# --- Reading --------------------------------------------------------------------------------------


def read(data: bytes, *, allow_differences: bool = False) -> ReadModel:
    """Return the model in a file."""
    content = _FILE.parsed(data)
    # 1. The members, and the version.
    config = content.get("config")
    if not isinstance(config, dict):
        _wrong("it has no config")
    for names, known, where in ((content, _MEMBERS, ""), (config, _OF_CONFIG, "config.")):
        if unknown := sorted(names.keys() - known):
            _wrong(f"it has {where}{unknown[0]}, which no known version has, so nobody knows what it changes")
    version = config.get("version")
    if version not in VERSIONS:
        _wrong(f"its version is {_shown(version)}, and those that are known are {', '.join(VERSIONS)}")
    # 2. The pieces: special tokens come first.
    size = _number(config, "default_vocab_size")
    count = _number(config, "default_num_special_tokens")
    if count > min(size, _MOST_SPECIAL):
        _wrong(f"of {size} ids {count} are special tokens")
    special = _special_tokens(content.get("special_tokens"), count, version)
    vocab = content.get("vocab")
    if not isinstance(vocab, list) or len(vocab) < size - count:
        found = f"{len(vocab)} entries" if isinstance(vocab, list) else "none"
        _wrong(f"its vocab must have {size - count} entries, and has {found}")
    ranks = list(_pieces(vocab[: size - count]))
    texts = [token.encode() for token, _ in special] + ranks
    scores = [0.0] * count + [float(-rank) for rank in range(len(ranks))]
    types = [PieceType.CONTROL] * count + [PieceType.NORMAL] * len(ranks)
    pattern = config.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        _wrong(f"its pattern must be a regular expression, not {_shown(pattern)}")
    spec = ModelSpec(
        pieces=Pieces.of_lists(texts, scores, types),
        normalizer=AS_IT_IS,
        alphabet="bytes",
        splitter=tiktoken_splitter(pattern),
        whole=True,
    )
    notes = (*_notes(content, special, len(vocab) - len(ranks)), *_left_out(pattern))
    return ReadModel(spec, notes=notes)


def _special_tokens(given: Any, count: int, version: str) -> list[tuple[str, bool]]:
    """Return the special tokens by id, each with its `is_control`."""
    if given is None:
        if version not in _WITHOUT_LIST:
            _wrong(f"it has no special_tokens, which files of version {version} have")
        given = [{"rank": id, "token_str": token, "is_control": True} for id, token in enumerate(_USUAL)]
        if len(given) > count:
            _wrong(
                f"it has no special_tokens, and default_num_special_tokens is {count}; the usual ones are "
                f"{len(given)}"
            )
    if not isinstance(given, list) or len(given) > count:
        _wrong(f"its special_tokens must be a list of up to {count}")
    tokens: list[tuple[str, bool]] = []
    for place, row in enumerate(given):
        where = f"special_tokens[{place}]"
        if not isinstance(row, dict) or row.keys() != {"rank", "token_str", "is_control"}:
            _wrong(f"{where} must have rank, token_str and is_control, and nothing else")
        token, control = row["token_str"], row["is_control"]
        if type(row["rank"]) is not int or row["rank"] != place:
            _wrong(f"the rank of {where} must be {place}, not {_shown(row['rank'])}")
        if not isinstance(token, str) or not token or type(control) is not bool:
            _wrong(f"{where} must have a text as token_str, and is_control true or false")
        tokens.append((_FILE.valid(token, where), control))
    tokens += ((_FILLER % id, True) for id in range(len(tokens), count))
    names = [token for token, _ in tokens]
    if len(set(names)) < len(names):
        [(twice, _)] = Counter(names).most_common(1)
        _wrong(f"the special token {twice!r} occurs twice")
    return tokens


def _pieces(vocab: list[Any]) -> Iterator[bytes]:
    """Yield the bytes of the pieces in the order of their ranks."""
    for rank, row in enumerate(vocab):
        if not isinstance(row, dict) or row.keys() != {"rank", "token_bytes", "token_str"}:
            _wrong(f"vocab[{rank}] must have rank, token_bytes and token_str, and nothing else")
        if type(row["rank"]) is not int or row["rank"] != rank:
            _wrong(f"the rank of vocab[{rank}] must be {rank}, not {_shown(row['rank'])}")
        try:
            piece = b64decode(row["token_bytes"].encode("ascii"), validate=True)
        except (AttributeError, ValueError):
            shown = _shown(row["token_bytes"])
            _wrong(f"the token_bytes of vocab[{rank}] are not base64: {shown}")
        text = row["token_str"]
        if not piece or (rank < 256 and piece != bytes([rank])):
            _wrong(f"vocab[{rank}] must be {'the byte ' + str(rank) if rank < 256 else 'a piece'}")
        if text is not None and (not isinstance(text, str) or text.encode(errors="surrogatepass") != piece):
            _wrong(f"the token_str of vocab[{rank}], {_shown(text)}, is not what its bytes say")
        yield piece


def _number(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if type(value) is not int or not 0 <= value < _MOST:
        _wrong(f"config.{name} must be a number of ids, not {_shown(value)}")
    return value


def _notes(content: Mapping[str, Any], special: list[tuple[str, bool]], unused: int) -> Iterator[str]:
    version = content["config"]["version"]
    yield f"the file's version, {version}, which decides how conversations are written, is not kept"
    if unused:
        yield f"the last {unused} entries of its vocab are beyond default_vocab_size, and not used"
    for member in ("image", "multimodal", "audio", "model_settings_builder"):
        if content.get(member):
            yield f"{member} is not kept: it is not about text"
    shown = [token for token, control in special if not control]
    if shown:
        yield f"special tokens that are not for control, such as {shown[0]!r}, are CONTROL pieces, too"


def _left_out(pattern: str) -> Iterator[str]:
    """Yield what differs with a pattern that may leave out parts of a text. (The published ones never do.)"""
    if not name_of(pattern):
        yield (
            "text that its pattern leaves out, if there is any, is dropped by mistral-common; here it is a "
            "chunk of its own"
        )


# --- Writing --------------------------------------------------------------------------------------


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return the file of a byte-level model whose special tokens come before its pieces."""
    if spec.alphabet != "bytes" or spec.splitter is None:
        raise ConversionError("a tekken.json holds a byte-level model with a pattern, and this is none")
    types = spec.pieces.types
    count = next((id for id, type in enumerate(types) if type != PieceType.CONTROL), len(types))
    if any(type != PieceType.NORMAL for type in types[count:]) or spec.added:
        raise ConversionError(
            "in a tekken.json all special tokens come before the pieces, and this model has others"
        )
    ranks = spec.pieces.texts[count:]
    single = [bytes([byte]) for byte in range(256)]
    if list(ranks[:256]) != single:
        raise ConversionError(
            "in a tekken.json the first 256 pieces are the bytes from 0 to 255, and in this model they are "
            "not in this order"
        )
    differences = list(of_ranks(spec, count, "mistral-common"))
    refuse(differences, allow_differences, "there is no tekken.json that is exactly this model", TO_WRITE)
    try:
        special = [token.decode() for token in spec.pieces.texts[:count]]
    except UnicodeDecodeError:
        raise ConversionError("a special token of this model is not UTF-8, and JSON is") from None
    content = {
        "config": {
            "pattern": spec.splitter.pattern,
            "num_vocab_tokens": len(ranks),
            "default_vocab_size": len(types),
            "default_num_special_tokens": count,
            "version": "v7",
        },
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(piece).decode(), "token_str": valid_text(piece)}
            for rank, piece in enumerate(ranks)
        ],
        "special_tokens": [
            {"rank": id, "token_str": token, "is_control": True} for id, token in enumerate(special)
        ],
    }
    notes = ["the version of the file, which decides how conversations are written, is v7"]
    notes += _left_out(spec.splitter.pattern)
    if "<s>" not in special or "</s>" not in special:
        notes.append("mistral-common looks for special tokens <s> and </s>, and this model has not both")
    return Written(json.dumps(content, ensure_ascii=False).encode(), tuple(differences), tuple(notes))


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is.

    (Scores are not compared, because they become ranks, in the same order.)
    """
    return unlike(spec, read(written.data).spec, "pieces", "pattern")
