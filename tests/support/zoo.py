"""The models that the tests run on: real ones, ones trained here by sentencepiece, and edited ones.

Each is made when first asked for, by name, so that a test run in parallel makes only what it needs.
"""

import importlib.util
import io
import math
import os
import random
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece

from cpbpe.model.formats import model_pb2
from tests.support import budget, charsmaps, corpus

Proto = model_pb2.ModelProto
Piece = Proto.SentencePiece

# --- Real models ----------------------------------------------------------------------------------

REAL = [
    "tokenizer.model.v1",
    "mistral_instruct_tokenizer_240216.model.v2",
    "mistral_instruct_tokenizer_240323.model.v3",
    "mistral_instruct_tokenizer_241114.model.v7",
    "mistral_instruct_tokenizer_241114.model.v7m1",
]


SIMILAR = () if budget.MUCH else tuple(REAL[1:-1])
"""Those that differ from the others in a few pieces, which usual runs leave out where much time is needed."""


def real_path(name: str) -> Path:
    """Where the package mistral-common keeps a model. It is found without importing the package."""
    found = importlib.util.find_spec("mistral_common")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0]) / "data" / name


# --- Trained models -------------------------------------------------------------------------------

LLAMA = {
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "byte_fallback": True,
    "split_digits": True,
    "allow_whitespace_only_pieces": True,
    "vocab_size": 700,
}

TSV = "61 62\t78\n20AC\t45 55 52\nE9\t65\n2026\t\n7E\t20 20\n1F600 1F600\t3A 29\n" + "3042\t20 61 20\n"
DENORMALIZE = "3A 29\t1F642\n61\t41\n78\t\n"

TRAINED: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "defaults": {"vocab_size": 600},
    "nfkc": {"normalization_rule_name": "nfkc", "vocab_size": 600, "byte_fallback": True},
    "nfkc_cf": {"normalization_rule_name": "nfkc_cf", "vocab_size": 700},
    "nmt_nfkc_cf": {"normalization_rule_name": "nmt_nfkc_cf", "vocab_size": 700, "byte_fallback": True},
    "identity-no-fallback": {
        "normalization_rule_name": "identity",
        "vocab_size": 500,
        "character_coverage": 0.98,
    },
    "tsv": {"normalization_rule_tsv": TSV, "vocab_size": 600},
    "tsv-keep-spaces": {
        "normalization_rule_tsv": TSV,
        "vocab_size": 700,
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
    },
    "no-prefix": {**LLAMA, "add_dummy_prefix": False},
    "no-prefix-squeeze": {"add_dummy_prefix": False, "vocab_size": 600},
    "keep-spaces": {"remove_extra_whitespaces": False, "vocab_size": 600},
    "suffix": {"treat_whitespace_as_suffix": True, "vocab_size": 600},
    "suffix-keep-spaces": {**LLAMA, "treat_whitespace_as_suffix": True},
    "across-spaces": {"split_by_whitespace": False, "vocab_size": 800, "max_sentencepiece_length": 32},
    "unsplit": {
        **LLAMA,
        "split_by_unicode_script": False,
        "split_by_number": False,
        "split_digits": False,
        "split_by_whitespace": False,
    },
    "user-defined": {
        "vocab_size": 600,
        "user_defined_symbols": ["abra", "brac", "ab", "the ", " a ", "▁", "▁▁▁", "<sep>", "é", "は朝", "1"],
    },
    "user-defined-llama": {
        **LLAMA,
        "user_defined_symbols": ["<|im_start|>", "<|im_end|>", "a b", "\t", "\n", "▁the▁", "🦙🦙", "<0x41>x"],
    },
    "user-defined-suffix": {
        "vocab_size": 600,
        "treat_whitespace_as_suffix": True,
        "user_defined_symbols": ["▁", "o▁w", "x ", "ab", "bab"],
    },
    "special": {
        "vocab_size": 600,
        "control_symbols": ["<cls>", "<mask>", "a", "▁the"],
        "unk_id": 3,
        "bos_id": 0,
        "eos_id": 1,
        "pad_id": 2,
        "unk_piece": "[UNK]",
        "bos_piece": "[B]",
        "eos_piece": "[E]",
        "pad_piece": "[PAD]",
        "unk_surface": "▁?!▁ ",
        "character_coverage": 0.98,
    },
    "no-bos-empty-surface": {"vocab_size": 600, "bos_id": -1, "unk_surface": "", "character_coverage": 0.98},
    "no-unk": {**LLAMA, "unk_id": -1, "bos_id": 0, "eos_id": 1},
    "denormalizer": {"vocab_size": 600, "denormalization_rule_tsv": DENORMALIZE},
}


