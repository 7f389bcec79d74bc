"""Models as tokenizer.json files: the other library gives our ids, or the refusal's text really differs."""

import json
import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
import sentencepiece
import tokenizers

import cpbpe
from cpbpe import ModelSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.formats.tokenizer_json.steps import pieces_of, splits_of
from cpbpe.model.spec import Carried
from tests.support import budget, json_files, tiers, zoo
from tests.support.json_files import CASES, EXACT, differing, ids_of, spec_of, texts_for, theirs, written

DAILY = ["llama", "user-defined-llama", "defaults without rules", "special without rules"]
cases = pytest.mark.parametrize("name", tiers.some(CASES, DAILY))
CANNOT = [name for name in (*zoo.TRAINED, *zoo.EDITED) if name not in EXACT]


def exact(name: str) -> bytes:
    made = written(name)
    assert not isinstance(made, cpbpe.ConversionError), str(made)
    return made.data


# --- Exact ----------------------------------------------------------------------------------------


@cases
def test_ids_and_decoded_text_are_the_same(name: str) -> None:
    spec = spec_of(name)
    tok = Tokenizer.from_spec(spec)
    other = theirs(exact(name))
    assert differing(tok, other, texts_for(spec, budget.examples(400), budget.SEED)) == []
    assert len(tok) == other.get_vocab_size()


@cases
def test_round_trips_are_fixed_points(name: str) -> None:
    """Back again: the same pieces and the same behaviour; and from then on the same file."""
    spec = spec_of(name)
    data = exact(name)
    again = read(data)
    assert again.differences == ()
    assert again.spec.pieces.texts == spec.pieces.texts
    assert write(again.spec).data == data
    tok, back = Tokenizer.from_spec(spec), Tokenizer.from_spec(again.spec)
    for text in texts_for(spec, budget.examples(100), budget.SEED):
        assert tok.encode(text) == back.encode(text)
        assert tok.decode(tok.encode(text)) == back.decode(tok.encode(text))
    assert Tokenizer.from_bytes(back.to_bytes()).spec.pieces == again.spec.pieces


def test_special_tokens_in_texts_are_the_same_where_they_are_allowed() -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens({"<|a|>": 700, "<|ab|>": 705})
    other = theirs(write(tok.spec).data)
    other.encode_special_tokens = False
    for text in ("<s>Hi</s> there<|a|><|ab|> x", "<|ab|>", " <s> <s>", "<|a|>b|>"):
        ids = tok.encode(text, allowed_special="all")
        assert ids == ids_of(other, text)
        assert tok.decode(ids, skip_special_tokens=True) == other.decode(ids)
    assert other.token_to_id("<|ab|>") == 705
    assert read(write(tok.spec).data).spec.added == ((b"<|a|>", 700), (b"<|ab|>", 705))


@pytest.mark.parametrize(
    "name",
    [
        *("llama", "no-prefix", "user-defined-llama", "defaults without rules", "suffix without rules"),
        *("user-defined without rules", "keep-spaces without rules"),
    ],
)
def test_texts_full_of_special_tokens(name: str) -> None:
    tok = Tokenizer.from_spec(spec_of(name)).with_special_tokens(["<|a|>", "<|a|>b"])
    made = write(tok.spec)
    assert "(<s>, </s>, <|a|>, ...)" in made.notes[0]
    other = theirs(made.data)
    other.encode_special_tokens = False
    chance = random.Random(budget.SEED)
    parts = [
        "<s>",
        "</s>",
        "<|a|>",
        "<|a|>b",
        " ",
        "  ",
        "▁",
        "a",
        "the",
        "<|im_start|>",
        "abra",
        "\n",
        "<mask>",
    ]
    for _ in range(budget.examples(300)):
        text = "".join(chance.choices(parts, k=chance.randint(1, 7)))
        ids = tok.encode(text, allowed_special="all")
        assert ids == ids_of(other, text), text
        assert tok.decode(ids, skip_special_tokens=True) == other.decode(ids), text


def test_special_tokens_of_one_character() -> None:
    made = written("special without rules")
    assert not isinstance(made, cpbpe.ConversionError)
    assert "special tokens of one character (a) are found only after a NUL" in made.notes
    assert "bos" in made.notes[-2]
    assert theirs(made.data).token_to_id("a") is None


