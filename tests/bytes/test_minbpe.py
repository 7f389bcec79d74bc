"""`cpbpe.compat.minbpe` does what the lecture's code does: merges, ids, printed lines, files."""

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from cpbpe.compat import minbpe
from cpbpe.compat.minbpe import BasicTokenizer, GPT4Tokenizer, LectureError, RegexTokenizer
from cpbpe.compat.minbpe.tokenizers import apply_merges
from cpbpe.reference.byte_level.patterns import cut
from tests.bytes import oracles
from tests.bytes.making import CLASSES, any_text, texts
from tests.conftest import ENGINES
from tests.support import corpus, processes, wheels
from tests.support.budget import SEED, examples, quick

TEXTS = ["", "?", "hello world!!!? (안녕하세요!) lol123 😉", "a\r\n  b\n\n", "".join(CLASSES)]
SPECIAL = {"<|endoftext|>": 1000, "<|fim|>": 1001}
LINES = "\n".join(corpus.lines(200))


def trained(pattern: str | None = None, vocab_size: int = 330) -> RegexTokenizer:
    tokenizer = RegexTokenizer(pattern)
    tokenizer.train(LINES, vocab_size)
    tokenizer.register_special_tokens(dict(SPECIAL))
    return tokenizer


@pytest.mark.parametrize("make", [BasicTokenizer, RegexTokenizer])
def test_the_example_of_the_encyclopedia(make: Any) -> None:
    tokenizer = make()
    tokenizer.train("aaabdaaabac", 256 + 3)
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]
    assert tokenizer.decode([258, 100, 258, 97, 99]) == "aaabdaaabac"
    assert tokenizer.merges == {(97, 97): 256, (256, 97): 257, (257, 98): 258}
    assert tokenizer.vocab[258] == b"aaab"
    assert len(tokenizer.vocab) == 259


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("make", [BasicTokenizer, RegexTokenizer])
def test_texts_come_back(make: Any, text: str) -> None:
    tokenizer = make()
    assert tokenizer.encode(text) == list(text.encode())
    tokenizer.train(LINES, 300)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("pattern", [None, minbpe.GPT2_SPLIT_PATTERN, r"\p{L}+|\P{L}+"])
def test_merges_and_ids(pattern: str | None) -> None:
    tokenizer = trained(pattern, 290)
    used = tokenizer.pattern
    assert used == (pattern or minbpe.GPT4_SPLIT_PATTERN)
    chunks = [chunk.encode() for chunk in cut(used, LINES)]
    assert list(tokenizer.merges) == [pair for pair, _ in oracles.train(chunks, 34)]
    for text in texts(examples(150), CLASSES):
        expected = [
            id for chunk in cut(used, text) for id in oracles.encode(chunk.encode(), tokenizer.merges)
        ]
        assert tokenizer.encode(text) == tokenizer.encode_ordinary(text) == expected


def test_basic_merges_and_ids() -> None:
    tokenizer = BasicTokenizer()
    text = LINES[:3000]
    tokenizer.train(text, 290)
    assert list(tokenizer.merges) == [pair for pair, _ in oracles.train([text.encode()], 34)]
    for sample in texts(examples(150), CLASSES):
        assert tokenizer.encode(sample) == oracles.encode(sample.encode(), tokenizer.merges)


def test_merges_of_small_texts(engine: str) -> None:
    """Overlapping pairs, ties, repetitions; both classes, until no pair is left."""
    rng = random.Random(SEED)
    for _ in range(examples(120)):
        letters = rng.choice(["a", "ab", "abc ", "the cat's 12\r\n", "é漢字 a", "😀 \u0345ſ'Ss\x85\u2028"])
        text = "".join(
            letter * rng.choice([1, 1, 2, 5]) for letter in rng.choices(letters, k=rng.randint(0, 40))
        )
        pattern = rng.choice([None, minbpe.GPT2_SPLIT_PATTERN, r"\w+|\s", r"[a-z]+"])
        tokenizer: Any
        for tokenizer in (BasicTokenizer(), RegexTokenizer(pattern)):
            chunks = cut(tokenizer.pattern, text) if tokenizer.pattern else [text]
            learned = oracles.train([chunk.encode() for chunk in chunks], rng.choice([3, 1000]))
            tokenizer.train(text, 256 + len(learned))
            assert list(tokenizer.merges) == [pair for pair, _ in learned], (text, pattern)


