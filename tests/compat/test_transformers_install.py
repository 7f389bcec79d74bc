"""After `install("transformers")`, fast tokenizers do what they did before, and cpbpe encodes for them."""

import copy
import json
import logging
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from tokenizers.decoders import DecodeStream
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import cpbpe
import cpbpe.compat
from cpbpe.compat.tokenizers import Encoding
from cpbpe.text.split_patterns import PATTERNS
from tests.compat.test_saved_folders import models as models
from tests.support import budget, json_files, saved_folders
from tests.support.json_files import CASES, texts_for
from tests.support.json_tokenizers import BYTE_LEVEL, columns, model, spec


@contextmanager
def installed() -> Iterator[None]:
    cpbpe.compat.install("transformers")
    try:
        yield
    finally:
        cpbpe.compat.uninstall("transformers")


def both(folder: Path, **options: Any) -> tuple[Any, Any]:
    """A folder as transformers loads it, and on cpbpe."""
    theirs = AutoTokenizer.from_pretrained(folder, **options)
    with installed():
        ours = AutoTokenizer.from_pretrained(folder, **options)
    assert type(ours) is type(theirs)
    return theirs, ours


def on_cpbpe(tokenizer: Any) -> bool:
    return isinstance(tokenizer("a").encodings[0], Encoding)


# --- Random calls -----------------------------------------------------------------------------------


def a_text(chance: random.Random, texts: Any, words: bool) -> Any:
    return chance.choices(texts, k=chance.randint(0, 4)) if words else chance.choice(texts)


def a_call(chance: random.Random, texts: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for a call of a tokenizer: a text, a pair or a batch, with any options."""
    words = chance.random() < 0.3
    batch = chance.random() < 0.5
    count = chance.randint(1, 4)
    args = []
    for _ in range(chance.choice([1, 1, 2])):
        made = [a_text(chance, texts, words) for _ in range(count)]
        args.append(made if batch else made[0])
    options = {
        "is_split_into_words": words,
        "add_special_tokens": chance.random() < 0.7,
        "padding": chance.choice([False, False, True, "max_length"]),
        "truncation": chance.choice([False, False, True, "only_first", "only_second"]),
        "max_length": chance.choice([None, 2, 5, 9, 40]),
        "stride": chance.choice([0, 0, 1, 2]),
        "return_overflowing_tokens": chance.random() < 0.5,
        "return_offsets_mapping": chance.random() < 0.5,
        "return_special_tokens_mask": chance.random() < 0.5,
        "return_token_type_ids": chance.random() < 0.5,
        "return_length": chance.random() < 0.3,
        "return_tensors": chance.choice([None, None, None, "np"]),
        "pad_to_multiple_of": chance.choice([None, None, 4]),
        "padding_side": chance.choice([None, "left", "right"]),
        "split_special_tokens": chance.choice([None, True, False]),
    }
    kept = chance.sample(sorted(options), chance.randint(0, len(options)))
    return args, {"is_split_into_words": words, **{name: options[name] for name in kept}}


def questions(batch: Any) -> Any:
    """What the encodings of a batch answer, text by text."""
    found = []
    for at, encoding in enumerate(batch.encodings or ()):
        places = range(min(len(encoding.ids), 12))
        found.append(columns(encoding))
        found += [batch.token_to_chars(at, place) for place in places]
        found += [batch.char_to_token(at, place, number) for place in range(12) for number in range(2)]
        found += [encoding.word_to_tokens(place, number) for place in range(4) for number in range(2)]
        found += [encoding.word_to_chars(place, number) for place in range(4) for number in range(2)]
        found += [encoding.char_to_word(place) for place in range(4)]
    return found


def said(method: Any, *args: Any, **options: Any) -> Any:
    """What a call returns, or its error. (Where tokenizers panics, that is no Exception.)"""
    try:
        result = method(*args, **options)
    except BaseException as error:
        return type(error).__name__, str(error)
    if not isinstance(result, transformers.BatchEncoding):
        return result
    return {name: plain(value) for name, value in result.items()}, questions(result)


def plain(value: Any) -> Any:
    """Arrays, and lists of them, as lists."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def decoded(chance: random.Random, tokenizer: Any, ids: list[int]) -> Any:
    rows = [ids, ids[::-1], ids[1:], [chance.randrange(len(tokenizer) + 2) for _ in range(5)]]
    options = [
        {"skip_special_tokens": skips, "clean_up_tokenization_spaces": cleans}
        for skips in (True, False)
        for cleans in (None, True, False)
    ]
    return [
        *(tokenizer.batch_decode(rows, **chosen) for chosen in options),
        *(tokenizer.decode(row) for row in rows),
        *(tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=skips) for skips in (True, False)),
        tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens(ids)),
    ]


