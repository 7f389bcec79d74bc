"""All codes of findings, each with its severity and what it means. docs/lint.md has the same table."""

from __future__ import annotations

CODES: dict[str, tuple[str, str]] = {
    # Pieces that no text yields.
    "blocked": ("warning", "Pieces whose parts merge with others first, so that they never come about."),
    "orphan": ("warning", "Pieces that no two symbols merge into."),
    "shadowed": (
        "warning",
        "Pieces that contain a user-defined piece, which is found first and never merges.",
    ),
    "crowded": ("warning", "User-defined pieces with 64 shorter ones that begin like them."),
    "normalized-away": ("warning", "Pieces that are in no normalized text."),
    "not-utf8": ("note", "Pieces of bytes that no UTF-8 has."),
    "hidden-nul": ("warning", "The piece that is one NUL character, which sentencepiece never finds."),
    "completed": ("note", "Byte-level pieces that merge with whatever goes on with their last character."),
    "cut-apart": ("warning", "Byte-level pieces that the pattern always cuts."),
    "unused": ("note", "Pieces of the type UNUSED."),
    "unused-unknown": ("note", "The UNKNOWN piece of a model in which nothing is unknown."),
    "unused-bytes": ("note", "Byte pieces that no text yields."),
    "no-witness": ("note", "Pieces of which it is not decided whether a text yields them."),
    "literal-space": ("warning", "Pieces that only texts with the character ▁ (U+2581) itself yield."),
    "whole-only": ("note", "Byte-level pieces that no merges make: only a whole chunk becomes them."),
    # Pieces.
    "equal-scores": ("note", "Pieces with one score: places in the text decide which merges first."),
    "odd-scores": ("error", "Scores that are infinite or no number."),
    "alike-after-normalizing": ("warning", "Pieces that normalization makes the text of another piece."),
    "alike-in-unicode": ("note", "Pieces that are one text in different spellings of Unicode."),
    "looks-special": ("warning", "Pieces that look like special tokens, and that ordinary text yields."),
    "user-defined-looks-special": ("warning", "The same for user-defined pieces."),
    "reserved": ("note", "Pieces that look like special tokens, and that no text yields."),
    "looks-like-byte": ("error", "Pieces spelled as <0x41> that are no byte pieces."),
    "control-looks-like-text": ("warning", "CONTROL pieces that look like ordinary text."),
    "invisible": ("note", "Pieces with an invisible character, or one that controls a terminal."),
    "replacement": ("note", "Pieces with U+FFFD, which stands for broken text."),
    "character-missing": ("warning", "Characters in pieces that are no pieces themselves."),
    "ascii-missing": ("warning", "Visible ASCII characters, or the space, that are no pieces."),
    "uneven-digits": ("note", "Some numbers are one piece, others of the same length are several."),
    "long-runs": ("note", "Pieces that are one character 32 times or more."),
    # Everything else in a model.
    "not-loaded": ("error", "The file is no valid model: bytes missing, a piece twice, ..."),
    "special-ids": ("error", "Special ids in the settings that are not those of the pieces."),
    "special-type": ("warning", "Special pieces of a type with which text can yield them."),
    "special-prefix": ("warning", "Special tokens that begin with another one."),
    "no-eos": ("warning", "There is no piece that ends a text."),
    "no-pad": ("note", "There is no piece that fills batches."),
    "gap": ("note", "Ids that are not in use."),
    "loses-text": ("warning", "Texts that do not come back from their ids, with an example for each reason."),
    "loss-unknown": ("note", "It could not be told whether every text comes back."),
    "no-byte-fallback": ("warning", "Characters that are not in the vocabulary are all the same piece."),
    "odd-size": ("note", "The number of ids is no multiple of 64."),
    "recorded-size": ("note", "The file records another number of pieces than it has."),
    "no-dummy-prefix": ("note", "Words have other ids at the beginning of a text than after a space."),
    "squeezed-without-prefix": ("note", "Spaces at the beginning are removed, and none is put there."),
    # With a corpus.
    "never-used": ("note", "Pieces that text can yield and that do not occur."),
    "hardly-used": ("note", "Pieces that occur once or twice."),
    "byte-share": ("note", "How many tokens are bytes of characters without a piece; a warning above 1 %."),
    "unknown-share": ("note", "How many tokens are unknown; a warning above 1 %."),
    "empty-corpus": ("warning", "The corpus has no text."),
    # With an embedding.
    "undertrained": ("warning", "Pieces whose rows are like those of pieces that are never used."),
    "too-few-rows": ("error", "The embedding has fewer rows than there are ids."),
    "no-reference": ("note", "No piece is known to be unused, so that rows cannot be compared."),
}
"""Codes never change, because they are in people's scripts."""
