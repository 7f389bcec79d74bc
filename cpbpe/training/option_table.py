"""What every option of training means, in both families of models, and what to say about other names.

`help()`, the command and docs/training.md read the meanings. A meaning is a phrase that begins in lower case
and has no full stop. `names in backquotes` are options, which each reader of the table spells in its own way.

Silently accepting an option that does nothing would hide a misunderstanding, and users of other libraries
should not have to guess twice. So each name that is refused has a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent, wrap
from typing import NamedTuple

from cpbpe.foreign import by_name, closest
from cpbpe.spelling import spelled


class Meaning(NamedTuple):
    """What an option is for."""

    meaning: str
    """What it does."""
    change: str
    """When to give it another value than the default, in whole sentences."""


GROUPS: dict[str, dict[str, Meaning]] = {
    "vocabulary": {
        "vocab_size": Meaning(
            "how many pieces the model has, special pieces included",
            "Choose it for every model. With more pieces, texts take fewer tokens, but the embeddings take "
            "more memory.",
        ),
        "hard_vocab_limit": Meaning(
            "fail if the corpus is too small for `vocab_size` pieces, instead of making a smaller model",
            "Turn it off if you want as many pieces as a small corpus gives.",
        ),
        "character_coverage": Meaning(
            "how much of the corpus, as a share from 0.98 to 1, consists of characters that get a piece; the "
            "rarest characters are left without one",
            "Choose 1 if every character matters, as in a small, clean corpus. Choose less if rare "
            "characters would fill the vocabulary, as in noisy text or text in many scripts.",
        ),
        "auto_character_coverage": Meaning(
            "let characters and merges compete for the places in the vocabulary, by how many tokens each "
            "saves; `character_coverage` then has no effect; needs `byte_fallback` and excludes "
            "`required_chars`",
            "Turn it on if you would rather not guess `character_coverage`.",
        ),
        "required_chars": Meaning(
            "characters that get a piece however rare they are, in one text: éèê",
            "Name the letters and signs that people will use but the corpus hardly contains.",
        ),
        "byte_fallback": Meaning(
            "add 256 pieces, one for each byte, and encode characters without a piece as bytes instead of as "
            "unknown",
            "Turn it off if the model will never meet new characters, or to save the 256 pieces.",
        ),
        "control_symbols": Meaning(
            "pieces that programs insert, such as <sep>; texts do not yield them by themselves",
            "List the markers of a chat format or of a task.",
        ),
        "user_defined_symbols": Meaning(
            "pieces that are kept whole wherever a text contains them",
            "List markup and placeholders that must not be split. If users must not be able to write them, "
            "list them in `control_symbols` instead.",
        ),
    },
    "special pieces": {
        "unk_id": Meaning(
            "the id of the unknown piece, which stands for whatever has no piece; -1 for none",
            "Change it if a program expects another id. -1 needs `byte_fallback`.",
        ),
        "bos_id": Meaning(
            "the id of the piece that begins a text; -1 for none",
            "Change it if a program expects another id.",
        ),
        "eos_id": Meaning(
            "the id of the piece that ends a text; -1 for none", "Change it if a program expects another id."
        ),
        "pad_id": Meaning(
            "the id of the piece that fills up the shorter texts of a batch; -1 for none",
            "Give it an id, such as 3, if texts will be padded.",
        ),
        "unk_piece": Meaning("the text of the unknown piece", "Change it if a program expects another text."),
        "bos_piece": Meaning(
            "the text of the piece that begins a text", "Change it if a program expects another text."
        ),
        "eos_piece": Meaning(
            "the text of the piece that ends a text", "Change it if a program expects another text."
        ),
        "pad_piece": Meaning(
            "the text of the piece that fills up a batch", "Change it if a program expects another text."
        ),
        "unk_surface": Meaning(
            "the text that the unknown piece is decoded to",
            "Change it if decoded text should show it in another way.",
        ),
    },
    "what a piece can be": {
        "max_sentencepiece_length": Meaning(
            "the most characters that a piece can have, 1 to 512",
            "Raise it for deeply indented code, or for languages with long words.",
        ),
        "split_by_whitespace": Meaning(
            "end every piece where a word ends, so that no piece has parts of two words",
            "Turn it off to allow pieces of several words.",
        ),
        "split_by_unicode_script": Meaning(
            "never join characters of two scripts, such as Latin and Cyrillic, in one piece (Han, Hiragana "
            "and Katakana count as one script)",
            "Turn it off if words mix scripts.",
        ),
        "split_by_number": Meaning(
            "treat digits as a script of their own; has an effect only with `split_by_unicode_script`",
            "Turn it off, and `split_digits`, too, to allow pieces such as F16.",
        ),
        "split_digits": Meaning(
            "make every digit a piece by itself",
            "Turn it off if numbers should take fewer tokens; similar numbers are then often split "
            "differently.",
        ),
        "treat_whitespace_as_suffix": Meaning(
            "attach each space to the word before it, not to the word after it",
            "Leave it off if in doubt: most programs expect the space in front.",
        ),
        "allow_whitespace_only_pieces": Meaning(
            "allow pieces that consist of spaces only",
            "Leave it on for source code: a line's indentation then takes one or two tokens.",
        ),
        "pretokenization_delimiter": Meaning(
            "a text that marks the places in the corpus that no piece may cross; the marks are removed",
            "Use it if another tool has marked the words or morphemes of the corpus.",
        ),
        "pretokenizer": Meaning(
            "a function that takes a normalized text and returns it in chunks, as a list of str; no piece "
            "crosses from one chunk into the next",
            "Use it to cut with rules of your own. Models do not record it: when they encode, there are no "
            "such cuts.",
        ),
        "allow_inconsistent_pretokenization": Meaning(
            "accept chunks from the `pretokenizer` that, joined, are not the text that it was given",
            "Turn it on if the function drops or changes text on purpose.",
        ),
    },
    "normalization": {
        "normalization_rule_name": Meaning(
            "the rules by which text is rewritten, in training and when it is encoded: identity (no rules), "
            "nfkc, nmt_nfkc, nfkc_cf or nmt_nfkc_cf",
            "Choose nmt_nfkc if variants of a character should become the same (① and 1), and a name with "
            "_cf if case should not matter. Decoding then gives the rewritten text.",
        ),
        "normalization_rule_tsv": Meaning(
            "a file with rules of your own: on each line code points in hexadecimal, a tab, and the code "
            "points that replace them",
            "Use it if no named set of rules fits.",
        ),
        "normalization_rules": Meaning(
            'rules of your own, as pairs of texts or as a mapping: [("①", "1")]',
            "Use it if no named set of rules fits.",
        ),
        "denormalization_rule_tsv": Meaning(
            "a file with rules by which decoded text is rewritten",
            "Use it if decoded text needs a last correction.",
        ),
        "denormalization_rules": Meaning(
            "rules by which decoded text is rewritten, as pairs of texts or as a mapping",
            "Use it if decoded text needs a last correction.",
        ),
        "add_dummy_prefix": Meaning(
            "put a space in front of every text, so that a word has the same piece there as elsewhere",
            "Turn it off for code, or if texts will be encoded in parts whose ids are joined.",
        ),
        "remove_extra_whitespaces": Meaning(
            "drop spaces at both ends of a text, and replace every run of spaces by a single one",
            "Turn it on for prose with untidy spacing; leave it off for code.",
        ),
    },
    "what is read": {
        "max_sentence_length": Meaning(
            "skip lines (or texts of an iterable) that have more bytes than this; 0 for no limit",
            "Raise it if the report says that too much was left out, as happens with a document on each "
            "line.",
        ),
        "input_sentence_size": Meaning(
            "train on this many lines, 101 or more; 0 for all",
            "Give a number to try out options on a part of a large corpus.",
        ),
        "shuffle_input_sentence": Meaning(
            "with `input_sentence_size`: sample from the whole corpus, instead of taking the first lines",
            "Turn it off if the corpus is in random order already, because reading then ends earlier.",
        ),
        "seed": Meaning(
            "the number that decides which lines are sampled (sentencepiece samples others in every run)",
            "Change it to see how much the result depends on the sample.",
        ),
        "keep_newlines": Meaning(
            "keep the newlines at the end of each line, so that pieces can contain them",
            "Turn it on for code and for whole documents (the lossless preset does). Such pieces break lines "
            "in the .vocab file; the .model file is not affected.",
        ),
        "keep_reserved": Meaning(
            "keep lines that contain U+2585 (▅), which sentencepiece skips because it uses this character "
            "for its own purposes",
            "Turn it on if no line may be left out.",
        ),
    },
    "what is written": {
        "vocabulary_output_piece_score": Meaning(
            "write the score of each piece into the .vocab file",
            "Turn it off for a plain list of pieces.",
        ),
        "record_paths": Meaning(
            "record the paths of the corpus and of the model in the model file, as sentencepiece does",
            "Turn it on if the model file must be the same, byte for byte, as the one that sentencepiece "
            "writes from these files. Anybody who has the model can read the paths.",
        ),
    },
}
"""The options of the SentencePiece family by group, in the order of `TrainOptions`."""

BYTE_GROUPS: dict[str, dict[str, Meaning]] = {
    "vocabulary": {
        "vocab_size": Meaning(
            "how many pieces the model has: special tokens, 256 bytes and merges",
            "Choose it for every model. With more pieces, texts take fewer tokens, but the embeddings take "
            "more memory.",
        ),
        "hard_vocab_limit": GROUPS["vocabulary"]["hard_vocab_limit"],
        "special_tokens": Meaning(
            "tokens that programs insert, such as <|endoftext|>; texts do not yield them by themselves",
            "List the markers of your documents and chats. An empty list is for none.",
        ),
        "special_tokens_first": Meaning(
            "give the special tokens the lowest ids, before the bytes, and not the highest",
            "Turn it on if programs expect them there, as those of Mistral and of tokenizers do.",
        ),
        "bos_piece": Meaning(
            "which of `special_tokens` begins a text, for add_bos; empty for none",
            "Name it if texts will be encoded with one.",
        ),
        "eos_piece": Meaning(
            "which of `special_tokens` ends a text, for add_eos; empty for none",
            "Name it if texts will be encoded with one.",
        ),
        "byte_order": Meaning(
            "which ids the bytes have: gpt2, those of GPT-2's vocabulary, or values, 0 to 255",
            "Choose values with the `ties` of minbpe, if its programs will read the model.",
        ),
    },
    "what a piece can be": {
        "pattern": Meaning(
            "how a text is cut into chunks, which no piece crosses: the name of a published pattern (gpt2, "
            "cl100k, o200k, llama3, qwen2, tekken), a regular expression, or empty: a text is not cut",
            "Choose the pattern of the models that yours will be compared with. Published patterns are "
            "counted many times as fast as others.",
        ),
        "ties": Meaning(
            "which of several most frequent pairs is merged: tokenizers, the one with the smaller ids, as in "
            "the library tokenizers; or minbpe, the one that the text contains first, as in minbpe",
            "Choose minbpe for the merges of minbpe. The order of the texts then matters, and counting takes "
            "more time and memory.",
        ),
        "min_frequency": Meaning(
            "the count below which no pair is merged; 0 is like 1; a higher one needs no `hard_vocab_limit`",
            "Raise it if rare pairs should not become pieces, and turn `hard_vocab_limit` off.",
        ),
        "max_piece_length": Meaning(
            "the most bytes that a piece can have, 2 or more; 0 for as many as a model can hold, 7,999",
            "Set it if long pieces, such as lines of dashes, are not worth their ids. What tokenizers calls "
            "max_token_length is larger by 1.",
        ),
    },
    "what is read": {
        "split_lines": Meaning(
            "make each line of a text file a text of its own, with the newline at its end; otherwise a file "
            "is one text",
            "Turn it on for the merges that tokenizers learns from files, which it reads in this way.",
        ),
    },
}
"""The options of byte-level models by group, in the order of `ByteTrainOptions`."""

MEANINGS = {name: meaning for group in GROUPS.values() for name, meaning in group.items()}
BYTE_MEANINGS = {name: meaning for group in BYTE_GROUPS.values() for name, meaning in group.items()}
"""The meanings of the options of each family, by name."""


def sentence(phrase: str) -> str:
    """A phrase of the table as a sentence.

    >>> sentence("make every digit a piece by itself")
    'Make every digit a piece by itself.'
    """
    return f"{phrase[0].upper()}{phrase[1:]}."


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


# --- Names that are not options --------------------------------------------------------------------


REFUSED = by_name(
    {
        "min_freq_alpha num_sub_iterations post_l1_debias seed_piece_length_power seed_sentencepiece_size "
        "seed_sentencepieces_file shrinking_factor use_sparse_pruning": (
            "only the unigram model has it, and this is BPE; leave it out"
        ),
        "accept_language differential_privacy_clipping_threshold differential_privacy_noise_level "
        "enable_differential_privacy mining_sentence_size self_test_sample_size training_sentence_size": (
            "sentencepiece 0.2.3 ignores it too; leave it out"
        ),
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
        "minloglevel": "nothing is logged, so there is nothing to silence; leave it out",
        "model_prefix": "the result of train() has save(prefix)",
        "model_type": "cpbpe trains BPE models only, so there is nothing to choose; leave it out",
        "model_writer": "the result of train() has model_bytes",
        "name": "the rules of normalization are chosen with `normalization_rule_name`",
        "normalizer": "give `normalization_rule_name` or `normalization_rule_tsv` instead",
        "num_threads": "the number of threads is given as `threads`",
        "precompiled_charsmap": "give a file with rules as `normalization_rule_tsv` instead",
        "random_seed": "the option is called `seed`",
        "required_chars_file": "read the file and give its text as `required_chars`",
        "train_extremely_large_corpus": "counts have 64 bits whatever the size of the corpus; leave it out",
        "use_all_vocab": "only the word and character models have it, and this is BPE; leave it out",
        "user_defined_symbols_file": "read the file and give its lines as `user_defined_symbols`",
    }
)
"""Options of sentencepiece that training here does not take: the reason for each, as the second half of a
sentence that begins with the name."""

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
