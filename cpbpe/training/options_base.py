"""What the options of both families share: how they are checked and explained, and what is said about names
that are not options.

Silently accepting an option that does nothing would hide a misunderstanding, and users of other libraries
should not have to guess twice. So each name that is refused has a reason. `names in backquotes` are options,
which each reader of the tables spells in its own way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import cleandoc
from numbers import Integral, Real
from textwrap import indent, wrap
from typing import Any, ClassVar, NamedTuple, TypeVar

from cpbpe.errors import TrainingError
from cpbpe.foreign import by_name, closest
from cpbpe.spelling import named, spelled

ARGUMENTS = ("threads", "format", "field", "column", "memory_limit", "progress")
"""What `cpbpe.train` takes besides the options: how the corpus is read, and how the work is done."""

T = TypeVar("T", bound="Options")

# --- Names that are not options ------------------------------------------------------------------

MEANINGLESS = by_name(
    {
        "min_freq_alpha num_sub_iterations post_l1_debias seed_piece_length_power seed_sentencepiece_size "
        "seed_sentencepieces_file shrinking_factor use_sparse_pruning": (
            "only the unigram model has it, and this is BPE; leave it out"
        ),
        "accept_language differential_privacy_clipping_threshold differential_privacy_noise_level "
        "enable_differential_privacy mining_sentence_size self_test_sample_size training_sentence_size": (
            "sentencepiece 0.2.3 ignores it too; leave it out"
        ),
        "minloglevel": "nothing is logged, so there is nothing to silence; leave it out",
        "train_extremely_large_corpus": "counts have 64 bits whatever the size of the corpus; leave it out",
        "use_all_vocab": "only the word and character models have it, and this is BPE; leave it out",
    }
)
"""Options of sentencepiece that change nothing about a BPE model. `cpbpe.train` ignores them with a warning,
so that a call that was written for sentencepiece goes on working; a preset or a command refuses them."""

RENAMED = {"input": "source", "input_format": "format", "num_threads": "threads", "random_seed": "seed"}
"""What sentencepiece calls arguments of `cpbpe.train`, which takes both names."""

REFUSED = MEANINGLESS | by_name(
    {
        "sentence_iterator sentence_reader": (
            "an iterable of texts is the first argument of train(), like any corpus"
        ),
        "control_symbols_file": "read the file and give its lines as `control_symbols`",
        "denormalizer_spec": "give a file with rules as `denormalization_rule_tsv` instead",
        "escape_whitespaces": (
            "training needs spaces to become U+2581, as it does in sentencepiece; leave it out"
        ),
        "input": "the corpus is the first argument of train()",
        "input_format": "the format of the corpus is given as `format`",
        "model_prefix": "the result of train() has save(prefix)",
        "model_type": "cpbpe trains BPE models only, so there is nothing to choose; leave it out",
        "model_writer": "the result of train() has model_bytes",
        "name": "the rules of normalization are chosen with `normalization_rule_name`",
        "normalizer": "give `normalization_rule_name` or `normalization_rule_tsv` instead",
        "num_threads": "the number of threads is given as `threads`",
        "precompiled_charsmap": "give a file with rules as `normalization_rule_tsv` instead",
        "random_seed": "the option is called `seed`",
        "required_chars_file": "read the file and give its text as `required_chars`",
        "user_defined_symbols_file": "read the file and give its lines as `user_defined_symbols`",
    }
)
"""Options of sentencepiece that `TrainOptions` and the command do not take (`cpbpe.train` takes those of the
tables above): the reason for each, as the second half of a sentence that begins with the name."""

BYTE_REFUSED = by_name(
    {
        "character_coverage auto_character_coverage required_chars byte_fallback initial_alphabet "
        "limit_alphabet unk_id unk_piece unk_surface unk_token": (
            "all 256 bytes are pieces, so every text can be written; leave it out"
        ),
        "normalization_rule_name normalization_rule_tsv normalization_rules denormalization_rule_tsv "
        "denormalization_rules add_dummy_prefix remove_extra_whitespaces": (
            "byte-level models take a text as it is; change the corpus before it is counted, or leave it out"
        ),
        "control_symbols additional_special_tokens reserved_tokens": (
            "byte-level models call them `special_tokens`"
        ),
        "user_defined_symbols": (
            "a text is cut by the pattern alone, so nothing in it can be kept whole; for tokens that "
            "programs insert, give `special_tokens`"
        ),
        "bos_id eos_id pad_id": (
            "the ids of special tokens follow from `special_tokens`, in the order given, and "
            "`special_tokens_first`"
        ),
        "pad_piece": "list it among `special_tokens`",
        "max_sentencepiece_length": "byte-level models have `max_piece_length`, in bytes",
        "max_token_length": (
            "it is called `max_piece_length` here, and a piece may have that many bytes; pieces of "
            "tokenizers have fewer than its max_token_length, so give one less"
        ),
        "split_by_whitespace split_by_unicode_script split_by_number split_digits "
        "treat_whitespace_as_suffix allow_whitespace_only_pieces pretokenization_delimiter pretokenizer "
        "pre_tokenizer allow_inconsistent_pretokenization": (
            "the `pattern` says how a text is cut; leave it out"
        ),
        "max_sentence_length keep_newlines keep_reserved": (
            "every text is counted whole, however long it is; leave it out"
        ),
        "input_sentence_size shuffle_input_sentence seed": (
            "texts of byte-level models are not sampled; give a part of the corpus, such as the first "
            "lines: itertools.islice(texts, 1000)"
        ),
        "vocabulary_output_piece_score": (
            "the .vocab file of a byte-level model has no scores; leave it out"
        ),
        "record_paths": "only models of the SentencePiece family can record paths; leave it out",
        "show_progress": "give progress=True or progress=False",
    }
)
"""Names that are not options of byte-level models, and the reason for each."""

_CALLED_HERE = {
    "unk_piece": "unk_token unk unknown_token",
    "bos_piece": "bos_token bos cls_token begin_token start_token",
    "eos_piece": "eos_token eos sep_token end_token",
    "character_coverage": "limit_alphabet coverage char_coverage",
    "required_chars": "initial_alphabet alphabet required_characters",
    "byte_fallback": "byte_level bytes bytes_fallback fallback",
    "normalization_rule_name": (
        "normalization normalizers normalization_rule normalise normalize unicode_normalization"
    ),
    "add_dummy_prefix": "add_prefix_space prefix_space dummy_prefix",
    "threads": "workers n_jobs num_workers nthreads n_threads num_proc jobs cores cpus",
    "seed": "random_state rng",
    "memory_limit": "memory max_memory mem_limit memory_max",
    "field": "key text_key text_field json_field",
    "column": "text_column column_name",
    "format": "file_format input_type",
    "input_sentence_size": "limit max_lines max_sentences sample sample_size num_samples",
}
"""What other libraries call our options, or what people guess."""

FOREIGN = by_name(
    {
        **{names: f"it is called `{option}` here" for option, names in _CALLED_HERE.items()},
        "size n_vocab num_vocab vocabulary_size vocab vocabulary max_vocab_size num_tokens n_tokens "
        "num_merges n_merges merges num_symbols": (
            "give `vocab_size`, which counts all pieces: special ones, bytes, characters and merges"
        ),
        "special_tokens special_symbols added_tokens additional_special_tokens extra_tokens "
        "reserved_tokens": (
            "give `control_symbols` for pieces that only programs insert, or `user_defined_symbols` for "
            "pieces that are found in text"
        ),
        "min_frequency min_freq min_count minimum_frequency min_pair_frequency": (
            "training goes on until there are `vocab_size` pieces, however rare they are; a smaller "
            "vocabulary has only more frequent ones"
        ),
        "pad_token pad padding_token": "give `pad_id` an id, such as 3; its text is `pad_piece`",
        "max_token_length max_piece_length max_token_len max_len max_length": (
            "it is called `max_sentencepiece_length` here; the longest line that is read is "
            "`max_sentence_length`"
        ),
        "pre_tokenizer pre_tokenizers pretokenize pattern regex split_pattern": (
            "give a function as `pretokenizer`, or mark the places in the corpus and give "
            "`pretokenization_delimiter`"
        ),
        "lowercase lower do_lower_case uncased casefold": (
            "give nfkc_cf or nmt_nfkc_cf as `normalization_rule_name`"
        ),
        "dropout alpha": "it is an option of encoding, not of training",
        "encoding": "a file is read as UTF-8; open it yourself, as in train(open(path, encoding='latin-1'))",
        "options train_options config": "a TrainOptions is given as `preset`",
        "files file corpus data dataset texts text path paths iterator train_data input_file input_files": (
            "the corpus comes first, without a name"
        ),
        "verbose show_progress progress_bar silent": "give progress=True or progress=False",
        "prefix out output output_dir output_path save save_path out_prefix": (
            "the result of train() has save(prefix)"
        ),
    }
)
"""Names that other libraries have, or that people guess, with the second half of a sentence about each."""


def advice(name: str, names: Sequence[str], refused: Mapping[str, str] = REFUSED) -> str:
    """The second half of a message about an option that does not exist; `names` are the options that do.

    >>> advice("special_token", ["vocab_size", "pretokenizer", "control_symbols"])[:23]
    'give control_symbols fo'
    >>> advice("vocabsize", ["vocab_size", "pretokenizer"])
    'did you mean vocab_size?'
    """
    plain = name.lower().replace("-", "_").strip("_")
    for known in (plain, f"{plain}s", plain.removesuffix("s")):
        if known in FOREIGN:
            return spelled(FOREIGN[known])
    close = closest(plain, names)
    meant = [close] if close else [known for known in names if len(plain) > 3 and plain in known][:3]
    if meant:
        return f"did you mean {spelled(' or '.join(f'`{known}`' for known in meant))}?"
    close = closest(plain, [*refused, *FOREIGN], 0.85)
    return spelled({**FOREIGN, **refused}[close]) if close else ""


# --- Options, and how they are checked -------------------------------------------------------------


class Options:
    """The base of the options of both families. They are checked when they are created, and never change."""

    refused: ClassVar[Mapping[str, str]]
    """Names that are refused, with the reason for each."""
    others: ClassVar[Collection[str]] = ()
    """Names of options that only models of the SentencePiece family have."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all options."""
        return tuple(item.name for item in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def refuse_unknown(cls, names: Iterable[str]) -> None:
        """Raise an error for the first unknown name; it says why, or which option or call was meant."""
        known = cls.names()
        for name in names:
            if name in known:
                continue
            if name in cls.refused:
                raise TrainingError(f"{named(name)}: {spelled(cls.refused[name])}")
            if name in cls.others:
                raise TrainingError(
                    f"{named(name)}: it is an option of models of the SentencePiece family, and this one is "
                    f"byte-level; leave it out"
                )
            if name in ARGUMENTS:
                raise TypeError(
                    f"{name!r} is an argument of train() and of WordCounts.build(), not an option; give it "
                    f"there"
                )
            way_out = advice(name, [*known, *ARGUMENTS], cls.refused)
            raise TypeError(
                f"there is no option {name!r}; {way_out or f'help(cpbpe.{cls.__name__}) shows all of them'}"
            )

    def replace(self: T, **changes: Any) -> T:
        """The same options with some of them changed.

        >>> import cpbpe
        >>> cpbpe.PRESETS["llama2"].replace(vocab_size=500).vocab_size
        500
        >>> cpbpe.PRESETS["llama2"].replace(vocabsize=500)
        Traceback (most recent call last):
        ...
        TypeError: there is no option 'vocabsize'; did you mean vocab_size?
        """
        self.refuse_unknown(changes)
        return replace(self, **changes)  # type: ignore[type-var]

    def __repr__(self) -> str:
        values = ((name, getattr(self, name), getattr(type(self), name)) for name in self.names())
        changed = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({changed})"


def names_checked(kind: type[T]) -> type[T]:
    """A decorator: the constructor of these options passes the names that it is given to `refuse_unknown`."""
    original = kind.__init__

    @wraps(original)
    def initialize(self: T, *values: Any, **options: Any) -> None:
        kind.refuse_unknown(options)
        original(self, *values, **options)

    kind.__init__ = initialize  # type: ignore[assignment]
    return kind


def check_types(options: Options) -> None:
    """Raise an error if an option does not have the type that its annotation names. numpy's numbers become
    Python's.
    """
    for item in fields(options):  # type: ignore[arg-type]
        value = getattr(options, item.name)
        if item.type == "int":
            object.__setattr__(options, item.name, checked_integer(item.name, value))
        elif item.type == "float" and isinstance(value, Real) and not isinstance(value, (int, float)):
            object.__setattr__(options, item.name, float(value))
        else:
            _check_type(item.name, value, str(item.type))


def checked_integer(name: str, value: object) -> int:
    """The integer that is given; a TypeError names what was given instead, which may be True or False."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{named(name)} must be an integer, not {value!r}")
    return int(value)


def _check_type(name: str, value: object, kind: str) -> None:
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError(f"{named(name)} must be True or False, not {value!r}")
    if kind == "float" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{named(name)} must be a number, not {value!r}")
    if kind == "str":
        if not isinstance(value, str):
            raise TypeError(f"{named(name)} must be text (str), not {value!r}")
        check_unicode(name, value)


def check(options: Options, name: str, good: bool, allowed: str) -> None:
    """Raise an error, which says what is allowed, if the value of an option is not good."""
    if not good:
        raise TrainingError(f"{named(name)} must be {allowed}, not {getattr(options, name)!r}")


def check_unicode(name: str, text: str) -> None:
    """Raise an error if a text has half of a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TrainingError(f"{named(name)}: {text[:40]!r} is not valid Unicode: {error.reason}") from None


def checked_strings(name: str, value: object) -> tuple[str, ...]:
    """Return the value of an option as a tuple of str, or raise an error if it is something else."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{named(name)} must be a list of str, not {value!r}")
    items = tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{named(name)} must be a list of str, but it contains {item!r}")
        check_unicode(name, item)
    return items


class Meaning(NamedTuple):
    """What an option is for."""

    meaning: str
    """What it does."""
    change: str
    """When to give it another value than the default, in whole sentences."""


def sentence(phrase: str) -> str:
    """Return a phrase from a table as a sentence.

    >>> sentence("make every digit a piece by itself")
    'Make every digit a piece by itself.'
    """
    return f"{phrase[0].upper()}{phrase[1:]}."


def meanings(groups: Mapping[str, Mapping[str, Meaning]]) -> dict[str, Meaning]:
    """The meanings of all options by name, from a table that has them in groups."""
    return {name: meaning for group in groups.values() for name, meaning in group.items()}


def page(defaults: Mapping[str, str], groups: Mapping[str, Mapping[str, Meaning]]) -> str:
    """The whole table for `help()`; `defaults` says what each option is if it is not given."""
    lines: list[str] = []
    for title, group in groups.items():
        lines += ["", f"{sentence(title)[:-1]}:", ""]
        for name, (meaning, change) in group.items():
            text = spelled(f"{sentence(meaning)} {change}")
            lines += [f"    {name} (default: {defaults[name]})"]
            lines += [indent(line, 8 * " ") for line in wrap(text, 92, break_on_hyphens=False)]
    return "\n".join(lines)


def default_of(name: str, presets: Mapping[str, Options]) -> str:
    """The default of an option, which is that of the first preset, and what other presets have instead.

    >>> from cpbpe import PRESETS
    >>> default_of("byte_fallback", PRESETS), default_of("add_dummy_prefix", PRESETS)
    ('True; sentencepiece: False', 'True; lossless: False')
    """
    (_, first), *others = ((key, getattr(options, name)) for key, options in presets.items())
    different = [f"{key}: {value!r}" for key, value in others if value != first]
    return "; ".join([repr(first), *different])


def document(
    kind: type[Options], groups: Mapping[str, Mapping[str, Meaning]], presets: Mapping[str, Any]
) -> None:
    """Add the table of all options to their docstring."""
    if kind.__doc__ is not None:  # it is None under python -OO
        defaults = {name: default_of(name, presets) for name in kind.names()}
        kind.__doc__ = f"{cleandoc(kind.__doc__)}\n{page(defaults, groups)}"
