"""`cpbpe.train` learns byte-level models: the merges of tokenizers and minbpe, and the ids of tiktoken."""

import json
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

import cpbpe
from cpbpe import BYTE_PRESETS, ByteTrainOptions, TrainingError, WordCounts, train
from cpbpe.cli import main
from cpbpe.reference.byte_level.encoding import read_ranks
from cpbpe.reference.byte_level.patterns import cut
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import from_letters
from tests.bytes import oracles
from tests.bytes.making import known
from tests.support import corpus
from tests.support.budget import SEED, examples

LINES = corpus.lines(700)
TEXT = "\n".join(LINES[:400])
ALPHABETS = ["ab", "aab ", "abc d", "the cat\n1é你", "a'sSt ſ<|>", "  \n\n\r\na1."]


def corpora(count: int, seed: int = SEED) -> Iterator[tuple[list[str], random.Random]]:
    """Small corpora with many ties."""
    rng = random.Random(seed)
    for _ in range(count):
        letters = rng.choice(ALPHABETS)
        yield (
            ["".join(rng.choices(letters, k=rng.randint(0, 60))) for _ in range(rng.randint(1, 4))] + ["a"],
            rng,
        )


def pieces(result: cpbpe.TrainingResult) -> list[bytes]:
    return list(result.spec.pieces.texts)


# --- As tokenizers --------------------------------------------------------------------------------


def by_tokenizers(
    texts: list[str] | str, vocab_size: int, pattern: str = "gpt2", **options: Any
) -> dict[int, str]:
    """The vocabulary that tokenizers learns from texts, or from a file, whose path is given."""
    tok = tokenizers.Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern == "gpt2")
    if pattern == "gpt2":
        tok.pre_tokenizer = byte_level
    else:
        split = pre_tokenizers.Split(tokenizers.Regex(PATTERNS[pattern]), "isolated")
        tok.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **options,
    )
    if isinstance(texts, str):
        tok.train([texts], trainer)
    else:
        tok.train_from_iterator(texts, trainer)
    return {id: piece for piece, id in json.loads(tok.to_str())["model"]["vocab"].items()}


def same_as_tokenizers(result: cpbpe.TrainingResult, theirs: dict[int, str]) -> bool:
    special = set(result.options.special_tokens)
    return pieces(result) == [
        theirs[id].encode() if theirs[id] in special else from_letters(theirs[id]) for id in sorted(theirs)
    ]


@pytest.mark.parametrize("pattern", ["gpt2", "llama3", "o200k"])
def test_as_tokenizers(engine: str, pattern: str) -> None:
    for texts, rng in corpora(examples(20)):
        special = rng.choice([[], ["<|end|>"], ["<s>", "<pad>", "[x]"]])
        size = 256 + len(special) + rng.randint(0, 30)
        theirs: dict[str, Any] = {"special_tokens": special}
        ours: dict[str, Any] = {"special_tokens": special}
        if rng.random() < 0.3:
            theirs["min_frequency"] = ours["min_frequency"] = rng.randint(0, 4)
        if rng.random() < 0.3:
            ours["max_piece_length"] = rng.randint(2, 8)
            theirs["max_token_length"] = ours["max_piece_length"] + 1
        result = train(
            texts,
            preset="tokenizers",
            pattern=pattern,
            vocab_size=size,
            hard_vocab_limit=False,
            threads=rng.choice([1, 2]),
            **ours,
        )
        assert same_as_tokenizers(result, by_tokenizers(texts, size, pattern, **theirs)), (texts, ours)


def test_a_file_as_tokenizers_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(known(TEXT) + "\n\n  the end\n\n\n   ", encoding="utf-8", newline="\n")
    result = train(path, preset="tokenizers", vocab_size=1000)
    assert same_as_tokenizers(result, by_tokenizers(str(path), 1000))
    whole = train(path, preset="tokenizers", vocab_size=1000, split_lines=False)
    assert same_as_tokenizers(whole, by_tokenizers([path.read_text(encoding="utf-8")], 1000))
    assert result.report.reading.sentences > 400
    assert whole.report.reading.sentences == 1