def compare(theirs: Any, ours: Any, texts: Any, calls: int, seed: int = budget.SEED) -> None:
    chance = random.Random(seed)
    if theirs.pad_token is None and chance.random() < 0.9:
        for tokenizer in (theirs, ours):
            tokenizer.pad_token = tokenizer.eos_token
    for _ in range(calls):
        args, options = a_call(chance, texts)
        theirs.truncation_side = ours.truncation_side = chance.choice(["left", "right"])
        assert said(ours, *args, **options) == said(theirs, *args, **options), (args, options)
    for text in texts[:12]:
        ids = theirs.encode(text)
        assert ours.encode(text) == ids
        assert ours.tokenize(text, add_special_tokens=True) == theirs.tokenize(text, add_special_tokens=True)
        number = chance.random()
        expected = decoded(random.Random(number), theirs, ids)
        assert decoded(random.Random(number), ours, ids) == expected
    chat = {"conversation": saved_folders.CHAT, "chat_template": saved_folders.TEMPLATE}
    for tokenize in (False, True):
        assert said(ours.apply_chat_template, tokenize=tokenize, **chat) == said(
            theirs.apply_chat_template, tokenize=tokenize, **chat
        )
    assert ours.get_vocab() == theirs.get_vocab()


# --- Folders ----------------------------------------------------------------------------------------


def folder_of(data: bytes, folder: Path, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_bytes(data)
    said = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


ENDS = {"eos_token": "</s>", "pad_token": "</s>"}
MODELS = [*CASES, *BYTE_LEVEL]
DAILY = ["llama", "no-prefix", "Llama 3", "RoBERTa"]


@pytest.mark.parametrize("name", MODELS if budget.MUCH else DAILY)
def test_models(name: str, tmp_path: Path) -> None:
    theirs, ours = both(folder_of(model(name, bos=False), tmp_path, eos_token="</s>"))
    assert on_cpbpe(ours)
    texts = [text[:60] for text in texts_for(spec(name), 60, budget.SEED)]
    compare(theirs, ours, [*saved_folders.TEXTS, *texts], budget.examples(40))


def test_forms_of_others(tmp_path: Path) -> None:
    """Files as converters elsewhere write them."""
    forms = [json_files.llama(), json_files.llama(False), json_files.gemma(), json_files.phi3()]
    forms += [json_files.metaspace(scheme, split) for scheme in ("never", "first") for split in (False, True)]
    for content in forms if budget.MUCH else forms[budget.SEED % 2 :: 2]:
        theirs, ours = both(folder_of(json_files.dumped(content), tmp_path, eos_token="</s>"))
        assert on_cpbpe(ours)
        compare(theirs, ours, saved_folders.TEXTS, budget.examples(15))


@pytest.mark.slow
def test_saved_folders(models: Path, tmp_path: Path) -> None:
    """As this version of transformers saves them: usually one of sixteen."""
    counts: Counter[bool] = Counter()
    made = [cell for cell in saved_folders.cells(str(models)) if not cell[1]]
    for name, _, make, texts in made if budget.MUCH else made[budget.SEED :: 16]:
        make().save_pretrained(tmp_path / name)
        theirs, ours = both(tmp_path / name)
        counts[on_cpbpe(ours)] += 1
        assert (ours.cpbpe_backend.refusal is None) is on_cpbpe(ours)
        compare(theirs, ours, texts, budget.examples(30))
    assert counts[True] >= 0.9 * counts.total()


# --- Changes ----------------------------------------------------------------------------------------


def changes() -> dict[str, Any]:
    """What programs do with a tokenizer that has been loaded."""

    def tokens(tokenizer: Any) -> None:
        tokenizer.add_tokens(["the", transformers.AddedToken("<x>", lstrip=True)])
        tokenizer.add_special_tokens({"pad_token": "<pad>"})

    def after(tokenizer: Any) -> None:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            "$A </s>", "$A $B </s>", [("</s>", tokenizer.eos_token_id)]
        )

    def inside(tokenizer: Any) -> None:
        tokenizer.backend_tokenizer.pre_tokenizer[0] = Split(tokenizers.Regex(PATTERNS["qwen2"]), "isolated")

    def ends(tokenizer: Any) -> None:
        tokenizer.add_bos_token = True

    def cut(tokenizer: Any) -> None:
        tokenizer.backend_tokenizer.enable_truncation(3)
        tokenizer.backend_tokenizer.enable_padding(pad_id=1)

    return {"tokens": tokens, "after": after, "inside": inside, "ends": ends, "cut": cut}