@pytest.mark.parametrize("pattern", [None, minbpe.GPT2_SPLIT_PATTERN, r"\p{L}+|\P{L}+"])
def test_both_engines_give_the_same(
    pattern: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files, merges, what is printed before an error; with characters on which versions of Unicode differ."""
    text = LINES[:6000] + "".join(map(chr, range(0x1C80, 0x1CC8))) * 3 + "".join(CLASSES)
    results: dict[str, list[Any]] = {engine: [] for engine in ENGINES}
    for engine in ENGINES:
        monkeypatch.setenv("CPBPE_ENGINE", engine)
        for tokenizer in (RegexTokenizer(pattern), BasicTokenizer()):
            tokenizer.train(text, 400, verbose=True)
            tokenizer.save(tmp_path / "a")
            with pytest.raises(ValueError, match="after 2 merges no pair is left"):
                tokenizer.train("abc", 300, verbose=True)
            files = [(tmp_path / name).read_bytes() for name in ("a.model", "a.vocab")]
            results[engine].append((list(tokenizer.merges.items()), list(tokenizer.vocab.items()), files))
        results[engine].append(capsys.readouterr().out)
    assert all(result == results["reference"] for result in results.values())


@pytest.mark.usefixtures("engine")
def test_empty_matches_hide_no_chunk() -> None:
    """minbpe has `regex.findall`, which looks for a longer match where an empty one was found."""
    text = "abab baba xxab " * 50
    first, other = RegexTokenizer(r"\s*|\w+"), RegexTokenizer(r"\s+|\w+")
    for tokenizer in (first, other):
        tokenizer.train(text, 258)
    assert first.merges == other.merges
    for some in (text, text[:20]):
        assert first.encode(some) == other.encode(some)


def test_merges_can_be_anything() -> None:
    """`merges` is a plain attribute; what it says is done in minbpe's order, however odd."""
    rng = random.Random(SEED)
    for _ in range(examples(4000)):
        merges = {(rng.randrange(6), rng.randrange(6)): rng.randint(3, 8) for _ in range(rng.randint(0, 6))}
        ids = [rng.randrange(4) for _ in range(rng.randint(0, 14))]
        assert apply_merges(ids, merges) == oracles.encode(ids, merges), (ids, merges)


@quick(2, 60)
@given(st.lists(st.integers(0, 3), max_size=12), st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_helpers(ids: list[int], pair: tuple[int, int]) -> None:
    assert minbpe.get_stats(ids) == oracles.counted([ids])
    counts = {pair: 5}
    assert minbpe.get_stats(ids, counts) is counts
    assert counts[pair] == 5 + oracles.counted([ids]).get(pair, 0)
    assert minbpe.merge(ids, pair, 9) == oracles.replaced(ids, pair, 9)


def test_rendering() -> None:
    assert minbpe.render_token(b"a \n\x00\xe4") == "a \\u000a\\u0000\ufffd"
    assert minbpe.replace_control_characters("é\u200d\ue000😀\U000e0001") == "é\\u200d\\ue000😀\\ue0001"


def test_verbose_training_prints_each_merge(capsys: pytest.CaptureFixture[str]) -> None:
    BasicTokenizer().train("abcabd\n\n\n", 258, verbose=True)
    assert capsys.readouterr().out == (
        "merge 1/2: (97, 98) -> 256 (b'ab') had 2 occurrences\n"
        "merge 2/2: (10, 10) -> 257 (b'\\n\\n') had 2 occurrences\n"
    )
    RegexTokenizer().train("abcabd", 257)
    assert capsys.readouterr().out == ""


# --- Special tokens -------------------------------------------------------------------------------


def test_special_tokens() -> None:
    tokenizer = trained()
    text = "<|endoftext|>Hello world<|fim|><|endoftext|>"
    hello = tokenizer.encode_ordinary("Hello world")
    assert tokenizer.encode(text, "all") == [1000, *hello, 1001, 1000]
    assert tokenizer.encode(text, allowed_special={"<|fim|>"}) == [
        *tokenizer.encode_ordinary("<|endoftext|>Hello world"),
        1001,
        *tokenizer.encode_ordinary("<|endoftext|>"),
    ]
    assert tokenizer.encode(text, "none") == tokenizer.encode_ordinary(text)
    assert tokenizer.encode("Hello world") == hello
    assert tokenizer.decode([1000, *hello, 1001]) == "<|endoftext|>Hello world<|fim|>"
    assert tokenizer.inverse_special_tokens == {1000: "<|endoftext|>", 1001: "<|fim|>"}
    for error in (LectureError, AssertionError, ValueError):
        with pytest.raises(
            error, match=r"the text has the special token '<\|endoftext\|>'; pass allowed_special"
        ):
            tokenizer.encode(text)
    with pytest.raises(ValueError, match="allowed_special='some' is neither 'all', 'none' or 'none_raise'"):
        tokenizer.encode(text, "some")


def test_of_two_special_tokens_the_first_registered_is_found() -> None:
    """As with minbpe: its pattern has them in their order."""
    tokenizer = RegexTokenizer()
    tokenizer.register_special_tokens({"<a": 300, "<a>": 301})
    assert tokenizer.encode("<a>", "all") == [300, ord(">")]
    tokenizer.register_special_tokens({"<a>": 301, "<a": 300})
    assert tokenizer.encode("<a><a", "all") == [301, 300]


@quick(3, 30)
@given(st.lists(st.one_of(any_text, st.sampled_from([*SPECIAL])), max_size=5).map("".join))
def test_any_text_comes_back(text: str) -> None:
    tokenizer = trained()
    for allowed in ("all", "none", {"<|fim|>"}):
        assert tokenizer.decode(tokenizer.encode(text, allowed)) == text


# --- Files ----------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    tokenizer = RegexTokenizer(minbpe.GPT2_SPLIT_PATTERN)
    tokenizer.train("ab ab\n\n\nab \té", 256 + 3)
    tokenizer.register_special_tokens({"<|end|>": 400})
    prefix = str(tmp_path / "toy")
    tokenizer.save(prefix)
    model = Path(f"{prefix}.model").read_bytes()
    assert model.decode() == (
        "minbpe v1\n"
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+" + "\n"
        "1\n<|end|> 400\n97 98\n32 256\n10 10\n"
    )
    lines = Path(f"{prefix}.vocab").read_bytes().decode().split("\n")
    assert lines[:2] == ["[\\u0000] 0", "[\\u0001] 1"]
    assert lines[10] == "[\\u000a] 10"
    assert lines[97] == "[a] 97"
    assert lines[195] == "[\ufffd] 195"
    assert lines[256:] == [
        "[a][b] -> [ab] 256",
        "[ ][ab] -> [ ab] 257",
        "[\\u000a][\\u000a] -> [\\u000a\\u000a] 258",
        "",
    ]

    again = RegexTokenizer()
    again.load(f"{prefix}.model")
    assert (again.merges, again.pattern, again.special_tokens) == (
        tokenizer.merges,
        tokenizer.pattern,
        tokenizer.special_tokens,
    )
    assert again.vocab == {**tokenizer.vocab, 400: b"<|end|>"}
    assert again.inverse_special_tokens == {400: "<|end|>"}
    again.save(tmp_path / "again")  # a path works, too
    assert (tmp_path / "again.model").read_bytes() == model
    assert (tmp_path / "again.vocab").read_text() == Path(f"{prefix}.vocab").read_text() + "[<|end|>] 400\n"
    for text in TEXTS:
        assert again.encode(text) == tokenizer.encode(text)


def test_basic_files(tmp_path: Path) -> None:
    tokenizer = BasicTokenizer()
    tokenizer.train(LINES[:2000], 280)
    tokenizer.save(tmp_path / "basic")
    assert (tmp_path / "basic.model").read_text().split("\n")[:3] == ["minbpe v1", "", "0"]
    again = BasicTokenizer()
    again.load(tmp_path / "basic.model")
    assert (again.merges, again.vocab) == (tokenizer.merges, tokenizer.vocab)


def test_a_loaded_tokenizer_cuts_by_its_pattern(tmp_path: Path) -> None:
    tokenizer = trained(minbpe.GPT2_SPLIT_PATTERN)
    tokenizer.save(tmp_path / "gpt2")
    again = RegexTokenizer()
    again.load(tmp_path / "gpt2.model")
    assert again.encode("x 12345 IT'S\n\n  y") == tokenizer.encode("x 12345 IT'S\n\n  y")


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    tokenizer = trained()
    tokenizer.pattern = " "
    with pytest.raises(ValueError, match=r"the pattern ' ' cannot be saved: .* write \\n for a line break"):
        tokenizer.save(tmp_path / "a")
    tokenizer.pattern = "a\rb"
    with pytest.raises(ValueError, match=r"the pattern 'a\\rb' cannot be saved"):
        tokenizer.save(tmp_path / "a")
    tokenizer = trained()
    tokenizer.register_special_tokens({"<two words>": 1000})
    with pytest.raises(ValueError, match="the special token '<two words>' cannot be saved"):
        tokenizer.save(tmp_path / "a")
    tokenizer = trained()
    tokenizer.merges[1, 2] = 999
    with pytest.raises(ValueError, match=r"the merge with the id 999 cannot be saved: .* would give it 330"):
        tokenizer.save(tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"'.*a.model' does not begin with the line 'minbpe v1', but with ''"),
        ("minbpe v2\n\n0\n", "does not begin with the line 'minbpe v1', but with 'minbpe v2'"),
        ("minbpe v1\n", r"line 3 of '.*' should be the number of special tokens, but is the end of the file"),
        ("minbpe v1\n\nmany\n", "line 3 of '.*' should be the number of special tokens, but is 'many'"),
        (
            "minbpe v1\n\n1\n",
            "line 4 of '.*' should be a special token and its id, but is the end of the file",
        ),
        ("minbpe v1\n\n1\n<e>\n", "line 4 of '.*' should be a special token and its id, but is '<e>'"),
        ("minbpe v1\n\n0\n97\n", "line 4 of '.*' should be a new pair of ids below 256, but is '97'"),
        (
            "minbpe v1\n\n0\n97 98\n257 1\n",
            "line 5 of '.*' should be a new pair of ids below 257, but is '257 1'",
        ),
        ("minbpe v1\n\n0\n97 98\n97 98\n", "line 5 of '.*' should be a new pair"),
        ("minbpe v1\n\n0\n-1 98\n", "line 4 of '.*' should be a new pair"),
        ("minbpe v1\n\n0\n\n97 98\n", "line 4 of '.*' should be a new pair of ids below 256, but is ''"),
    ],
)
def test_damaged_files(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_text(content)
    tokenizer = trained()
    before = dict(tokenizer.merges), tokenizer.pattern, dict(tokenizer.special_tokens)
    with pytest.raises(ValueError, match=message):
        tokenizer.load(tmp_path / "a.model")
    assert (tokenizer.merges, tokenizer.pattern, tokenizer.special_tokens) == before


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"load\(\) reads the file that ends in .model, and 'a.vocab' does not"
    ):
        BasicTokenizer().load("a.vocab")
    with pytest.raises(FileNotFoundError):
        BasicTokenizer().load(tmp_path / "none.model")
    (tmp_path / "a.model").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not a file that minbpe has saved: it is not UTF-8"):
        BasicTokenizer().load(tmp_path / "a.model")


