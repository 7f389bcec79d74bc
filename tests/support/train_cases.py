"""Hypothesis strategies for training, which the core's tests and the reference's share."""

from collections.abc import Sequence

from hypothesis import strategies as st

from cpbpe.reference.training_values import PieceLimits


def piece_limits(lengths: Sequence[int]) -> st.SearchStrategy[PieceLimits]:
    """Which strings may become a piece: any choice of options, and one of some greatest lengths."""
    return st.builds(
        PieceLimits,
        max_sentencepiece_length=st.sampled_from(lengths),
        split_by_unicode_script=st.booleans(),
        split_by_number=st.booleans(),
        split_digits=st.booleans(),
        split_by_whitespace=st.booleans(),
        treat_whitespace_as_suffix=st.booleans(),
        allow_whitespace_only_pieces=st.booleans(),
    )