@cache
def train(**options: Any) -> bytes:
    """Train with sentencepiece on the test corpus. The file is the same in every run."""
    written = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        settings = dict(options)
        for key in ("normalization_rule_tsv", "denormalization_rule_tsv"):
            if key in settings:
                path = Path(folder, key)
                path.write_text(settings[key], encoding="utf-8")
                settings[key] = str(path)
        symbols = {key: list(value) for key, value in settings.items() if isinstance(value, tuple)}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus.lines()),
            model_writer=written,
            model_type="bpe",
            minloglevel=2,
            num_threads=1,
            **{**settings, **symbols},
        )
    proto = parse(written.getvalue())
    for spec in (proto.normalizer_spec, proto.denormalizer_spec):
        if spec.normalization_rule_tsv:  # (without the folder, which has another name in every run)
            spec.normalization_rule_tsv = Path(spec.normalization_rule_tsv.decode()).name.encode()
    return proto.SerializeToString()


def trained(name: str) -> bytes:
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in TRAINED[name].items()}
    return train(**options)


# --- Edited models --------------------------------------------------------------------------------


def parse(data: bytes) -> Proto:
    proto = Proto()
    proto.ParseFromString(data)
    return proto


def normal(proto: Proto) -> list[Piece]:
    return [piece for piece in proto.pieces if piece.type == Piece.NORMAL]


def add(proto: Proto, texts: Iterable[str | bytes], type: Any = Piece.NORMAL, score: float = 0.0) -> None:
    there = {piece.piece for piece in proto.pieces}
    for text in texts:
        data = text.encode() if isinstance(text, str) else text
        if data not in there:
            there.add(data)
            proto.pieces.add(piece=data, type=type, score=score)


def _unused(proto: Proto) -> None:
    rng = random.Random(1)
    for piece in normal(proto):
        if rng.random() < 0.4:
            piece.type = Piece.UNUSED


def _unused_scores(proto: Proto) -> None:
    """UNUSED pieces that can come about in more than one way: the last way in the text decides."""
    _unused(proto)
    _few_scores(proto)
    add(proto, ["abc", "ab", "bc", "abcd", "cd", "▁a", "▁ab", "▁abc"], Piece.UNUSED, -3.0)
    add(proto, ["a", "b", "c", "d"], score=-9.0)


def _unused_user_defined(proto: Proto) -> None:
    _unused_scores(proto)
    add(proto, ["<x>", "bcd", "cab"], Piece.USER_DEFINED)


def _few_scores(proto: Proto) -> None:
    rng = random.Random(2)
    for piece in normal(proto):
        piece.score = -float(rng.randint(0, 4))


def _one_score(proto: Proto) -> None:
    for piece in normal(proto):
        piece.score = -1.0


def _fractions(proto: Proto) -> None:
    rng = random.Random(3)
    for piece in normal(proto):
        piece.score = rng.uniform(-1e-3, 1e-3)


def _positive(proto: Proto) -> None:
    for piece in normal(proto):
        piece.score = 5000.0 + piece.score


def _shuffled(proto: Proto) -> None:
    rng = random.Random(4)
    scores = [piece.score for piece in normal(proto)]
    rng.shuffle(scores)
    for piece, score in zip(normal(proto), scores, strict=True):
        piece.score = score


def _odd_scores(proto: Proto) -> None:
    rng = random.Random(5)
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 1e-45, -1e-45, 1.0, -1.0]
    for piece in normal(proto):
        piece.score = rng.choice(odd)


def _orphans(proto: Proto) -> None:
    """Pieces whose halves are not pieces: drop half of the short ones."""
    rng = random.Random(6)
    keep = [p for p in proto.pieces if p.type != Piece.NORMAL or len(p.piece) > 4 or rng.random() < 0.5]
    kept = [Piece.FromString(piece.SerializeToString()) for piece in keep]
    del proto.pieces[:]
    proto.pieces.extend(kept)
    add(proto, ["xyz", "wxyz", "qq qq"], score=-2.5)


def _nul(proto: Proto) -> None:
    add(proto, [b"\0"])


def _nul_unused(proto: Proto) -> None:
    add(proto, [b"\0"], Piece.UNUSED)


def _unescaped(proto: Proto) -> None:
    proto.normalizer_spec.escape_whitespaces = False
    add(proto, [" the", " ", "  ", "e "], score=-0.5)


def _nested(proto: Proto) -> None:
    """More user-defined pieces that begin alike than sentencepiece looks at."""
    add(proto, ["=" * length for length in range(1, 90)], Piece.USER_DEFINED)
    add(proto, ["=" * 100 + "a"], Piece.USER_DEFINED)


def _deep(proto: Proto) -> None:
    """A chain of UNUSED pieces longer than the depth to which they are split again."""
    for piece in normal(proto):
        piece.score -= 1000.0
    for length in range(2, 130):
        add(proto, ["z" * length], Piece.UNUSED, -float(length))


def _inner_spaces(proto: Proto) -> None:
    """Pieces with ▁ in the middle and at the end, as in models converted from elsewhere."""
    add(proto, ["in▁the", "the▁", "▁▁", "▁▁▁▁", "e▁a", "▁a▁b▁"], score=-0.5)
    add(proto, ["▁x▁", "<▁>"], Piece.USER_DEFINED)


def _renamed_unk(proto: Proto) -> None:
    proto.pieces[0].piece = b"<what>"
    proto.trainer_spec.ClearField("unk_piece")


def _user_defined_specials(proto: Proto) -> None:
    for piece in proto.pieces:
        if piece.type == Piece.CONTROL:
            piece.type = Piece.USER_DEFINED