# --- As minbpe ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["", "gpt2", "cl100k"])
def test_as_minbpe(engine: str, pattern: str) -> None:
    for texts, rng in corpora(examples(30)):
        text = "".join(texts)
        chunks = [text] if not pattern else cut(PATTERNS[pattern], text)
        wanted = rng.randint(0, 30)
        learned = oracles.train([chunk.encode() for chunk in chunks], wanted)
        vocab = [bytes([byte]) for byte in range(256)]
        for (left, right), _ in learned:
            vocab.append(vocab[left] + vocab[right])
        options = {
            "preset": "minbpe",
            "pattern": pattern,
            "vocab_size": 256 + wanted,
            "hard_vocab_limit": False,
        }
        assert pieces(train([text], threads=2, **options)) == vocab, text  # type: ignore[arg-type]


# --- The model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", BYTE_PRESETS)
def test_every_size_is_that_of_a_training_of_its_own(preset: str) -> None:
    texts = LINES[:60]
    counts = WordCounts.build(texts, preset=preset)
    least = 256 + len(BYTE_PRESETS[preset].special_tokens)
    result = train(counts, preset=preset, vocab_size=420)
    assert result.report.curve is not None
    assert result.report.curve.first == least
    for size in (least, 333, 420):
        own = train(counts, preset=preset, vocab_size=size)
        assert result.model_bytes_at(size) == own.model_bytes
        tokens = sum(map(result.tokenizer_at(size).count, texts))
        assert tokens == own.report.tokens == dict(result.report.curve)[size]
    assert result.tokenizer.decode(result.tokenizer.encode(TEXT)) == TEXT
    with pytest.raises(TrainingError, match=f"models of {least} to 420 pieces"):
        result.tokenizer_at(least - 1)


@pytest.mark.parametrize("preset", ["gpt2", "gpt4", "gpt4o", "llama3", "qwen2", "tekken"])
def test_files_of_ranks_give_tiktoken_the_same_ids(tmp_path: Path, preset: str) -> None:
    result = train([TEXT], preset=preset, vocab_size=900)
    (path,) = result.save(tmp_path / "my.tiktoken")
    options = result.options
    special = {token: result.tokenizer.vocab[token] for token in options.special_tokens}
    theirs = tiktoken.Encoding(
        "mine",
        pat_str=PATTERNS[options.pattern],
        mergeable_ranks=read_ranks(Path(path).read_bytes()),
        special_tokens=special,
    )
    assert theirs.n_vocab == 900
    end = options.eos_piece
    for text in [*map(known, LINES[400:700]), f"one{end}two {end}", "", "\0\r\n  "]:
        ids = result.tokenizer.encode(text, allowed_special="all")
        assert ids == theirs.encode(text, allowed_special="all"), text
    assert cpbpe.load(path, pattern=options.pattern, special_tokens=special).encode(TEXT) == theirs.encode(
        TEXT, disallowed_special=()
    )


def test_save_and_load(tmp_path: Path) -> None:
    result = train([TEXT], preset="gpt4", vocab_size=700)
    model, vocab = result.save(tmp_path / "my")
    again = cpbpe.load(model)
    assert again == result.tokenizer
    assert again.bos_id is None
    assert again.eos_id == again.vocab["<|endoftext|>"] == 695
    rows = [line.split("\t") for line in Path(vocab).read_text(encoding="utf-8").splitlines()]
    assert [int(id) for _, id in rows] == list(range(700))
    assert [from_letters(piece) for piece, _ in rows[:695]] == pieces(result)[:695]
    assert repr(result.options) == "ByteTrainOptions(vocab_size=700, eos_piece='<|endoftext|>')"


def test_a_special_token_never_is_learned(engine: str) -> None:
    """Whatever the corpus spells, no text yields the id of a special token by itself."""
    texts = ["<|x|> <|x|><|x|> no <|x|>"] * 9
    options = {"special_tokens": ["<|x|>", "<|"], "eos_piece": "", "bos_piece": "", "pattern": ""}
    result = train(texts, preset="gpt2", vocab_size=270, hard_vocab_limit=False, **options)  # type: ignore[arg-type]
    learned = pieces(result)
    assert learned.count(b"<|") == 1
    assert any(b"|x|" in piece for piece in learned if len(piece) < 5)
    ids = {result.tokenizer.vocab["<|x|>"], result.tokenizer.vocab["<|"]}
    assert not ids & set(result.tokenizer.encode(texts[0]))


