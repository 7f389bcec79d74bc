"""Every option in every call: it does what it does in `encode` and `decode`, or is refused with a sentence.

The calls and the options are taken from the class and its tables. A call with `**options` that has no check
here fails a test, and so does an option without values to try.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import combinations, groupby, product
from typing import Any

import pytest

from cpbpe import Tokenizer
from cpbpe.text.utf8 import repair
from cpbpe.tokenizer import plans
from cpbpe.tokenizer.options import ENCODE, REFUSED
from tests.conftest import ENGINES
from tests.support import tiers, zoo
from tests.support.budget import MUCH, SEED
from tests.support.streams import cut
from tests.support.tokenizers import with_gaps

Options = dict[str, Any]
Call = Callable[..., Any]

MODELS = [
    "llama",  # dummy prefix, byte fallback
    "defaults",  # nmt_nfkc, spaces removed, no byte fallback
    "unused-ambiguous",
    "suffix",
    "user-defined-llama",
    "no-prefix",
    "special",
    "no-bos-empty-surface",
    "denormalizer",
]

VALUES: dict[str, list[Any]] = {
    "add_bos": [True],
    "add_eos": [True],
    "reverse": [True],
    "prefix_space": [True, False],
    "allowed_special": ["all", ("<|a|>",), {"▁<é>", "<|c|>"}],
    "disallowed_special": ["raise", {"<|c|>"}],
    "prefix_after_special": [False],
    "alpha": [0.0, 0.4],
    "seed": [3, -1],
}
TEXTS: list[str | bytes] = [
    "Hi, the <s>old</s> keeper",
    "",
    " é  <|a|> the▁<é>the ☃☃ <|c|>",
    b"a\xff\xe2\x96<|a|> \xc3\xa9</s>",
    "<|a|>",
    "🦙<|im_start|>a",
]
CHANCE = 5
"""A placeholder for a seed that is different every time."""


def combined(values: dict[str, list[Any]], count: int) -> Iterator[Options]:
    """Every choice of values for this many options; with one, also none at all."""
    if count == 1:
        yield {}
    for names in combinations(values, count):
        for chosen in product(*(values[name] for name in names)):
            yield dict(zip(names, chosen, strict=True))


@pytest.fixture(autouse=True)
def _no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "new_seed", lambda: CHANCE)


@cache
def tokenizer(name: str, engine: str) -> Tokenizer:
    return with_gaps(zoo.model(name), engine)


# --- What a call gives ----------------------------------------------------------------------------


def outcome(call: Call, *args: Any, **options: Any) -> Any:
    """What a call gives, or its error."""
    try:
        return call(*args, **options)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def failed(found: Any) -> bool:
    return isinstance(found, str) and found.startswith(("TypeError: ", "ValueError: "))


class Expected:
    """What `encode` gives for every text, alone and as one of a batch."""

    def __init__(self, tok: Tokenizer, options: Options):
        self.tok = tok
        self.options = options
        self.alone = [outcome(tok.encode, text, **options) for text in TEXTS]
        # The texts of a batch are sampled with the seed, the number after it, and so on.
        seed = CHANCE if options.get("seed") is None else options["seed"]
        own = [{**options, "seed": seed + i} if options.get("alpha") else options for i in range(len(TEXTS))]
        self.rows = [outcome(tok.encode, text, **o) for text, o in zip(TEXTS, own, strict=True)]
        self.aligned = [outcome(tok.align, text, **o) for text, o in zip(TEXTS, own, strict=True)]

    def batch(self, of: Callable[[list[int]], Any] = list, size: int = len(TEXTS)) -> Any:
        """What a batch gives; the error of the first text that has one."""
        rows = self.rows[:size]
        errors = [row for row in (self.alone[1], *rows) if failed(row)]  # "" has those of the options alone
        return errors[0] if errors else [of(row) for row in rows]

    def batches(self, call: Call, of: Callable[[list[int]], Any], **arguments: Any) -> Iterator[Any]:
        """What a call gives for batches, each with what it should give."""
        for size in (0, 1, len(TEXTS)):
            yield outcome(call, TEXTS[:size], **arguments), self.batch(of, size)
        fine = [i for i, row in enumerate(self.rows) if not failed(row)]
        if fine and not self.options.get("alpha"):  # which goes by the place in the batch
            texts = [TEXTS[i] for i in fine]
            yield outcome(call, iter(texts), **arguments), [of(self.rows[i]) for i in fine]


def each(
    expected: Expected, call: Call, of: Callable[[Any], Any] = lambda ids: ids, **arguments: Any
) -> None:
    """A call for one text gives what follows from the ids that `encode` gives."""
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        assert outcome(call, text, **arguments) == (ids if failed(ids) else of(ids))


def check_encode(call: Call, expected: Expected) -> None:
    each(expected, call)
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        if isinstance(text, str) and not failed(ids):
            assert call(text.encode()) == ids
            assert call(bytearray(text.encode())) == ids


def check_encode_batch(call: Call, expected: Expected) -> None:
    for threads in (None, 1, 3):
        for found, wanted in expected.batches(call, list, threads=threads):
            assert found == wanted


def check_encode_array(call: Call, expected: Expected) -> None:
    def listed(text: str | bytes, threads: int) -> list[int]:
        found = call(text, threads=threads)
        assert found.dtype.name == "uint32"
        ids: list[int] = found.tolist()
        return ids

    for threads in (1, 3):
        each(expected, listed, threads=threads)


def check_encode_arrays(call: Call, expected: Expected) -> None:
    def listed(texts: Any, **arguments: Any) -> list[list[int]]:
        rows = call(texts, **arguments)
        assert [rows.ids.dtype.name, rows.offsets.dtype.name] == ["uint32", "int64"]
        if arguments.get("spans"):
            assert rows.spans.shape == (len(rows.ids), 2)
        else:
            assert rows.spans is None
        ids: list[list[int]] = rows.tolist()
        return ids

    for arguments in ({"threads": 1}, {"threads": 3}, {"spans": True}, {"spans": True, "threads": 3}):
        for found, wanted in expected.batches(listed, list, **arguments):
            assert found == wanted
    if not failed(expected.batch()):
        spans = [span for encoding in expected.aligned for span in encoding.offsets]
        assert call(TEXTS, spans=True).spans.tolist() == [list(span) for span in spans]


def check_encode_parts(call: Call, expected: Expected) -> None:
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        assert outcome(call, [text]) == ids
        assert outcome(call, iter([text, ""])) == ids
    if expected.options.get("alpha"):
        assert outcome(call, TEXTS) == outcome(call, TEXTS)
        return
    # Ids between texts are not special tokens here, so each text is encoded as if it were alone.
    around = {"add_bos", "add_eos", "reverse"}
    plain = {name: value for name, value in expected.options.items() if name not in around}
    rows = [outcome(expected.tok.encode, text, **plain) for text in TEXTS]
    inner = [id for row in rows for id in ([9, *row] if not failed(row) else [])]
    tok, options = expected.tok, expected.options
    wanted = next((row for row in rows if failed(row)), None)
    if wanted is None and not failed(expected.alone[1]):
        front = [tok.bos_id] if options.get("add_bos") else []
        back = [tok.eos_id] if options.get("add_eos") else []
        wanted = [*front, *(reversed(inner) if options.get("reverse") else inner), *back]
    found = outcome(call, [part for text in TEXTS for part in (9, text)])
    assert found == (expected.alone[1] if failed(expected.alone[1]) else wanted)


def check_encode_pieces(call: Call, expected: Expected) -> None:
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        found = outcome(call, text)
        if failed(ids):
            assert found == ids
            continue
        tok = expected.tok
        assert len(found) == len(ids)
        for piece, id in zip(found, ids, strict=True):  # an unknown part is copied as it is
            assert id == tok.unk_id or piece == tok.id_to_piece(id)
        assert found == tok.align(text, **expected.options).pieces


def check_align(call: Call, expected: Expected) -> None:
    options = expected.options
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        for unit in (None, "char", "byte"):
            found = outcome(call, text, unit=unit)
            if failed(ids):
                assert found == ids
                continue
            assert found.ids == ids
            assert len(found.pieces) == len(found.offsets) == len(ids)
            in_bytes = unit == "byte" or (unit is None and isinstance(text, bytes))
            data = text.encode() if isinstance(text, str) else text
            length = len(data) if in_bytes else len(repair(data).decode())
            assert found.unit == ("byte" if in_bytes else "char")
            first, last = int(bool(options.get("add_bos"))), len(ids) - int(bool(options.get("add_eos")))
            assert found.offsets[:first] == [(0, 0)] * first
            assert found.offsets[last:] == [(length, length)] * (len(ids) - last)
            ends = [end for _, end in found.offsets[first:last]]
            assert ends == sorted(ends, reverse=bool(options.get("reverse")))
            special = {id for id in ids[first:last] if id in found.special}
            assert special <= set(expected.tok.vocab.special_tokens.values())


def check_align_batch(call: Call, expected: Expected) -> None:
    for threads in (1, 3):
        for found, wanted in expected.batches(call, list, threads=threads):
            assert (found if failed(found) else [encoding.ids for encoding in found]) == wanted
    if not failed(expected.batch()):
        assert call(TEXTS) == expected.aligned


def check_show(call: Call, expected: Expected) -> None:
    each(expected, lambda text: call(text, limit=None).encoding.ids)
    for text, aligned, ids in zip(TEXTS, expected.aligned, expected.alone, strict=True):
        found = outcome(call, text, limit=None)
        if failed(ids):
            assert found == ids
        elif not expected.options.get("alpha"):
            assert found.encoding == aligned
            drawn = [cell for group in found.groups for cell in group.cells]
            assert [cell.id for cell in drawn if cell.kind != "removed"] == ids
            # What is drawn is in the order of the text, or of the text turned round, and complete.
            spans = [cell.span for cell in drawn if cell.span[0] < cell.span[1]]
            spans = spans[::-1] if expected.options.get("reverse") else spans
            assert [begin for begin, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]
            assert [end for _, end in spans[-1:]] in ([], [len(text)])


def check_count(call: Call, expected: Expected) -> None:
    each(expected, call, len)


def check_count_batch(call: Call, expected: Expected) -> None:
    for threads in (None, 1, 3):
        for found, wanted in expected.batches(call, len, threads=threads):
            assert found == wanted


def check_truncate(call: Call, expected: Expected) -> None:
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        for limit in (2, 5, 10**6):
            found = outcome(call, text, limit)
            if failed(ids):
                assert found == ids
                continue
            assert type(found) is type(text)
            assert text.startswith(found)  # type: ignore[arg-type]
            count = len(expected.tok.encode(found, **expected.options))
            assert count <= limit
            assert found == text or len(ids) > limit


def check_split(call: Call, expected: Expected) -> None:
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        for limit, overlap in ((12, 0), (12, 3), (10**6, 0)):
            found = outcome(call, text, limit, overlap=overlap)
            if failed(ids):
                assert found == ids
                continue
            counts = [len(expected.tok.encode(part, **expected.options)) for part in found]
            assert max(counts, default=0) <= limit
            if not overlap:
                assert text[:0].join(found) == text
            if len(ids) <= limit:
                assert found == ([text] if text else [])


def check_stream_encoder(call: Call, expected: Expected) -> None:
    def encoded(text: str | bytes, parts: Sequence[Any]) -> list[int]:
        stream = call()
        ids: list[int] = [id for part in parts for id in stream.push(part)] + stream.flush()
        return ids

    rng = random.Random(SEED)
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        for parts in (
            [text],
            list(cut(rng, text)),
            list(cut(rng, text.encode() if isinstance(text, str) else text)),
        ):
            if not failed(ids) or type(parts[0] if parts else text) is type(text):
                assert outcome(encoded, text, parts) == ids


def check_completions(call: Call, expected: Expected) -> None:
    def encoded(text: str | bytes) -> list[int]:
        end = call(text)
        return [*end.ids, *end.unstable]

    for text, ids in list(zip(TEXTS, expected.alone, strict=True))[::2]:
        found = outcome(encoded, text)
        assert found == ids or "the prompt ends" in str(found), text


def check_document(call: Call, expected: Expected) -> None:
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        if isinstance(text, str):
            half = len(text) // 2
            assert outcome(lambda text=text: call(text).ids) == ids
            assert failed(ids) or call(text[:half]).append(text[half:]).ids == ids


def again(tok: Tokenizer, ids: list[int], options: Options) -> list[int]:
    """What decoding and encoding gives for ids, each run of text by itself."""
    parts: list[Any] = []
    for is_special, group in groupby(ids, tok.facts.special.all_texts.__contains__):
        run = list(group)
        prefix = options.get("prefix_space")
        prefix = tok.spec.normalizer.add_dummy_prefix if prefix is None else prefix
        prefix = prefix and not (parts and options.get("prefix_after_special") is False)
        parts += run if is_special else [tok.decode_bytes(run, keep_prefix_space=not prefix)]
    return tok.encode_parts(
        parts, **{name: options[name] for name in options.keys() - {"add_bos", "add_eos"}}
    )


def check_first_divergence(call: Call, expected: Expected) -> None:
    tok, options = expected.tok, expected.options
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        own = tok.encode(text) if failed(ids) else ids
        wanted = expected.alone[1] if failed(expected.alone[1]) else outcome(again, tok, own, options)
        found = outcome(call, own)
        if failed(wanted) or found is None:
            assert found == (wanted if failed(wanted) else None)
            assert failed(wanted) or wanted == own
        else:
            assert [*own[: found.position], *found.ids] == wanted != own


def check_is_canonical(call: Call, expected: Expected) -> None:
    tok, options = expected.tok, expected.options
    for text, ids in zip(TEXTS, expected.alone, strict=True):
        own = tok.encode(text) if failed(ids) else ids
        found = outcome(tok.first_divergence, own, **options)
        assert outcome(call, own) == (found if failed(found) else found is None)


def check_canonical_stream(call: Call, expected: Expected) -> None:
    stream = outcome(call)
    if failed(expected.alone[1]) or isinstance(stream, str):
        assert stream == expected.alone[1] or stream.startswith("ModelError: ")
        return
    for ids in expected.alone:
        if not failed(ids) and expected.tok.is_canonical(ids, **expected.options):
            assert call(ids).is_complete


def check_canonical_next(call: Call, expected: Expected) -> None:
    stream = outcome(expected.tok.canonical_stream, **expected.options)
    mask = outcome(call)
    assert mask.tolist() == stream.mask.tolist() if not isinstance(stream, str) else mask == stream


ENCODE_CHECKS: dict[str, Callable[[Call, Expected], None]] = {
    "encode": check_encode,
    "encode_batch": check_encode_batch,
    "encode_array": check_encode_array,
    "encode_arrays": check_encode_arrays,
    "encode_parts": check_encode_parts,
    "encode_pieces": check_encode_pieces,
    "tokenize": check_encode_pieces,
    "align": check_align,
    "align_batch": check_align_batch,
    "show": check_show,
    "count": check_count,
    "count_batch": check_count_batch,
    "truncate": check_truncate,
    "split": check_split,
    "stream_encoder": check_stream_encoder,
    "document": check_document,
    "completions": check_completions,
    "is_canonical": check_is_canonical,
    "first_divergence": check_first_divergence,
    "canonical_next": check_canonical_next,
    "canonical_stream": check_canonical_stream,
}


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **{name: ("a",) for name in ENCODE_CHECKS if not name.endswith(("batch", "arrays", "parts"))},
    **{name: (["a"],) for name in ENCODE_CHECKS if name.endswith(("batch", "arrays", "parts"))},
    "truncate": ("a", 5),
    "split": ("a", 5),
    "stream_encoder": (),
    "is_canonical": ([5],),
    "first_divergence": ([5],),
    "canonical_next": (),
    "canonical_stream": (),
    "decode": ([5],),
    "decode_bytes": ([5],),
    "decode_pieces": (["a"],),
    "decode_batch": ([[5]],),
    "stream_decoder": (),
}
"""Something that each call can be called with."""


def ways(tok: Tokenizer, options: Options, error: Any) -> Iterator[Callable[[str], Call]]:
    """Ways to give options to calls, by their names: to each call, and to `using`."""
    yield lambda name: partial(getattr(tok, name), **options)
    bound = outcome(tok.using, **options)
    if failed(bound):  # it says at once what every call would say
        assert bound == error
    else:
        yield lambda name: getattr(bound, name)
        names = sorted(options)  # bound one after the other, and one of them given to the call
        if len(names) == 2:
            first, second = ({name: options[name]} for name in names)
            half = outcome(tok.using, **first)
            assert not failed(half)
            yield lambda name: partial(getattr(half, name), **second)


@contextmanager
def said(what: str) -> Iterator[None]:
    """Say, if something fails, with which options."""
    try:
        yield
    except Exception as error:
        raise AssertionError(what) from error


def refusal(call: str, option: str) -> str:
    undone = f"if it is bound, {option}={ENCODE[option].default!r} undoes it"
    return f"{call}() has no option {option!r}: {REFUSED[call][option]} ({undone})"


@tiers.engines
@tiers.models(MODELS)
def test_every_option(name: str, engine: str) -> None:
    check_options(tokenizer(name, engine), combined(VALUES, 1))


PAIRS = [(name, engine) for engine in ENGINES for name in MODELS]


@pytest.mark.parametrize("case", tiers.some(PAIRS, PAIRS[:2]), ids=str)
def test_every_pair_of_options(case: tuple[str, str]) -> None:
    """Each pair on three of the models, or on all."""
    choices = list(combined(VALUES, 2))
    check_options(tokenizer(*case), choices if MUCH else choices[MODELS.index(case[0]) % 3 :: 3])


def check_options(tok: Tokenizer, choices: Iterable[Options]) -> None:
    """Check every call with options, which it gets each time in another way."""
    for number, options in enumerate(choices):
        expected = Expected(tok, options)
        given = list(ways(tok, options, expected.alone[1]))
        for way, (call, check) in enumerate(ENCODE_CHECKS.items(), number):
            with said(f"{call}() with {options}"):
                made = given[way % len(given)](call)
                refused = REFUSED.get(call, {}).keys() & options.keys()
                if refused := {name for name in refused if options[name] != ENCODE[name].default}:
                    found = outcome(made, *ARGUMENTS[call])
                    assert found in [f"TypeError: {refusal(call, option)}" for option in refused]
                else:
                    check(made, expected)
