"""Whatever the bytes of a file are: a model that works, or one of the two errors, with a message.

The targets of the fuzzer, without it: on random bytes, and on what it has found.
"""

import random

import pytest

from cpbpe.model.formats import registry
from tests import fuzzing
from tests.support import budget, hostile


@pytest.mark.parametrize("name", hostile.SEEDS)
def test_the_seeds_are_right(name: str) -> None:
    for data in hostile.seeds_of(name):
        assert registry.format_of(data).name == name.partition(",")[0]
        assert hostile.check(data, name, closely=True)


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_anything_may_be_wrong(target: str) -> None:
    for data in fuzzing.inputs(target):
        fuzzing.run(target, data)
    chance = random.Random(f"{budget.SEED} {target}")
    for _ in range(budget.examples(10 if target == "chat" else 60)):
        fuzzing.run(target, chance.randbytes(chance.choice((8, 40, 200))))
