"""What several tests of encoding share."""

import pytest

import cpbpe
from tests.support.tokenizers import tokenizer


@pytest.fixture
def mistral(engine: str) -> cpbpe.Tokenizer:
    """A real model, Mistral 7B's."""
    return tokenizer("tokenizer.model.v1", engine)
