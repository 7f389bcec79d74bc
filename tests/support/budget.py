"""How much is tried: a few examples for every change, as many as one likes by request.

`CPBPE_EXAMPLES` sets how many texts, ids or cases each test makes; without it every test has a small number
of its own. A run with 200,000 takes some hours on two cores:

    CPBPE_EXAMPLES=200000 python -m pytest tests/encode/test_parity.py -n 2

From 1,000 on, tests also do all that they leave out of usual runs because it is alike to something else.

`CPBPE_SEED` makes another run with the same number.
"""

import json
import os
import re
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings

MUCH = int(os.environ.get("CPBPE_EXAMPLES") or 0) >= 1000
"""Whether there is time for everything, also for what is alike to what is tried every day."""
SEED = int(os.environ.get("CPBPE_SEED") or 1)
TRIED: Counter[tuple[str, str]] = Counter()
"""What was made to fail on purpose, by which test function, and how often."""
FAILED: set[str] = set()
"""The tests that failed."""


def tried(what: str, times: int) -> None:
    """Remember what the test that runs made to fail on purpose."""
    TRIED[what, re.split(r"[\[ ]", os.environ["PYTEST_CURRENT_TEST"])[0]] += times


def record(command: str) -> None:
    """Write what was `TRIED` into the file that `CPBPE_RECORD` names, for tests.support.evidence."""
    if name := os.environ.get("CPBPE_RECORD"):
        many = f"CPBPE_EXAMPLES={examples(0)} " if examples(0) else ""
        failed = Counter(test.partition("[")[0] for test in FAILED)
        others = sum(count for test, count in failed.items() if test not in {name for _, name in TRIED})
        lines: list[dict[str, object]] = []
        for (what, test), times in TRIED.items():
            found = failed[test] + others  # (rather twice than not at all)
            about = {"times": times, "command": many + command, "found": found}
            lines.append({"kind": "faults", "what": what, **about})
        with Path(name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def examples(usual: int) -> int:
    """How many examples to make, for a test that usually makes `usual` of them."""
    return int(os.environ.get("CPBPE_EXAMPLES") or usual)


def quick(share: int, least: int) -> settings:
    """Settings for a hypothesis test that runs on many models: one of `share` usual examples for each.

    Examples are not kept on the disk; a failure prints how to make it again.
    """
    return settings(
        max_examples=max(least, min(examples(200) // share, 2000)),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
