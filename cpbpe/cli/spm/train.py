"""``cpbpe spm train``: what spm_train does for BPE models.

`cpbpe train` understands most of these flags as well, and has more options. This is for files that must be
those of spm_train, byte for byte: it has spm_train's defaults, and records every setting in the model.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

from cpbpe.cli.output import check_outputs, say
from cpbpe.cli.spm.flags import NO_SEED, RETIRED, CommandLine, Flag, Program
from cpbpe.lazy import importing
from cpbpe.text.charsmap import RULE_NAMES

_UNIGRAM = "only the unigram model has it"

_FLAGS = (
    Flag("input", "string", "", "the files of the corpus, with commas between them"),
    Flag("input_format", "string", "", "text or tsv (a text, a tab, a count)"),
    Flag("model_prefix", "string", "", "write NAME.model and NAME.vocab"),
    Flag("model_type", "string", "unigram", "bpe, which must be given"),
    Flag("vocab_size", "int32", 8000, "how many pieces the model has"),
    Flag("character_coverage", "double", 0.9995, "the share of the corpus whose characters get pieces"),
    Flag("input_sentence_size", "uint64", 0, "train on this many lines; 0 for all"),
    Flag("shuffle_input_sentence", "bool", True, "sample these lines from the whole corpus"),
    Flag("seed_sentencepiece_size", "int32", 1000000, "recorded in the model; " + _UNIGRAM),
    Flag("seed_sentencepieces_file", "string", "", "refused; " + _UNIGRAM),
    Flag("shrinking_factor", "double", 0.75, "recorded in the model; " + _UNIGRAM),
    Flag("num_threads", "int32", 16, "recorded in the model; all cores are used"),
    Flag("num_sub_iterations", "int32", 2, "recorded in the model; " + _UNIGRAM),
    Flag("max_sentencepiece_length", "int32", 16, "the most characters of a piece"),
    Flag("max_sentence_length", "int32", 4192, "skip lines that have more bytes"),
    Flag("split_by_unicode_script", "bool", True, "no piece has characters of two scripts"),
    Flag("split_by_number", "bool", True, "no piece has digits and letters"),
    Flag("split_by_whitespace", "bool", True, "no piece has parts of two words"),
    Flag("split_digits", "bool", False, "each digit is a piece by itself"),
    Flag("pretokenization_delimiter", "string", "", "a text that marks places no piece may cross"),
    Flag("treat_whitespace_as_suffix", "bool", False, "a space belongs to the word before it"),
    Flag("allow_whitespace_only_pieces", "bool", False, "pieces may consist of spaces only"),
    Flag("control_symbols", "string", "", "pieces that only programs insert, with commas between them"),
    Flag("control_symbols_file", "string", "", "a file with more of them, one on each line"),
    Flag("user_defined_symbols", "string", "", "pieces that are kept whole, with commas between them"),
    Flag("user_defined_symbols_file", "string", "", "a file with more of them, one on each line"),
    Flag("required_chars", "string", "", "characters that get a piece however rare they are"),
    Flag("required_chars_file", "string", "", "a file with these characters, used instead"),
    Flag("byte_fallback", "bool", False, "add pieces for all bytes"),
    Flag("auto_character_coverage", "bool", False, "let characters and merges compete"),
    Flag("vocabulary_output_piece_score", "bool", True, "write scores into the .vocab file"),
    Flag(
        "normalization_rule_name",
        "string",
        "nmt_nfkc",
        ", ".join(RULE_NAMES),
    ),
    Flag("normalization_rule_tsv", "string", "", "a file with rules of your own"),
    Flag("denormalization_rule_tsv", "string", "", "a file with rules for decoded text"),
    Flag("add_dummy_prefix", "bool", True, "put a space in front of every text"),
    Flag("remove_extra_whitespaces", "bool", True, "drop spaces at the ends, and all but one of several"),
    Flag("hard_vocab_limit", "bool", True, "fail if the corpus is too small for vocab_size pieces"),
    Flag("use_all_vocab", "bool", False, "refused; only the word and character models have it"),
    Flag("unk_id", "int32", 0, "the id of the unknown piece; -1 for none"),
    Flag("bos_id", "int32", 1, "the id of the piece that begins a text; -1 for none"),
    Flag("eos_id", "int32", 2, "the id of the piece that ends a text; -1 for none"),
    Flag("pad_id", "int32", -1, "the id of the piece that fills a batch; -1 for none"),
    Flag("unk_piece", "string", "<unk>", "the text of the unknown piece"),
    Flag("bos_piece", "string", "<s>", "the text of the piece that begins a text"),
    Flag("eos_piece", "string", "</s>", "the text of the piece that ends a text"),
    Flag("pad_piece", "string", "<pad>", "the text of the piece that fills a batch"),
    Flag("unk_surface", "string", " \u2047 ", "the text that the unknown piece is decoded to"),
    Flag("random_seed", "uint32", NO_SEED, "has no effect: the same lines are sampled in every run"),
    *(
        Flag(name, kind, None, "", ignored=RETIRED)
        for name, kind in (
            ("accept_language", "string"),
            ("self_test_sample_size", "int32"),
            ("mining_sentence_size", "int32"),
            ("training_sentence_size", "int32"),
            ("train_extremely_large_corpus", "bool"),
            ("enable_differential_privacy", "bool"),
            ("differential_privacy_noise_level", "double"),
            ("differential_privacy_clipping_threshold", "uint64"),
        )
    ),
)

_LISTS = ("control_symbols", "user_defined_symbols")
_OTHERWISE = (
    # Flags that are not passed on as they are.
    *_LISTS,
    "control_symbols_file",
    "user_defined_symbols_file",
    "required_chars_file",
    "random_seed",
)


def run(given: CommandLine) -> None:
    """Train as the flags say. The report goes to the error output, as spm_train's messages do."""
    flags = dict(given.flags)
    for name, example in (("input", "--input=corpus.txt"), ("model_prefix", "--model_prefix=my")):
        if not flags[name]:
            raise ValueError(f"--{name} is needed, as in {example}")
    if given.files:
        raise ValueError(f"{given.files[0]!r} is one argument too many; name the corpus with --input")
    quiet = flags["quiet"]
    if flags["random_seed"] != NO_SEED and flags["input_sentence_size"] and not quiet:
        say("--random_seed has no effect: cpbpe samples the same lines in every run")
    options = {
        flag.name: _text(flags[flag.name])
        for flag in _FLAGS
        if not flag.ignored and flag.name not in _OTHERWISE
    }
    for name in _LISTS:
        if symbols := _symbols(flags[name], flags[f"{name}_file"]):
            options[name] = symbols
    if flags["required_chars_file"]:
        options["required_chars"] = "".join(_lines(flags["required_chars_file"]))
    prefix = flags["model_prefix"]
    with importing:
        from cpbpe.compat.sentencepiece import SentencePieceTrainer
        from cpbpe.compat.sentencepiece.train_calls import split_csv
    corpus = split_csv(flags["input"])
    check_outputs([f"{prefix}.model", f"{prefix}.vocab"], corpus)
    log: TextIO | None = None if quiet else sys.stderr
    SentencePieceTrainer.train(logstream=log, **options)


def _text(value: Any) -> str:
    """A value as `SentencePieceTrainer` parses it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _symbols(given: str, path: str) -> str:
    """The symbols of a flag and those of its file, as one list."""
    # Symbols of the file are put in quotes, because they may be empty or contain a comma.
    quoted = ['"{}"'.format(line.replace('"', '""')) for line in (_lines(path) if path else [])]
    return ",".join([*filter(None, [given]), *quoted])


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


PROGRAM = Program(
    "train",
    "Trains a BPE model: the files that spm_train writes, byte for byte.",
    "train --input=FILE --model_prefix=NAME --model_type=bpe ...",
    _FLAGS,
    run,
)