# --- Counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["tokenizers", "minbpe"])
@pytest.mark.parametrize("pattern", ["cl100k", r"[a-z]+| ", ""])
def test_merged_counts_are_those_of_all_text(engine: str, tmp_path: Path, ties: str, pattern: str) -> None:
    texts = LINES[:120]
    options = {"preset": "gpt4", "ties": ties, "pattern": pattern}
    whole = WordCounts.build(texts, **options)  # type: ignore[arg-type]
    parts = []
    for begin in (0, 40, 80):
        path = tmp_path / f"{begin}.counts"
        WordCounts.build(texts[begin : begin + 40], **options).save(path)  # type: ignore[arg-type]
        parts.append(WordCounts.load(path))
    assert parts[0].merge(*parts[1:]) == parts[0].merge(parts[1]).merge(parts[2]) == whole
    # (The ties of minbpe depend on which word comes first, so there the order of the parts matters.)
    assert (parts[2].merge(parts[0], parts[1]) == whole) == (ties == "tokenizers")
    chunks = Counter(
        chunk for text in texts for chunk in ([text] if not pattern else re_chunks(pattern, text))
    )
    assert dict(whole) == dict(chunks)


def re_chunks(pattern: str, text: str) -> list[str]:
    """The chunks, and what is between them."""
    if pattern in PATTERNS:
        return cut(PATTERNS[pattern], text)
    return [part for part in re.split(f"({pattern})", text) if part]


def test_counts_in_order_serve_both_rules_of_ties() -> None:
    in_order = WordCounts.build([TEXT], preset="gpt4", ties="minbpe")
    direct = train([TEXT], preset="gpt4", vocab_size=600)
    assert train(in_order, preset="gpt4", vocab_size=600).model_bytes == direct.model_bytes
    with pytest.raises(TrainingError, match=r"ties \('tokenizers' and 'minbpe'\)"):
        train(WordCounts.build([TEXT], preset="gpt4"), preset="gpt4", ties="minbpe", vocab_size=600)
    with pytest.raises(TrainingError, match=r"pattern \('cl100k' and 'gpt2'\)"):
        train(in_order, preset="gpt2", ties="minbpe", vocab_size=600)
    with pytest.raises(TrainingError, match="the family: one of them is byte-level"):
        train(in_order, vocab_size=600)
    with pytest.raises(TrainingError, match="the family: one of them is byte-level"):
        in_order.merge(WordCounts.build([TEXT]))


def test_threads_parts_and_the_disk_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    rng = random.Random(SEED)
    words = ["".join(rng.choices("abcdefgh", k=7)) for _ in range(24_000)]
    text = "".join(f"{word} {words[at % 97]} {LINES[at % 300]}\n" for at, word in enumerate(words))
    path.write_text(text, encoding="utf-8", newline="\n")
    records = tmp_path / "text.jsonl"
    records.write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    for ties in ("tokenizers", "minbpe"):
        counts = WordCounts.build([text], preset="gpt4", ties=ties, threads=1)
        assert counts.reading.unit == "text"
        for source, options in ((path, {"threads": 2}), (records, {}), (path, {"memory_limit": 1 << 20})):
            other = WordCounts.build(source, preset="gpt4", ties=ties, **options)  # type: ignore[arg-type]
            assert other == counts
            assert bool(other.reading.spilled_runs) == ("memory_limit" in options)
            assert (other.reading.sentences, other.reading.bytes) == (1, len(text.encode()))
    expected = Counter(cut(PATTERNS["cl100k"], text))
    assert dict(WordCounts.build(path, preset="gpt4")) == expected


def test_text_that_is_not_utf8(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"caf\xe9 caf\xe9 \xf0\x9f\x98 end")
    with pytest.warns(UserWarning, match=r"1 text is not valid UTF-8, the first in .*text.txt"):
        result = train(path, preset="gpt2", vocab_size=257)
    assert result.report.reading.not_utf8 == 1
    with pytest.warns(UserWarning, match="the first in item 2;"):
        counts = WordCounts.build([b"fine", b"caf\xe9", b"", b"caf\xe9 \xf0\x9f\x98 end"], preset="gpt2")
    assert dict(counts) == {"fine": 1, "caf": 2, "\ufffd": 2, " \ufffd": 1, " end": 1}
    assert counts.reading.left_out["empty"].sentences == 1