def _control_characters(proto: Proto) -> None:
    """CONTROL pieces that look like ordinary text."""
    rng = random.Random(8)
    for piece in normal(proto):
        if rng.random() < 0.15:
            piece.type = Piece.CONTROL


def _broken_pieces(proto: Proto) -> None:
    """Pieces that are not UTF-8, which sentencepiece loads and Python's protobuf would not."""
    add(proto, [b"\xe2\x96", b"\xff", b"a\xc3", b"\xa9b", b"\xc3\xa9\x80"], score=-0.5)
    add(proto, [b"\xf0\x9f", b"x\xe2"], Piece.USER_DEFINED)


def _many(proto: Proto) -> None:
    """Ids of more than 15 bits, which the core keeps in another way."""
    kept = [Piece.FromString(piece.SerializeToString()) for piece in proto.pieces]
    first = next(place for place, piece in enumerate(kept) if piece.type == Piece.NORMAL)
    del proto.pieces[first:]
    add(proto, [chr(0x20000 + i) for i in range(1 << 15)], score=-1e6)
    proto.pieces.extend(kept[first:])


def _rules(rules: dict[bytes, bytes]) -> Callable[[Proto], None]:
    def edit(proto: Proto) -> None:
        proto.normalizer_spec.precompiled_charsmap = charsmaps.make(rules)

    return edit


def _denormalizer(**flags: bool) -> Callable[[Proto], None]:
    def edit(proto: Proto) -> None:
        spec = proto.denormalizer_spec
        spec.precompiled_charsmap = charsmaps.make(
            {b"a": b"A", b"  ": b"_", "é".encode(): b"\0", b"the": b""}
        )
        for name, value in flags.items():
            setattr(spec, name, value)

    return edit


SPACES = {b"~": b" ", b"=": b"  a ", b"-": b"", b"ab": " ▁ ".encode(), b"\t": b" ", b"\n": b"  "}
BROKEN = {b"\xc3": b"<", b"a\xe2": b">", b"\xff": b"ff", b"b": b"\xe2\x96", b"c\0d": b"nul", b"\0": b"0"}
LONG = {b"x" * length: b"%d" % length for length in range(1, 41)}

EDITED: dict[str, tuple[str, Callable[[Proto], None]]] = {
    "unused": ("llama", _unused),
    "unused-ambiguous": ("llama", _unused_scores),
    "unused-no-fallback": ("defaults", _unused_scores),
    "unused-user-defined": ("llama", _unused_user_defined),
    "equal-scores": ("llama", _one_score),
    "few-scores": ("defaults", _few_scores),
    "fractional-scores": ("llama", _fractions),
    "positive-scores": ("defaults", _positive),
    "shuffled-scores": ("across-spaces", _shuffled),
    "odd-scores": ("unsplit", _odd_scores),
    "orphans": ("llama", _orphans),
    "nul": ("llama", _nul),
    "nul-unused": ("identity-no-fallback", _nul_unused),
    "unescaped": ("llama", _unescaped),
    "unescaped-squeeze": ("defaults", _unescaped),
    "many-pieces": ("llama", _many),
    "nested-user-defined": ("llama", _nested),
    "deep-unused": ("llama", _deep),
    "inner-spaces": ("defaults", _inner_spaces),
    "renamed-unk": ("special", _renamed_unk),
    "user-defined-specials": ("special", _user_defined_specials),
    "control-characters": ("identity-no-fallback", _control_characters),
    "broken-pieces": ("llama", _broken_pieces),
    "broken-pieces-no-fallback": ("identity-no-fallback", _broken_pieces),
    "charsmap-spaces": ("defaults", _rules(SPACES)),
    "charsmap-spaces-suffix": ("suffix", _rules(SPACES)),
    "charsmap-broken": ("llama", _rules(BROKEN)),
    "charsmap-broken-user-defined": ("user-defined", _rules(BROKEN)),
    "charsmap-long": ("llama", _rules(LONG)),
    "denormalizer-plain": (
        "llama",
        _denormalizer(add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False),
    ),
    "denormalizer-defaults": ("identity-no-fallback", _denormalizer()),
}


def edited(name: str) -> bytes:
    base, edit = EDITED[name]
    proto = parse(trained(base))
    edit(proto)
    return proto.SerializeToString()


# --- All of them ----------------------------------------------------------------------------------

# More models to test on, your own perhaps: CPBPE_MODELS names a folder of .model files.
FOLDER = os.environ.get("CPBPE_MODELS")
OTHERS = {path.name: path for path in sorted(Path(FOLDER).glob("*.model"))} if FOLDER else {}

NAMES = [*REAL, *TRAINED, *EDITED, *OTHERS]
DENORMALIZERS = ["denormalizer", "denormalizer-plain", "denormalizer-defaults"]
"""Models that rewrite the text that ids decode to."""


@cache
def model(name: str) -> bytes:
    """The bytes of a model's file."""
    if name in OTHERS:
        return OTHERS[name].read_bytes()
    if name in REAL:
        return real_path(name).read_bytes()
    return trained(name) if name in TRAINED else edited(name)