def test_an_added_token_of_one_character_that_a_piece_holds() -> None:
    """Gemma has a piece of two tabs, and none of one: the BYTE piece is called so, unless a token is."""
    spec = spec_of("llama")
    rows = [*spec.pieces, Piece(b"\t\t", -1e6)]
    tok = Tokenizer.from_spec(replace(spec, pieces=Pieces.of(rows), file=None))
    names = json.loads(write(tok.spec).data)["model"]["vocab"]
    assert names["\t"] == tok.vocab["<0x09>"]
    with pytest.raises(cpbpe.ConversionError, match="merges characters that are no pieces"):
        write(tok.with_special_tokens(["\t"]).spec)


def with_ends(spec: ModelSpec, **options: bool) -> ModelSpec:
    return replace(spec, carried=Carried(options))


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("eos", [False, True])
def test_bos_and_eos(bos: bool, eos: bool) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    data = write(with_ends(tok.spec, add_bos=bos, add_eos=eos)).data
    other = theirs(data)
    assert other.encode("Hi").ids == tok.encode("Hi", add_bos=bos, add_eos=eos)
    pair = [id for text in ("Hi", "ab") for id in tok.encode(text, add_bos=bos, add_eos=eos)]
    assert other.encode("Hi", "ab").ids == pair
    asked = read(data).spec.carried.options
    assert (asked.get("add_bos", False), asked.get("add_eos", False)) == (bos, eos)
    with pytest.raises(ValueError, match="defines no bos piece"):
        write(with_ends(spec_of("no-bos-empty-surface without rules"), add_bos=True))


@pytest.mark.parametrize("flags", range(32))
def test_every_way_to_treat_spaces(flags: int) -> None:
    spec = spec_of("identity-no-fallback")
    prefix, squeeze, escape, suffix, before_space = (bool(flags & 1 << bit) for bit in range(5))
    rules = replace(
        spec.normalizer,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=squeeze,
        escape_whitespaces=escape,
        suffix=suffix,
        prefix_before_space=before_space,
    )
    for fallback in (False, True):
        base = spec_of("llama") if fallback else spec
        made = replace(base, normalizer=rules, file=None)
        tok = Tokenizer.from_spec(made)
        data = write(made).data
        assert write(read(data).spec).data == data
        other = theirs(data)
        some = [
            "",
            " ",
            "  ",
            "▁",
            "▁▁a",
            " ▁",
            "a ",
            " a",
            "a  b",
            "a ▁",
            "▁ ▁",
            "\n",
            "é☃ ☃",
            "▁\u2047",
            "\0 ",
        ]
        assert differing(tok, other, iter(some)) == []
        assert differing(tok, other, texts_for(made, budget.examples(100))) == []


@pytest.mark.parametrize(
    "name", ["identity-no-fallback", *(f"{n} without rules" for n in ("defaults", "special", "suffix"))]
)
def test_without_byte_fallback_all_ids_are_decoded_alike(name: str) -> None:
    spec = spec_of(name)
    tok, other = Tokenizer.from_spec(spec), theirs(exact(name))
    chance = random.Random(budget.SEED)
    first = [id for id, text in enumerate(spec.pieces.texts) if text.startswith("▁".encode()) or id < 4]
    for _ in range(budget.examples(500)):
        ids = chance.choices(first, k=chance.randint(0, 3)) + chance.choices(
            range(len(tok)), k=chance.randint(0, 3)
        )
        assert tok.decode(ids) == other.decode(ids), ids


# --- User-defined pieces --------------------------------------------------------------------------


def test_what_stands_between_user_defined_pieces() -> None:
    """Tokens that no merge makes are not taken whole there, although ignore_merges is on."""
    spec = spec_of("user-defined-llama")
    tok, other = Tokenizer.from_spec(spec), theirs(exact("user-defined-llama"))
    names = [text.decode() for text in spec.pieces.texts]
    assert differing(tok, other, (f"<|im_start|>{name}\n{name}<|im_end|>" for name in names)) == []


