"""Fail if `import cpbpe` takes 100 ms or more, measured by Python itself; the best of five counts."""

import re
import subprocess
import sys

LIMIT = 100_000  # microseconds


def measure() -> int:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import cpbpe"], capture_output=True, text=True, check=True
    )
    found = re.search(r"^import time:\s+\d+ \|\s+(\d+) \| cpbpe$", result.stderr, re.MULTILINE)
    assert found is not None, result.stderr
    return int(found[1])


if __name__ == "__main__":
    best = min(measure() for _ in range(5))
    print(f"import cpbpe: {best / 1000:.1f} ms")
    sys.exit(best >= LIMIT)