def test_random_damage_is_an_error_or_a_tokenizer(tmp_path: Path) -> None:
    trained().save(tmp_path / "whole")
    data = (tmp_path / "whole.model").read_bytes()
    rng = random.Random(SEED)
    for _ in range(examples(300)):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(damaged))
            damaged[at : at + rng.randint(0, 9)] = rng.choice(
                [b"", b"\n", b" ", b"9", b"-", b"\xff", b"x\n1"]
            )
        (tmp_path / "a.model").write_bytes(damaged)
        tokenizer = RegexTokenizer()
        try:
            tokenizer.load(tmp_path / "a.model")
            ids = tokenizer.encode("the cat <|fim|>", "all")
        except ValueError:
            continue
        assert all(id in tokenizer.vocab for id in ids)


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [BasicTokenizer, RegexTokenizer])
def test_errors(make: Any) -> None:
    tokenizer = make()
    with pytest.raises(AssertionError, match="vocab_size=255 is too small: the 256 bytes are pieces"):
        tokenizer.train("abc", 255)
    with pytest.raises(
        ValueError, match=r"after 2 merges no pair is left in the text; .* at most vocab_size=258"
    ):
        tokenizer.train("abc", 300)
    assert tokenizer.merges == {}
    with pytest.raises(ValueError, match="256 is no id of this vocabulary, which has 256"):
        tokenizer.decode([97, 256])
    with pytest.raises(NotImplementedError, match="Tokenizer cannot encode; BasicTokenizer can"):
        minbpe.Tokenizer().encode("a")