# --- Options, the command, long work ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 256}, "vocab_size is 256, but 1 special token and 256 bytes alone need 257"),
        ({"vocab_size": 99_999}, "gives 257 to .* pieces; choose a size in this range"),
        ({"byte_fallback": True}, "byte_fallback: all 256 bytes are pieces"),
        ({"character_coverage": 1.0}, "character_coverage: all 256 bytes are pieces"),
        ({"control_symbols": ["<x>"]}, "control_symbols: byte-level models call them special_tokens"),
        ({"user_defined_symbols": ["<x>"]}, "user_defined_symbols: a text is cut by the pattern alone"),
        (
            {"normalization_rule_name": "nfkc"},
            "normalization_rule_name: byte-level models take a text as it is",
        ),
        ({"max_token_length": 5}, "max_token_length: it is called max_piece_length here"),
        ({"ties": "first"}, "ties must be one of tokenizers, minbpe, not 'first'"),
        ({"byte_order": "values"}, "byte_order is 'values'; choose gpt2, or the ties of minbpe"),
        ({"pattern": "gpt5"}, "there is no published pattern 'gpt5'"),
        ({"pattern": "(x"}, "pattern: not a valid pattern|pattern: '\\(x' is not a regular expression"),
        ({"max_piece_length": 1}, "max_piece_length must be 2 or more"),
        ({"special_tokens": ["<x>", "<x>"]}, "'<x>' is there twice"),
        ({"special_tokens": ["x"], "eos_piece": "", "bos_piece": ""}, "'x' is a single byte"),
        ({"special_tokens": []}, "bos_piece is '<|endoftext|>', which is none of special_tokens"),
        ({"vocab_size": -1}, "vocab_size must be 0 to"),
    ],
)
def test_refused(engine: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message.replace("<|endoftext|>", re.escape("<|endoftext|>"))):
        train([TEXT[:500]], preset="gpt2", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": "many"}, "vocab_size must be an integer"),
        ({"split_lines": 1}, "split_lines must be True or False"),
        ({"pattern": None}, "pattern must be text"),
        ({"special_tokens": "<x>"}, "special_tokens must be a list of str"),
        ({"patern": "gpt2"}, "there is no option 'patern'; did you mean pattern"),
    ],
)
def test_wrong_types(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ByteTrainOptions(**options)


def test_nothing_to_train_on() -> None:
    with pytest.raises(TrainingError, match="the corpus contains no text"):
        train([], preset="gpt4")
    with pytest.raises(TrainingError, match="all texts are empty"):
        train(["", ""], preset="gpt4")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    options = ["--preset", "gpt2", "--vocab-size", "500"]
    assert main(["train", str(path), *options, "--out", str(tmp_path / "a.tiktoken")]) == 0
    out = capsys.readouterr().out
    assert "500: 1 special (<|endoftext|>), 256 bytes, 243 merges\n" in out
    assert f"written       {tmp_path / 'a.tiktoken'}\n" in out
    assert main(["count", str(path), "--preset", "gpt2", "--out", str(tmp_path / "a.counts"), "-q"]) == 0
    assert main(["train", str(tmp_path / "a.counts"), *options, "--out", str(tmp_path / "b"), "-q"]) == 0
    expected = train(path, preset="gpt2", vocab_size=500)
    assert (tmp_path / "b.model").read_bytes() == expected.model_bytes
    assert read_ranks((tmp_path / "a.tiktoken").read_bytes()) == {
        piece: rank for rank, piece in enumerate(pieces(expected)[:499])
    }


def test_one_long_chunk_takes_no_longer_than_many() -> None:
    """Without a pattern a text is one chunk. If time grew with its square, this test would take minutes."""
    text = "".join(LINES)[:60_000] * 5
    for corpus_of_one in (text, "a" * 300_000, "ab" * 150_000):
        result = train([corpus_of_one], preset="minbpe", pattern="", vocab_size=600, hard_vocab_limit=False)
        assert result.tokenizer.count(corpus_of_one) == result.report.tokens


def test_ctrl_c_ends_it_and_progress_is_reported() -> None:
    steps: list[str] = []

    def interrupt(step: Any) -> None:
        steps.append(step.phase)
        if step.phase == "merges":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train([TEXT], preset="gpt4", vocab_size=1000, progress=interrupt)
    assert steps[0] == "reading"
    assert train([TEXT], preset="gpt4", vocab_size=1000).report.vocab_size == 1000