@pytest.mark.parametrize(
    "pieces",
    [
        ["a"],
        ["a", "ab", "abc", "b"],
        ["a.b", "a*", "a(?:", "|", "||", "\\", "\\z", "[x]", "{2}", "^", "$", "?", "a?"],
        ["=" * length for length in range(1, 60)],
        ["🦙", "🦙🦙", "\n", "\t\n", "▁", "▁▁▁"],
    ],
)
def test_regular_expressions_of_user_defined_pieces(pieces: list[str]) -> None:
    assert sorted(pieces_of(splits_of(pieces, {})) or ()) == sorted(pieces)
    assert sorted(pieces_of(splits_of(pieces, {"<s>": 1})) or ()) == sorted(pieces)
    for pattern in ("a+", "(?:a|b", "a)|b"):
        assert pieces_of([{"type": "Split", "pattern": {"Regex": pattern}}]) is None


# --- Refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CANNOT)
def test_what_is_refused_differs(name: str) -> None:
    """The text in the error has other ids, or is decoded in another way, in the file that is made anyway."""
    error = written(name)
    assert isinstance(error, cpbpe.ConversionError)
    if name.startswith("broken"):
        assert "is not UTF-8" in str(error)
        return
    spec = spec_of(name)
    tok = Tokenizer.from_spec(spec)
    if name.startswith("charsmap-broken"):
        with pytest.raises(cpbpe.ConversionError, match="not UTF-8"):
            write(spec, allow_differences=True)
        return
    made = write(spec, allow_differences=True)
    assert made.differences == error.differences != ()
    assert "pass allow_differences=True" in str(error)
    other = theirs(made.data)
    for _, text in made.differences:
        if text is not None:
            assert differing(tok, other, iter([text])) == [text]
            assert repr(text) in str(error) or len(made.differences) > 3
    assert (
        any(text is not None for _, text in made.differences) or spec.normalizer.charsmap or spec.denormalizer
    )