def test_imports_stay_small() -> None:
    """What is not used is not imported: neither by cpbpe itself nor by the tokenizer without a pattern."""
    code = "import sys, cpbpe; print('cpbpe.compat.minbpe' in sys.modules, 'regex' in sys.modules)"
    assert processes.output("-c", code).split() == ["False", "False"]
    code = (
        "import sys; from cpbpe.compat.minbpe import BasicTokenizer; t = BasicTokenizer(); "
        "t.train('abab', 257); print(t.encode('ab'), 'regex' in sys.modules)"
    )
    assert processes.output("-c", code).strip() == "[256] False"


# --- GPT-4 ----------------------------------------------------------------------------------------

GPT4_SPECIALS = """
<|endoftext|>Hello world this is one document
<|endoftext|><|fim_prefix|>And this one has<|fim_suffix|> tokens.<|fim_middle|> FIM
<|endoftext|>Last document!!! 👋<|endofprompt|>
""".strip()


@pytest.mark.slow
def test_gpt4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheels.file("cl100k", tmp_path)  # which has the name that tiktoken gives it
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    tokenizer, theirs = GPT4Tokenizer(), tiktoken.get_encoding("cl100k_base")
    for text in [*TEXTS, *texts(examples(600), CLASSES), LINES]:
        ids = tokenizer.encode(text)
        assert ids == theirs.encode(text)
        assert tokenizer.decode(ids) == text
    ids = tokenizer.encode(GPT4_SPECIALS, allowed_special="all")
    assert ids == theirs.encode(GPT4_SPECIALS, allowed_special="all")
    assert tokenizer.decode(ids) == GPT4_SPECIALS
    with pytest.raises(AssertionError):
        tokenizer.encode(GPT4_SPECIALS)

    # The bytes of `vocab` are permuted, as in minbpe; `save_vocab` writes them as they are.
    assert tokenizer.byte_shuffle[ord("!")] == 0
    assert tokenizer.vocab[0] == b"\0"
    assert len(tokenizer.merges) == 100_000
    tokenizer.save_vocab(tmp_path / "gpt4.vocab")
    lines = (tmp_path / "gpt4.vocab").read_text().split("\n")
    assert lines[:2] == ["[!] 0", '["] 1']
    assert lines[256:258] == ["[ ][ ] -> [  ] 256", "[  ][  ] -> [    ] 257"]
    with pytest.raises(NotImplementedError, match="GPT4Tokenizer is GPT-4's and is not trained"):
        tokenizer.train("a", 300)
    with pytest.raises(NotImplementedError, match="GPT4Tokenizer cannot be saved"):
        tokenizer.save("a")
    with pytest.raises(NotImplementedError, match="GPT4Tokenizer is GPT-4's and loads no files"):
        tokenizer.load("a.model")
    assert GPT4Tokenizer(path).merges == tokenizer.merges


def test_gpt4_without_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=r"cl100k_base.tiktoken is not in .*; or pass its path: GPT4Tokenizer\(path\)"
    ):
        GPT4Tokenizer()
    (tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4").write_bytes(b"IQ== 0\n")
    with pytest.raises(ValueError, match=r"is damaged, or not the file that is meant"):
        GPT4Tokenizer()


@pytest.mark.parametrize("engine", ENGINES)
def test_pickles(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a tokenizer that has encoded a long text, for which it has an engine."""
    monkeypatch.setenv("CPBPE_ENGINE", engine)
    made = trained()
    text = " ".join(corpus.SENTENCES)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again.encode_ordinary(text) == made.encode_ordinary(text)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again.encode_ordinary(text) == made.encode_ordinary(text)
