"""What every option of training means: one table, read by `help()`, by the command and by docs/training.md.

A meaning is a phrase that begins in lower case and has no full stop. `names in backquotes` are options, which
each reader of the table spells in its own way.
"""

from __future__ import annotations

from textwrap import indent, wrap
from typing import NamedTuple

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
"""The options by group, in the order of `TrainOptions`."""

MEANINGS = {name: meaning for group in GROUPS.values() for name, meaning in group.items()}
"""The options by name."""


def sentence(phrase: str) -> str:
    """A phrase of the table as a sentence.

    >>> sentence("make every digit a piece by itself")
    'Make every digit a piece by itself.'
    """
    return f"{phrase[0].upper()}{phrase[1:]}."


def page(defaults: dict[str, str], groups: dict[str, dict[str, Meaning]] = GROUPS) -> str:
    """The whole table for `help()`; `defaults` says what each option is if it is not given."""
    lines: list[str] = []
    for title, group in groups.items():
        lines += ["", f"{sentence(title)[:-1]}:", ""]
        for name, (meaning, change) in group.items():
            text = spelled(f"{sentence(meaning)} {change}")
            lines += [f"    {name} (default: {defaults[name]})"]
            lines += [indent(line, 8 * " ") for line in wrap(text, 92, break_on_hyphens=False)]
    return "\n".join(lines)
