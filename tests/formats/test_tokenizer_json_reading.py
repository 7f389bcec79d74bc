"""tokenizer.json files as others write them: our ids are the library's, or the refusal's text differs."""

import copy
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

import cpbpe
from cpbpe import PieceType, Tokenizer
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.formats.values import ReadModel
from tests.bytes.models import model as byte_model
from tests.support import budget, json_files, zoo
from tests.support.json_files import (
    Json,
    added,
    all_splits,
    dumped,
    gemma,
    ids_of,
    llama,
    metaspace,
    phi3,
    texts_for,
    theirs,
    with_model,
)


def shuffled() -> Json:
    content = copy.deepcopy(all_splits())
    random.Random(budget.SEED).shuffle(content["model"]["merges"])
    return content


def thinned() -> Json:
    """Many tokens that no merge makes, and that sentencepiece would make."""
    content = shuffled()
    return with_model(content, merges=content["model"]["merges"][::3])


def merges_as_text() -> Json:
    content = llama()
    return with_model(content, merges=[" ".join(pair) for pair in content["model"]["merges"]])


EXACT: dict[str, Callable[[], Json]] = {
    "llama": llama,
    "no fallback": lambda: llama(fallback=False),
    "escaped first": lambda: {
        **llama(),
        "normalizer": {"type": "Sequence", "normalizers": [json_files.ESCAPE, json_files.PREFIX]},
    },
    "gemma": gemma,
    "gemma without a byte": lambda: without_a_byte(),
    "phi3": phi3,
    "every split": all_splits,
    "shuffled": shuffled,
    "thinned": thinned,
    "merges as text": merges_as_text,
    **{
        f"metaspace, {scheme}, {'split' if split else 'whole'}": partial(metaspace, scheme, split)
        for scheme in ("never", "always", "first")
        for split in (False, True)
    },
    "metaspace after a prefix": lambda: {
        **llama(),
        "pre_tokenizer": metaspace("first", False)["pre_tokenizer"],
    },
    "listed twice": lambda: with_model(
        llama(), merges=[*llama()["model"]["merges"][:50], *llama()["model"]["merges"]]
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_ids_are_the_same(name: str) -> None:
    data = dumped(EXACT[name]())
    found = read(data)
    assert found.differences == ()
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    spelled = [token["content"] for token in EXACT[name]()["added_tokens"]]
    for text in texts_for(found.spec, budget.examples(400), budget.SEED):
        if not any(token in text for token in spelled if token not in ("<table>",)):
            ids = tok.encode(text)
            assert ids == ids_of(other, text), text
            if not any("decoding" in note for note in found.assumptions):
                assert tok.decode(ids) == other.decode(ids), text
    # From then on, it is our own form.
    again = write(found.spec).data
    assert read(again).spec.pieces == found.spec.pieces
    assert write(read(again).spec).data == again


def test_what_the_forms_say() -> None:
    found = read(dumped(llama()))
    assert found.spec.carried.options["add_bos"]
    assert (found.spec.bos_id, found.spec.eos_id, found.spec.unk_id) == (1, 2, 0)
    found = read(dumped(gemma()))
    types = dict(zip(found.spec.pieces.texts, found.spec.pieces.types, strict=True))
    assert types[b"<table>"] == PieceType.USER_DEFINED
    assert found.spec.added == ((b"<start_of_turn>", 901),)
    assert Tokenizer.from_spec(found.spec).encode_pieces("a<table>a") == ["a", "<table>", "a"]
    found = read(dumped(phi3()))
    assert found.spec.added == ((b"<|end|>", 900), (b"<|user|>", 901))
    assert found.spec.carried.tokens == {
        "</s>": ("plain", "rstrip"),
        "<|end|>": ("rstrip",),
        "<|user|>": ("rstrip",),
    }
    unused = {piece.type for piece in read(dumped(thinned())).spec.pieces}
    assert PieceType.UNUSED in unused


def test_special_tokens_in_texts_are_the_same_where_they_are_allowed() -> None:
    """Llama's form puts a prefix after a special token, as cpbpe does; Gemma's does not."""
    for content in (llama(), gemma()):
        data = dumped(content)
        tok, other = Tokenizer.from_spec(read(data).spec), theirs(data)
        other.encode_special_tokens = False
        for text in ("<s>Hi</s> there", "</s>", "a<s> <s>b"):
            assert tok.encode(text, allowed_special="all") == ids_of(other, text)


def without_a_byte() -> Json:
    """As Gemma's files (there it is a tab): the BYTE piece of a DEL character is called by the character, which is a part of longer tokens."""
    content = gemma()
    ids: dict[str, int] = content["model"]["vocab"]
    content["model"]["vocab"] = {
        {"<0x7F>": "\x7f", "es": "\x7f\x7f", "ing": "\x7fa"}.get(token, token): id
        for token, id in ids.items()
    }
    merges = [pair for pair in content["model"]["merges"] if not {"es", "ing"} & {*pair, "".join(pair)}]
    return with_model(content, merges=[["\x7f", "a"], ["\x7f", "\x7f"], *merges])


def test_a_byte_that_is_called_by_its_character(tmp_path: Path) -> None:
    data = dumped(without_a_byte())
    found = read(data)
    assert found.spec.pieces[130] == (b"<0x7F>", 0, PieceType.BYTE)
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    for text in (
        "\x7f",
        "\x7fa",
        "\x7f\x7fa",
        "\x7f\x7f\x7fb",
        "<0x7F>",
        "\x7f<0x7F>\x7f\x7f",
        "a\x7fés\x7f",
    ):
        assert tok.encode(text) == ids_of(other, text), text
        assert tok.decode(tok.encode(text)) == other.decode(tok.encode(text)) == text
    assert write(found.spec).differences == ()
    assert read(write(found.spec).data).spec.pieces == found.spec.pieces
    tok.save(tmp_path / "tokenizer.json")
    assert json.loads((tmp_path / "tokenizer.json").read_bytes())["model"]["vocab"]["\x7f"] == 130


@pytest.mark.parametrize("scheme", ["always", "first"])
def test_metaspace_and_special_tokens(scheme: str) -> None:
    """The scheme says whether text after a special token gets a prefix, and so does an option of ours."""
    data = dumped(metaspace(scheme, False))
    found = read(data)
    assert found.spec.carried.options.get("prefix_after_special", True) == (scheme == "always")
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    tok = tok.using(allowed_special="all", prefix_after_special=scheme == "always")
    other.encode_special_tokens = False
    for text in ("<s>Hi</s> there", "</s>", "a<s> <s>b", " <s> a", "<s>  a", "", " ", "▁", "▁<s>▁a"):
        assert tok.encode(text) == ids_of(other, text), text
    assert json.loads(write(found.spec).data)["pre_tokenizer"] == metaspace(scheme, False)["pre_tokenizer"]


def test_an_unknown_token_that_is_special_is_shown_if_all_are(engine: str) -> None:
    library = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    library.pre_tokenizer, library.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>", "</s>"], show_progress=False)
    library.train_from_iterator(["the cat sat"] * 9, trainer)
    tok = Tokenizer.from_spec(read(library.to_str().encode()).spec)
    for text in ("the q cat", "qq", "the qq</s>cat q", " q q ", ""):
        ids = library.encode(text).ids
        for skip in (True, False):
            expected = library.decode(ids, skip_special_tokens=skip)
            stream = tok.stream_decoder(skip_special_tokens=skip)
            assert tok.decode(ids, skip_special_tokens=skip) == expected
            assert "".join([*map(stream.push, ids), stream.flush()]) == expected


def test_a_user_defined_token_between_special_ones() -> None:
    """Ids of pieces have no gaps: what comes before a USER_DEFINED piece is a piece, too."""
    content = gemma()
    content["added_tokens"] = [
        *content["added_tokens"][:3],
        added(900, "<x>", True),
        added(901, "<y>", False),
    ]
    found = read(dumped(content))
    assert [piece.type for piece in found.spec.pieces][900:] == [PieceType.CONTROL, PieceType.USER_DEFINED]


# --- Not exact ------------------------------------------------------------------------------------


def unknown_made_by_merges() -> Json:
    content = llama(fallback=False)
    ids = content["model"]["vocab"]
    vocab = {**{token: id for token, id in ids.items() if id < 890}, "<": 890, "u": 891, "<u": 892}
    vocab = {token: id for id, token in enumerate(sorted(vocab, key=vocab.__getitem__))}
    merges = [pair for pair in content["model"]["merges"] if {*pair, "".join(pair)} <= vocab.keys()]
    content["added_tokens"] = []
    content["post_processor"] = None
    return with_model(content, vocab=vocab, merges=[["<", "u"], *merges], unk_token="<u")


def padding(strategy: Any, multiple: int | None) -> Json:
    return {
        "strategy": strategy,
        "direction": "Right",
        "pad_to_multiple_of": multiple,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<unk>",
    }


DIFFERENT: dict[str, tuple[Callable[[], Json], str]] = {
    "unknown characters apart": (
        lambda: with_model(llama(fallback=False), fuse_unk=False),
        "fuse_unk is off",
    ),
    "ignore_merges": (lambda: with_model(thinned(), ignore_merges=True), "ignore_merges"),
    "unknown made by merges": (unknown_made_by_merges, "merges make '<u'"),
    "dropout": (lambda: with_model(llama(), dropout=0.1), "at random"),
    "truncation": (
        lambda: {
            **llama(),
            "truncation": {"max_length": 3, "direction": "Right", "strategy": "LongestFirst", "stride": 0},
        },
        "cuts every text to 3 tokens",
    ),
    "truncation without byte fallback": (
        lambda: {
            **llama(fallback=False),
            "truncation": {"max_length": 8, "direction": "Left", "strategy": "LongestFirst", "stride": 0},
        },
        "cuts every text to 8 tokens",
    ),
    "padding to a length": (lambda: {**llama(), "padding": padding({"Fixed": 5}, None)}, "up to 5 tokens"),
    "padding to a multiple": (
        lambda: {**llama(), "padding": padding("BatchLongest", 4)},
        "up to a multiple of 4 tokens",
    ),
    "isolated, but not taken whole": (
        lambda: with_model(json.loads(write(read(dumped(gemma())).spec).data), ignore_merges=False),
        "isolated, but not taken whole",
    ),
    "split, and taken whole": (
        lambda: with_model(metaspace("never", True), ignore_merges=True),
        "a text that is a token is not merged",
    ),
    "an unknown token that is a character": (
        lambda: with_model(llama(fallback=False), unk_token="a"),
        "its unknown token is a character",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_refused_differs(name: str) -> None:
    make, message = DIFFERENT[name]
    data = dumped(make())
    with pytest.raises(cpbpe.ConversionError, match="no SentencePiece model is exactly") as caught:
        read(data)
    assert message in str(caught.value)
    with pytest.raises(cpbpe.ConversionError):
        Tokenizer.from_bytes(data)
    found = read(data, allow_differences=True)
    assert found.differences == caught.value.differences
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    for _, text in found.differences:
        if text is not None:
            assert tok.encode(text) != ids_of(other, text)


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


DOUBLE = {"type": "Replace", "pattern": {"Regex": r"\A▁"}, "content": "▁▁"}


def with_normalizer(step: Json) -> Json:
    return {**llama(), "normalizer": step}


def with_template(single: str, id: int = 1) -> Json:
    template = processors.TemplateProcessing(single=single, special_tokens=[("<s>", id), ("</s>", 2)])
    return {**llama(), "post_processor": json.loads(template.__getstate__())}


CANNOT: dict[str, tuple[Callable[[], Json], str]] = {
    "a prefix twice": (
        lambda: {
            **metaspace("always", True),
            "normalizer": {"type": "Sequence", "normalizers": [json_files.PREFIX, json_files.ESCAPE, DOUBLE]},
        },
        "its normalizer (before Metaspace) is Prepend, Replace of ",
    ),
    "byte level": (lambda: {**llama(), "pre_tokenizer": BYTE_LEVEL}, "its normalizer is Prepend, Replace"),
    "byte level in a sequence": (
        lambda: {**llama(), "decoder": {"type": "Sequence", "decoders": [BYTE_LEVEL]}},
        "it is byte-level BPE, and its pre-tokenizer does not end with ByteLevel, but is none",
    ),
    "unigram": (
        lambda: {**llama(), "model": {"type": "Unigram", "vocab": [["a", 0.0]]}},
        "it is a Unigram model",
    ),
    "unigram without a type": (
        lambda: {**llama(), "model": {"vocab": [["a", 0.0]]}},
        "it is a Unigram model",
    ),
    "wordpiece": (
        lambda: {**llama(), "model": {"type": "WordPiece", "vocab": {}}},
        "WordPiece model (as in BERT)",
    ),
    "words": (
        lambda: {**llama(), "model": {"type": "WordLevel", "vocab": {}}},
        "WordLevel model (whole words)",
    ),
    "new model": (lambda: {**llama(), "model": {"type": "New", "vocab": {}}}, "model.type is 'New'"),
    **{
        f"normalizer {step['type']}": (
            partial(with_normalizer, step),
            f"its normalizer is {step['type']}; SentencePiece BPE cannot do that",
        )
        for step in (
            {"type": "StripAccents"},
            {"type": "Nmt"},
            {"type": "Strip", "strip_left": True, "strip_right": True},
            {"type": "Lowercase"},
        )
    },
    "a Unicode form": (
        partial(with_normalizer, {"type": "NFKC"}),
        "its normalizer is NFKC, which brings any number of accents into order ('a\\u0301\\u0323' becomes",
    ),
    "a byte-level normalizer": (
        lambda: with_normalizer({"type": "ByteLevel"}),
        "it is byte-level BPE, and its pre-tokenizer does not end with ByteLevel, but is none",
    ),
    "another prefix": (
        lambda: with_normalizer({"type": "Prepend", "prepend": "_"}),
        "its normalizer is Prepend; SentencePiece BPE cannot do that",
    ),
    "another replacement": (
        lambda: with_normalizer({"type": "Replace", "pattern": {"String": "a"}, "content": "b"}),
        "its normalizer is Replace of {'String': 'a'}; SentencePiece BPE cannot do that",
    ),
    "metaspace with another character": (
        lambda: {**metaspace("first", False), "pre_tokenizer": {"type": "Metaspace", "replacement": "_"}},
        "its pre-tokenizer is Metaspace",
    ),
    "two tokens in front": (
        lambda: with_template("<s> </s> $A"),
        "its post-processor is TemplateProcessing, and does more",
    ),
    "a token in front that has another id": (
        lambda: with_template("<s> $A", 2),
        "its post-processor is TemplateProcessing, and does more",
    ),
    "normalizers": (
        lambda: {
            **llama(),
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, json_files.ESCAPE]},
        },
        "its normalizer is Lowercase, Replace of {'String': ' '}; ",
    ),
    "pre-tokenizer": (
        lambda: {**llama(), "pre_tokenizer": {"type": "Whitespace"}},
        "its pre-tokenizer is Whitespace",
    ),
    "regular expression": (
        lambda: {
            **llama(),
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": "\\d"},
                "behavior": "Isolated",
                "invert": False,
            },
        },
        "its pre-tokenizer is Split of {'Regex': '",
    ),
    "prefix": (
        lambda: with_model(llama(), continuing_subword_prefix="##"),
        "continuing_subword_prefix is '##'",
    ),
    "suffix": (lambda: with_model(llama(), end_of_word_suffix="</w>"), "end_of_word_suffix is '</w>'"),
    "post-processor": (
        lambda: {
            **llama(),
            "post_processor": {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]},
        },
        "its post-processor is BertProcessing",
    ),
    "unknown characters left out": (
        lambda: with_model(llama(fallback=False), unk_token=None),
        "leaves out unknown characters",
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_sentencepiece_cannot_do_is_named(name: str) -> None:
    make, message = CANNOT[name]
    for allow in (False, True):
        with pytest.raises(cpbpe.ModelError) as caught:
            read(dumped(make()), allow_differences=allow)
        assert message in str(caught.value)


def test_what_is_only_noted() -> None:
    """What shows only in texts that spell out the unknown token, in batches, or in decoding."""
    assert "fills up the shorter texts of a batch" in noted(
        {**llama(), "padding": padding("BatchLongest", None)}
    )
    assert "finds the unknown token <unk> in every text" in noted(llama())


@pytest.mark.parametrize("family", ["characters", "bytes"])
def test_a_decoder_that_does_something_else_is_warned_of(family: str, tmp_path: Path) -> None:
    content = llama() if family == "characters" else json.loads(write(byte_model(None)).data)
    path = tmp_path / "tokenizer.json"
    path.write_bytes(dumped(content))
    cpbpe.load(path)
    path.write_bytes(dumped({**content, "decoder": None}))
    with pytest.warns(UserWarning, match="its decoder is none"):
        cpbpe.load(path)
    assert any("its decoder is none" in note for note in cpbpe.convert(path, tmp_path / "t.model").notes)


def noted(content: Json) -> str:
    found = read(dumped(content))
    assert found.differences == ()
    return "\n".join(found.notes)


def test_a_sequence_of_one_post_processor() -> None:
    content = llama()
    content["post_processor"] = {"type": "Sequence", "processors": [content["post_processor"]]}
    assert read(dumped(content)).spec.carried.options["add_bos"]


def test_a_model_of_another_form_becomes_a_model_file() -> None:
    found: ReadModel = read(dumped(gemma()))
    tok = Tokenizer.from_bytes(dumped(gemma()))
    assert tok.to_bytes() == Tokenizer.from_bytes(tok.to_bytes()).to_bytes()
    assert tok.spec.pieces == found.spec.pieces
    assert zoo.parse(tok.to_bytes()).trainer_spec.model_type == zoo.parse(zoo.model("llama")).trainer_spec.BPE