def toy(*pieces: tuple[str, float, PieceType] | tuple[str, float], **options: object) -> ModelSpec:
    """A model of a few pieces, without byte fallback, that leaves spaces alone."""
    rows = [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
    rows += [Piece(text.encode(), score, *rest) for text, score, *rest in pieces]
    spec = ModelSpec(Pieces.of(rows), **options)  # type: ignore[arg-type]
    plain = replace(spec.normalizer, add_dummy_prefix=False, remove_extra_whitespaces=False)
    return replace(spec, normalizer=plain)


LETTERS = [(letter, -9.0) for letter in "abcde"]
UNUSED, CONTROL, USER_DEFINED = PieceType.UNUSED, PieceType.CONTROL, PieceType.USER_DEFINED
TOYS: dict[str, tuple[ModelSpec, str | None]] = {
    "equal scores": (toy(*LETTERS, ("ab", -1), ("bc", -1)), None),
    "equal scores, each before the other": (toy(*LETTERS, ("ab", -1), ("bc", -1), ("ca", -1)), "bca"),
    "a character is no piece": (toy(("a", -9), ("ax", -1)), "ax"),
    "a control piece is a character": (toy(*LETTERS, (".", 0, CONTROL)), None),
    "and merges": (toy(*LETTERS, (".", 0, CONTROL), ("..", -1)), ".."),
    "an unused piece, last": (toy(*LETTERS, ("bc", -1), ("ab", -2, UNUSED)), None),
    "an unused piece, first": (toy(*LETTERS, ("ab", -1, UNUSED), ("bc", -2)), "abc"),
    "an unused piece that is a part": (toy(*LETTERS, ("ab", -1, UNUSED), ("abc", -2)), "ab"),
    "an unused piece, first, that nothing wants": (toy(*LETTERS, ("ab", -1, UNUSED), ("cd", -2)), None),
    "an unused character": (toy(*LETTERS, ("x", -9, UNUSED)), None),
    "an unknown piece that is a character": (
        replace(toy(*LETTERS), special_pieces=(b"?", b"", b"", b"")),
        None,
    ),
    "user-defined pieces": (toy(*LETTERS, ("ab", 0, USER_DEFINED), ("bc", -1), ("abcd", -2)), None),
    "user-defined with two spaces": (
        replace(toy(*LETTERS, ("▁", -9), ("a  b", 0, USER_DEFINED)), normalizer=cpbpe.NormalizerSpec()),
        "a  b",
    ),
    "no rule about scores": (toy(*LETTERS, ("ab", -5), ("abc", -1), ("cd", -3), ("bcd", 7)), None),
}


@pytest.mark.parametrize("name", TOYS)
def test_toys(name: str) -> None:
    spec, text = TOYS[name]
    tok = Tokenizer.from_spec(spec)
    if text is not None:
        with pytest.raises(cpbpe.ConversionError) as caught:
            write(spec)
        assert [shown for _, shown in caught.value.differences] == [text]
    other = theirs(write(spec, allow_differences=text is not None).data)
    found = differing(tok, other, words("abcdx.? ", 5))
    assert found == [] if text is None else found


def words(letters: str, longest: int) -> Iterator[str]:
    """All texts over a few letters."""
    texts = [""]
    for _ in range(longest):
        texts = [text + letter for text in texts for letter in letters]
        yield from texts


def test_a_long_way_to_split_unused_pieces() -> None:
    """sentencepiece stops at a depth of 100, and returns what it has."""
    for depth in (101, 102):
        chain = [("b" + "a" * length, -float(length), UNUSED) for length in range(1, depth + 1)]
        spec = toy(("a", -999.0), ("b", -999.0), *chain)
        tok = Tokenizer.from_spec(spec)
        text = "b" + "a" * depth
        if depth == 101:
            assert differing(tok, theirs(write(spec).data), iter([text])) == []
            continue
        with pytest.raises(cpbpe.ConversionError, match="splits UNUSED pieces again"):
            write(spec)
        assert differing(tok, theirs(write(spec, allow_differences=True).data), iter([text])) == [text]


# --- Files ----------------------------------------------------------------------------------------


def test_saving_and_loading(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    path = tmp_path / "tokenizer.json"
    tok.using(add_bos=True).save(path)
    assert theirs(path.read_bytes()).encode("Hi there").ids == tok.encode("Hi there", add_bos=True)
    for source in (path, tmp_path):
        again = cpbpe.load(source)
        assert again.encode("Hi there") == tok.encode("Hi there")
        assert again.vocab["<s>"] == 1 == again.bos_id
    tok.save(tmp_path / "my.model")
    both = cpbpe.load(tmp_path)
    assert both.settings == tok.settings != again.settings  # the .model is preferred
    assert both.file_options == {"add_bos": True}  # and what the other file does around texts is known
    with pytest.raises(cpbpe.ConversionError, match="splits UNUSED"):
        Tokenizer.from_bytes(zoo.model("unused")).save(path)
    assert cpbpe.load(path).encode("Hi") == tok.encode("Hi")  # nothing was written


def test_an_id_that_no_token_has(tmp_path: Path) -> None:
    spec = spec_of("llama")
    tok = Tokenizer.from_spec(replace(spec, added=((b"<x>", len(spec.pieces) + 3),)))
    tok.save(tmp_path / "tokenizer.json")
    other = theirs((tmp_path / "tokenizer.json").read_bytes())
    other.encode_special_tokens = False
    assert other.encode("Hi<x>").ids == tok.encode("Hi<x>", allowed_special="all")
    assert cpbpe.load(tmp_path / "tokenizer.json").spec.added == tok.spec.added


def test_a_prefix_only_where_no_space_is(tmp_path: Path) -> None:
    """sentencepiece cannot do that: a .model file is written only if differences are allowed."""
    spec = spec_of("user-defined-llama")
    spec = replace(spec, normalizer=replace(spec.normalizer, prefix_before_space=False), file=None)
    source, made, again = tmp_path / "tokenizer.json", tmp_path / "a.model", tmp_path / "b.json"
    tok = Tokenizer.from_spec(spec)
    tok.save(source)
    for write_it in (lambda: cpbpe.convert(source, made), lambda: tok.save(made)):
        with pytest.raises(
            cpbpe.ConversionError, match=r"in front of every text.*in the text ' a'"
        ) as caught:
            write_it()
        assert not made.exists()
    shown = caught.value.differences[0][1] or ""
    conversion = cpbpe.convert(source, made, allow_differences=True)
    assert conversion.differences == caught.value.differences
    sp = sentencepiece.SentencePieceProcessor(model_file=str(made))
    assert sp.encode(shown) != tok.encode(shown)
    assert sp.encode("a b") == tok.encode("a b")
    assert cpbpe.load(made).encode(shown) == tok.encode(shown)
    assert cpbpe.convert(made, again).is_exact
    assert again.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", ["m.gguf", "m.bin", "m.vocab"])
def test_formats_that_put_a_prefix_also_before_spaces(tmp_path: Path, name: str) -> None:
    spec = spec_of("llama")
    spec = replace(spec, normalizer=replace(spec.normalizer, prefix_before_space=False), file=None)
    Tokenizer.from_spec(spec).save(tmp_path / "m.json")
    target = tmp_path / name
    with pytest.raises(
        cpbpe.ConversionError, match=r"in front of text that begins|text without a space in front"
    ):
        cpbpe.convert(tmp_path / "m.json", target)
    done = cpbpe.convert(tmp_path / "m.json", target, allow_differences=True)
    assert name == "m.vocab" or " a" in [text for _, text in done.differences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (a .vocab says nothing of settings)
        read = cpbpe.load(target)
    assert read.encode(" a") != Tokenizer.from_spec(spec).encode(" a")


def test_converting(tmp_path: Path) -> None:
    source, made, back = tmp_path / "a.model", tmp_path / "b.json", tmp_path / "c.model"
    source.write_bytes(zoo.model("llama"))
    conversion = cpbpe.convert(source, made, add_bos=True)
    assert conversion.is_exact
    assert conversion.tried == f"300 texts with tokenizers {tokenizers.__version__}"
    assert any("special tokens" in note for note in conversion.notes)
    assert cpbpe.convert(made, tmp_path / "same.json").is_exact
    assert (tmp_path / "same.json").read_bytes() == made.read_bytes()
    conversion = cpbpe.convert(made, back)
    assert any("only cpbpe reads" in note for note in conversion.notes)
    assert cpbpe.load(back).file_options == {"add_bos": True}
    assert cpbpe.convert(back, tmp_path / "same.json").is_exact
    assert (tmp_path / "same.json").read_bytes() == made.read_bytes()
    assert cpbpe.load(back).encode("abra cadabra") == cpbpe.load(source).encode("abra cadabra")
    source.write_bytes(zoo.model("defaults"))
    with pytest.raises(cpbpe.ConversionError, match="normalizer 'nmt_nfkc'"):
        cpbpe.convert(source, made)
    conversion = cpbpe.convert(source, made, allow_differences=True)
    assert not conversion.is_exact
    assert conversion.differences[0][1] is not None
    with pytest.raises(cpbpe.ConversionError, match="charsmap"):
        cpbpe.load(made)
    assert cpbpe.convert(made, back, allow_differences=True).differences
    assert cpbpe.load(back).spec.normalizer.charsmap == cpbpe.load(source).spec.normalizer.charsmap


def test_a_library_that_does_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it should do was proved, but a conversion is tried with what is installed."""
    source, made = tmp_path / "a.model", tmp_path / "b.json"
    source.write_bytes(zoo.model("llama"))
    real = tokenizers.Tokenizer.from_str

    class Other:
        from_str = staticmethod(lambda text: real(text.replace('"fuse_unk":true', '"dropout":0.9')))

    monkeypatch.setattr(tokenizers, "Tokenizer", Other)
    with pytest.raises(cpbpe.ConversionError, match=r"^nothing was written: tokenizers .* for example for '"):
        cpbpe.convert(source, made)
    assert not made.exists()
    monkeypatch.setattr(metadata, "version", lambda name: "0.19.1")
    assert cpbpe.convert(source, made).tried is None


def test_a_file_that_the_library_refuses(tmp_path: Path) -> None:
    """tokenizers wants the version in front, which cpbpe does not need."""
    source = tmp_path / "a.json"
    data = write(spec_of("llama")).data
    source.write_bytes(data.replace(b'"version"', b'"Version"', 1))
    assert cpbpe.load(source).encode("a")
    with pytest.raises(cpbpe.ConversionError, match=r"^nothing was written: tokenizers .* does not read the"):
        cpbpe.convert(source, tmp_path / "b.model")
    assert not (tmp_path / "b.model").exists()


def test_the_file_is_what_the_library_would_write() -> None:
    """It reads and writes it without losing anything."""
    for name in ("llama", "user-defined-llama", "nul"):
        data = exact(name)
        assert json.loads(json_files.theirs(data).to_str()) == json.loads(data)
