"""What every option of byte-level training means, and why options of the other family are refused.

The form is that of `cpbpe.training.option_table`; help(), the command and docs/training.md read both.
"""

from __future__ import annotations

from cpbpe.training.option_table import Meaning

GROUPS: dict[str, dict[str, Meaning]] = {
    "vocabulary": {
        "vocab_size": Meaning(
            "how many pieces the model has: special tokens, 256 bytes and merges",
            "Choose it for every model. With more pieces, texts take fewer tokens, but the embeddings take "
            "more memory.",
        ),
        "hard_vocab_limit": Meaning(
            "fail if the corpus is too small for `vocab_size` pieces, instead of making a smaller model",
            "Turn it off if you want as many pieces as a small corpus gives.",
        ),
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
"""The options by group, in the order of `ByteTrainOptions`."""

MEANINGS = {name: meaning for group in GROUPS.values() for name, meaning in group.items()}
"""The options by name."""

_BYTES = "all 256 bytes are pieces, so every text can be written; leave it out"
_AS_IT_IS = "byte-level models take a text as it is; change the corpus before it is counted, or leave it out"
_TOKENS = "byte-level models call them `special_tokens`"
_CUT = "the `pattern` says how a text is cut; leave it out"
_WHOLE = "every text is counted whole, however long it is; leave it out"
_SAMPLE = (
    "texts of byte-level models are not sampled; give a part of the corpus, such as the first lines: "
    "itertools.islice(texts, 1000)"
)

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("character_coverage", "auto_character_coverage", "required_chars", "byte_fallback"), _BYTES
    ),
    **dict.fromkeys(
        ("initial_alphabet", "limit_alphabet", "unk_id", "unk_piece", "unk_surface", "unk_token"), _BYTES
    ),
    **dict.fromkeys(
        (
            "normalization_rule_name",
            "normalization_rule_tsv",
            "normalization_rules",
            "denormalization_rule_tsv",
            "denormalization_rules",
            "add_dummy_prefix",
            "remove_extra_whitespaces",
        ),
        _AS_IT_IS,
    ),
    **dict.fromkeys(("control_symbols", "additional_special_tokens", "reserved_tokens"), _TOKENS),
    "user_defined_symbols": "a text is cut by the pattern alone, so nothing in it can be kept whole; for "
    "tokens that programs insert, give `special_tokens`",
    **dict.fromkeys(
        ("bos_id", "eos_id", "pad_id"),
        "the ids of special tokens follow from `special_tokens`, in "
        "the order given, and `special_tokens_first`",
    ),
    "pad_piece": "list it among `special_tokens`",
    "max_sentencepiece_length": "byte-level models have `max_piece_length`, in bytes",
    "max_token_length": "it is called `max_piece_length` here, and a piece may have that many bytes; pieces "
    "of tokenizers have fewer than its max_token_length, so give one less",
    **dict.fromkeys(
        (
            "split_by_whitespace",
            "split_by_unicode_script",
            "split_by_number",
            "split_digits",
            "treat_whitespace_as_suffix",
            "allow_whitespace_only_pieces",
            "pretokenization_delimiter",
            "pretokenizer",
            "pre_tokenizer",
            "allow_inconsistent_pretokenization",
        ),
        _CUT,
    ),
    **dict.fromkeys(("max_sentence_length", "keep_newlines", "keep_reserved"), _WHOLE),
    **dict.fromkeys(("input_sentence_size", "shuffle_input_sentence", "seed"), _SAMPLE),
    "vocabulary_output_piece_score": "the .vocab file of a byte-level model has no scores; leave it out",
    "record_paths": "only models of the SentencePiece family can record paths; leave it out",
    "show_progress": "give progress=True or progress=False",
}
"""Names that are not options here, and the second half of a sentence about each."""
