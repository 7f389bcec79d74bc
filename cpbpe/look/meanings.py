"""What each setting that a model file stores means, in a phrase.

Most are options of training, and explained in `option_table`; the others are here.
"""

from __future__ import annotations

from cpbpe.spelling import spelled
from cpbpe.training.option_table import MEANINGS

_NOTHING = "has no effect"
_UNIGRAM = "means something for unigram models only"

_TRAINER = {
    "input": "the files that it was trained on",
    "input_format": "the format of these files: text, or tsv (a text, a tab, a count)",
    "model_prefix": "the name that the model was saved under when it was trained",
    "model_type": "the kind of model; bpe is the one that merges pairs",
    "vocab_size": "how many pieces were asked for, special pieces included",
    "accept_language": f"the languages that it was made for, if the file says so; {_NOTHING}",
    "self_test_sample_size": f"the number of texts stored as a self-test; {_NOTHING}",
    "mining_sentence_size": _NOTHING,
    "training_sentence_size": _NOTHING,
    "seed_sentencepiece_size": _UNIGRAM,
    "shrinking_factor": _UNIGRAM,
    "num_sub_iterations": _UNIGRAM,
    "seed_sentencepieces_file": _UNIGRAM,
    "num_threads": "how many threads trained it; the model does not depend on it",
    "train_extremely_large_corpus": "how the trainer counted a large corpus; the model does not depend on it",
    "enable_differential_privacy": _UNIGRAM,
    "differential_privacy_noise_level": _UNIGRAM,
    "differential_privacy_clipping_threshold": _UNIGRAM,
    "use_all_vocab": "means something for word and character models only",
    "hard_vocab_limit": "whether training would have failed if the corpus was too small for `vocab_size`",
    "vocabulary_output_piece_score": "whether the .vocab file beside the model has scores",
    "byte_fallback": "characters without a piece are encoded as bytes, instead of as unknown",
    "required_chars": "characters that got a piece however rare they were",
    "input_sentence_size": "how many lines it was trained on at most; 0 for all",
    "shuffle_input_sentence": "with `input_sentence_size`: the lines were sampled from the whole corpus",
    "max_sentence_length": "lines with more bytes were skipped in training",
}

_NORMALIZER = {
    "name": "the name of the rules by which text is rewritten before it is encoded; nothing depends on it",
    "precompiled_charsmap": "these rules, compiled; with 0 bytes there are none",
    "escape_whitespaces": "write spaces as U+2581 (▁)",
    "normalization_rule_tsv": "the file that the rules came from",
}


def meaning_of(section: str, name: str) -> str:
    """What a field of a section ("trainer", "normalizer" or "denormalizer") means; "" if it is not known.

    >>> meaning_of("normalizer", "escape_whitespaces")
    'write spaces as U+2581 (▁)'
    """
    own = _TRAINER if section == "trainer" else _NORMALIZER
    if name in own:
        return spelled(own[name])
    return spelled(MEANINGS[name].meaning) if name in MEANINGS else ""
