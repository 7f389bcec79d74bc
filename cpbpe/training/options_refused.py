"""Names that are not options here, and what to say to somebody who gives one.

Silently accepting an option that does nothing would hide a misunderstanding, and users of other libraries
should not have to guess twice. `names in backquotes` are options, spelled as the reader has to type them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from cpbpe.spelling import spelled

_UNIGRAM = "only the unigram model has it, and this is BPE; leave it out"
_DEPRECATED = "sentencepiece 0.2.3 ignores it too; leave it out"

REFUSED = {
    "accept_language": _DEPRECATED,
    "control_symbols_file": "read the file and give its lines as `control_symbols`",
    "denormalizer_spec": "give a file with rules as `denormalization_rule_tsv` instead",
    "differential_privacy_clipping_threshold": _DEPRECATED,
    "differential_privacy_noise_level": _DEPRECATED,
    "enable_differential_privacy": _DEPRECATED,
    "escape_whitespaces": "training needs spaces to become U+2581, as it does in sentencepiece; leave it out",
    "input": "the corpus is the first argument of train()",
    "input_format": "the format of the corpus is given as `format`",
    "min_freq_alpha": _UNIGRAM,
    "mining_sentence_size": _DEPRECATED,
    "minloglevel": "nothing is logged, so there is nothing to silence; leave it out",
    "model_prefix": "the result of train() has save(prefix)",
    "model_type": "cpbpe trains BPE models only, so there is nothing to choose; leave it out",
    "model_writer": "the result of train() has model_bytes",
    "name": "the rules of normalization are chosen with `normalization_rule_name`",
    "normalizer": "give `normalization_rule_name` or `normalization_rule_tsv` instead",
    "num_sub_iterations": _UNIGRAM,
    "num_threads": "the number of threads is given as `threads`",
    "post_l1_debias": _UNIGRAM,
    "precompiled_charsmap": "give a file with rules as `normalization_rule_tsv` instead",
    "random_seed": "the option is called `seed`",
    "required_chars_file": "read the file and give its text as `required_chars`",
    "seed_piece_length_power": _UNIGRAM,
    "seed_sentencepiece_size": _UNIGRAM,
    "seed_sentencepieces_file": _UNIGRAM,
    "self_test_sample_size": _DEPRECATED,
    "sentence_iterator": "an iterable of texts is the first argument of train(), like any corpus",
    "sentence_reader": "an iterable of texts is the first argument of train(), like any corpus",
    "shrinking_factor": _UNIGRAM,
    "train_extremely_large_corpus": "counts have 64 bits whatever the size of the corpus; leave it out",
    "training_sentence_size": _DEPRECATED,
    "use_all_vocab": "only the word and character models have it, and this is BPE; leave it out",
    "use_sparse_pruning": _UNIGRAM,
    "user_defined_symbols_file": "read the file and give its lines as `user_defined_symbols`",
}
"""Options of sentencepiece that training here does not take: the reason for each, as the second half of a
sentence that begins with the name."""

_CALLED = "it is called {} here"

_FOREIGN = {
    "size n_vocab num_vocab vocabulary_size vocab vocabulary max_vocab_size num_tokens n_tokens num_merges "
    "n_merges merges num_symbols": "give `vocab_size`, which counts all pieces: special ones, bytes, "
    "characters and merges",
    "special_tokens special_symbols added_tokens additional_special_tokens extra_tokens reserved_tokens": (
        "give `control_symbols` for pieces that only programs insert, or `user_defined_symbols` for pieces "
        "that are found in text"
    ),
    "min_frequency min_freq min_count minimum_frequency min_pair_frequency": "training goes on until there "
    "are `vocab_size` pieces, however rare they are; a smaller vocabulary has only more frequent ones",
    "unk_token unk unknown_token": _CALLED.format("`unk_piece`"),
    "bos_token bos cls_token begin_token start_token": _CALLED.format("`bos_piece`"),
    "eos_token eos sep_token end_token": _CALLED.format("`eos_piece`"),
    "pad_token pad padding_token": "give `pad_id` an id, such as 3; its text is `pad_piece`",
    "max_token_length max_piece_length max_token_len max_len max_length": _CALLED.format(
        "`max_sentencepiece_length`"
    )
    + "; the longest line that is read is `max_sentence_length`",
    "limit_alphabet coverage char_coverage": _CALLED.format("`character_coverage`"),
    "initial_alphabet alphabet required_characters": _CALLED.format("`required_chars`"),
    "byte_level bytes bytes_fallback fallback": _CALLED.format("`byte_fallback`"),
    "pre_tokenizer pre_tokenizers pretokenize pattern regex split_pattern": "give a function as "
    "`pretokenizer`, or mark the places in the corpus and give `pretokenization_delimiter`",
    "normalization normalizers normalization_rule normalise normalize unicode_normalization": _CALLED.format(
        "`normalization_rule_name`"
    ),
    "lowercase lower do_lower_case uncased casefold": "give nfkc_cf or nmt_nfkc_cf as "
    "`normalization_rule_name`",
    "add_prefix_space prefix_space dummy_prefix": _CALLED.format("`add_dummy_prefix`"),
    "workers n_jobs num_workers nthreads n_threads num_proc jobs cores cpus": _CALLED.format("`threads`"),
    "random_state rng": _CALLED.format("`seed`"),
    "memory max_memory mem_limit memory_max": _CALLED.format("`memory_limit`"),
    "key text_key text_field json_field": _CALLED.format("`field`"),
    "text_column column_name": _CALLED.format("`column`"),
    "file_format input_type": _CALLED.format("`format`"),
    "limit max_lines max_sentences sample sample_size num_samples": _CALLED.format("`input_sentence_size`"),
    "dropout alpha": "it is an option of encoding, not of training",
    "encoding": "a file is read as UTF-8; open it yourself, as in train(open(path, encoding='latin-1'))",
    "options train_options config": "a TrainOptions is given as `preset`",
    "files file corpus data dataset texts text path paths iterator train_data input_file input_files": (
        "the corpus comes first, without a name"
    ),
    "verbose show_progress progress_bar silent": "give progress=True or progress=False",
    "prefix out output output_dir output_path save save_path out_prefix": "the result of train() has "
    "save(prefix)",
}
"""What other libraries call options, and what people guess: names, with the second half of a sentence."""

FOREIGN = {name: advice for names, advice in _FOREIGN.items() for name in names.split()}


def advice(name: str, names: Sequence[str], refused: Mapping[str, str] = REFUSED) -> str:
    """The second half of a message about an option that does not exist; `names` are those that do.

    >>> advice("special_token", ["vocab_size", "pretokenizer", "control_symbols"])[:23]
    'give control_symbols fo'
    >>> advice("vocabsize", ["vocab_size", "pretokenizer"])
    'did you mean vocab_size?'
    """
    plain = name.lower().replace("-", "_").strip("_")
    for known in (plain, f"{plain}s", plain.removesuffix("s")):
        if known in FOREIGN:
            return spelled(FOREIGN[known])
    close = get_close_matches(plain, names, 1, 0.75)
    if not close and len(plain) > 3:
        close = [known for known in names if plain in known][:3]
    if not close:
        close = get_close_matches(plain, [*refused, *FOREIGN], 1, 0.85)
        if close:
            return spelled({**FOREIGN, **refused}[close[0]])
    return f"did you mean {spelled(' or '.join(f'`{known}`' for known in close))}?" if close else ""
