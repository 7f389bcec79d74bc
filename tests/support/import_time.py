"""Fail if importing cpbpe, with all that encoding needs, takes 100 ms or more; the best of five counts.

It is compiled before, as pip compiles what it installs.
"""

import os
import subprocess
import sys
import tempfile

LIMIT = 0.1  # seconds
CODE = """
import time
begun = time.perf_counter()
import cpbpe
cpbpe.load, cpbpe.Tokenizer
print(time.perf_counter() - begun)
"""


def measure(compiled: str) -> float:
    own = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
    command = [sys.executable, "-c", CODE]
    return float(subprocess.run(command, env={**os.environ, **own}, capture_output=True, check=True).stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        measure(directory)
        best = min(measure(directory) for _ in range(5))
    print(f"import cpbpe: {best * 1000:.1f} ms")
    sys.exit(best >= LIMIT)