@pytest.mark.parametrize("name", changes())
def test_changes(name: str, tmp_path: Path) -> None:
    theirs, ours = both(folder_of(model("Llama 3"), tmp_path, bos_token="<s>", **ENDS))
    copied = copy.deepcopy(ours)
    for tokenizer in (theirs, ours):
        changes()[name](tokenizer)
    for text in saved_folders.TEXTS:
        found = [columns(tokenizer.backend_tokenizer.encode(text, text)) for tokenizer in (theirs, ours)]
        assert found[0] == found[1]
    for tokenizer in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        compare(theirs, tokenizer, saved_folders.TEXTS, 15)
        assert on_cpbpe(tokenizer)
    assert on_cpbpe(copied)
    assert len(copied) == len(AutoTokenizer.from_pretrained(tmp_path))


def test_what_cpbpe_cannot_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A change, or a folder, with which tokenizers encodes as before, and the reason."""
    caplog.set_level(logging.INFO, "cpbpe.compat")
    ours = both(folder_of(model("Llama 3"), tmp_path / "a"))[1]
    assert ours.cpbpe_backend.refusal is None
    assert not caplog.messages
    ours.backend_tokenizer.model.dropout = 1.0
    assert ours.tokenize("the") == ["t", "h", "e"]
    assert not on_cpbpe(ours)
    assert "it skips merges at random (dropout 1.0)" in str(ours.cpbpe_backend.refusal)
    assert "encodes without cpbpe" in caplog.messages[0]

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    theirs, ours = both(folder_of(words.to_str().encode(), tmp_path / "b"))
    assert "it is a WordLevel model (whole words)" in ours.cpbpe_backend.refusal
    assert not vars(ours.backend_tokenizer)
    assert not on_cpbpe(ours)
    assert ours("a b").encodings[0].ids == theirs("a b").encodings[0].ids

    ours = both(tmp_path / "a")[1]
    ours.backend_tokenizer.model = words.model
    assert not on_cpbpe(ours)

    ours = both(tmp_path / "a")[1]
    ours.add_tokens([transformers.AddedToken("<y>", special=True)])
    assert on_cpbpe(ours)
    ours.add_tokens([transformers.AddedToken("<y>", special=False)])
    assert not on_cpbpe(ours)
    assert "'<y>' was added before with other flags" in ours.cpbpe_backend.refusal


class InPython:
    """A normalizer and a pre-tokenizer."""

    def normalize(self, text: Any) -> None:
        text.lowercase()

    def pre_tokenize(self, text: Any) -> None:
        text.split(lambda _, part: part.split(" ", "isolated"))


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("normalizer", tokenizers.normalizers.Normalizer),
        ("pre_tokenizer", tokenizers.pre_tokenizers.PreTokenizer),
    ],
)
def test_parts_in_python(part: str, kind: Any, tmp_path: Path) -> None:
    """They cannot be saved, so nobody can tell what they do."""
    theirs, ours = both(folder_of(model("Llama 3"), tmp_path))
    for tokenizer in (theirs, ours):
        setattr(tokenizer.backend_tokenizer, part, kind.custom(InPython()))
    assert ours("The Cat")["input_ids"] == theirs("The Cat")["input_ids"]
    assert "cannot be serialized" in ours.cpbpe_backend.refusal


# --- What else programs do ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama", "Llama 3"])
def test_copies_files_and_training(name: str, tmp_path: Path) -> None:
    theirs, ours = both(folder_of(model(name), tmp_path / "a", eos_token="</s>"))
    texts = saved_folders.TEXTS
    expected = said(theirs, [*texts])
    for copied in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert on_cpbpe(copied)
        assert said(copied, [*texts]) == expected
    batch = ours([*texts])
    assert questions(pickle.loads(pickle.dumps(batch))) == questions(batch) == expected[1]
    assert [Path(file).name for file in ours.save_pretrained(tmp_path / "ours")] == [
        Path(file).name for file in theirs.save_pretrained(tmp_path / "theirs")
    ]
    for file in (tmp_path / "theirs").iterdir():
        assert (tmp_path / "ours" / file.name).read_bytes() == file.read_bytes()
    new = [tokenizer.train_new_from_iterator(texts, 300) for tokenizer in (theirs, ours)]
    assert new[0].get_vocab() == new[1].get_vocab()
    assert not on_cpbpe(new[1])


def test_servers(tmp_path: Path) -> None:
    """They cache what a tokenizer says in a class of their own, and decode with the library itself."""
    theirs, ours = both(folder_of(model("Llama 3"), tmp_path))
    cached = copy.copy(ours)
    cached.__class__ = type("Cached", (type(ours),), {"__len__": lambda _: 7})
    assert len(cached) == 7
    assert isinstance(cached, PreTrainedTokenizerFast)
    assert isinstance(cached._tokenizer, tokenizers.Tokenizer)
    cached._tokenizer.added_token_ids = {}  # type: ignore[attr-defined]
    ids = cached.encode("the 🦙 cat")
    assert ids == theirs.encode("the 🦙 cat")
    stream = DecodeStream(skip_special_tokens=False)
    assert "".join(stream.step(cached._tokenizer, id) or "" for id in ids) == theirs.decode(ids)


def test_threads(tmp_path: Path) -> None:
    theirs, ours = both(folder_of(model("Llama 3"), tmp_path, eos_token="</s>", pad_token="</s>"))
    texts = [text for text in saved_folders.TEXTS if text]
    options = {"truncation": True, "max_length": 6, "padding": "max_length"}
    expected = [theirs(text, **options)["input_ids"] for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            ours("a")  # without options, so that the next call changes them
            assert list(pool.map(lambda text: ours(text, **options)["input_ids"], texts)) == expected


def test_install_and_uninstall(tmp_path: Path) -> None:
    folder = folder_of(model("Llama 3"), tmp_path)
    before = vars(transformers.PreTrainedTokenizerBase)["from_pretrained"]
    for load in (AutoTokenizer, PreTrainedTokenizerFast):
        with installed():
            cpbpe.compat.install("transformers")
            ours = load.from_pretrained(folder)
        theirs = load.from_pretrained(folder)
        assert on_cpbpe(ours)
        assert not on_cpbpe(theirs)
        assert not hasattr(theirs, "cpbpe_backend")
    assert vars(transformers.PreTrainedTokenizerBase)["from_pretrained"] is before
    cpbpe.compat.uninstall()
