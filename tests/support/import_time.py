"""Fail if importing cpbpe, with all that encoding needs, takes 100 ms or more; the best of five counts."""

import subprocess
import sys

LIMIT = 0.1  # seconds
CODE = """
import time
begun = time.perf_counter()
import cpbpe
cpbpe.load, cpbpe.Tokenizer
print(time.perf_counter() - begun)
"""


def measure() -> float:
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return float(result.stdout)


if __name__ == "__main__":
    best = min(measure() for _ in range(5))
    print(f"import cpbpe: {best * 1000:.1f} ms")
    sys.exit(best >= LIMIT)
