"""Options of sentencepiece that training here does not take, each with the reason.

Silently accepting what does nothing would hide a misunderstanding.
"""

from __future__ import annotations

_UNIGRAM = "only the unigram model has it, and this is BPE; leave it out"
_DEPRECATED = "sentencepiece 0.2.3 ignores it too; leave it out"

REFUSED = {
    "accept_language": _DEPRECATED,
    "denormalizer_spec": "give denormalization_rule_tsv or denormalization_rules instead",
    "differential_privacy_clipping_threshold": _DEPRECATED,
    "differential_privacy_noise_level": _DEPRECATED,
    "enable_differential_privacy": _DEPRECATED,
    "escape_whitespaces": "training needs spaces to become U+2581, as it does in sentencepiece; leave it out",
    "input": "the corpus is the first argument of train()",
    "input_format": "the format of the corpus is train()'s argument format",
    "min_freq_alpha": _UNIGRAM,
    "mining_sentence_size": _DEPRECATED,
    "minloglevel": "nothing is logged; train() has a report and a progress argument",
    "model_prefix": "the result of train() has save(prefix)",
    "model_type": "cpbpe trains BPE models only, so there is nothing to choose; leave it out",
    "model_writer": "the result of train() has model_bytes",
    "name": "the normalization rule is chosen with normalization_rule_name",
    "normalizer": "give normalization_rule_name, normalization_rule_tsv or normalization_rules instead",
    "num_sub_iterations": _UNIGRAM,
    "num_threads": "the number of threads is train()'s argument threads",
    "post_l1_debias": _UNIGRAM,
    "precompiled_charsmap": "give the rules with normalization_rule_tsv or normalization_rules instead",
    "random_seed": "the option is called seed",
    "required_chars_file": "read the file and give its text as required_chars",
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
}
"""The reason for each, as the second half of a sentence that begins with the name."""
