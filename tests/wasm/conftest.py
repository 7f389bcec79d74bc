"""Node with the page's scripts, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.support import node as nodes


@pytest.fixture(scope="module")
def node() -> Iterator[nodes.Node]:
    with nodes.started() as process:
        yield process
