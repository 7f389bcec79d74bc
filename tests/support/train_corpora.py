"""Text to train on: a little that every checkout makes itself, or megabytes from a folder of one's own.

The small corpora are put together from the code of this repository and from invented words, in four kinds.
With `CPBPE_CORPORA=folder`, the files english.txt, japanese.txt, mixed.txt and code.txt there are read
instead by whoever asks for full ones.
"""

import os
import random
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def _lines(kind: str) -> tuple[bytes, ...]:
    chance = random.Random(kind)
    if kind == "code":
        files = sorted((ROOT / "cpbpe").rglob("*.py"))
        text = "\n".join(path.read_text() for path in files if "pb2" not in path.name)[:60_000]
        return tuple(text.encode().split(b"\n"))
    latin = _words(chance, ["ka", "the", "in", "st", "re", "lo", "qu", "ä", "e", "s", "ing", "on"], 400)
    kana = _words(chance, list("のにはをがでと日本語人山川東京カタナー大中小"), 300)
    cyrillic = _words(chance, ["на", "по", "ст", "ро", "и", "ка", "не", "й", "е\u0301"], 200)
    arabic = _words(chance, list("ابتثجحدرسنمو\u064e\u0651"), 100)
    numbers = [str(chance.randint(0, 3000)) for _ in range(50)] + ["3.14", "F16", "２０２４年", "№5"]
    marks = [",", ".", "!", "?", "(x)", "--", "🦙", "👩\u200d💻", "<s>", "naïve", "ﬁne", "Ⅷ", "①"]
    lines = []
    for _ in range(700):
        if kind == "english":
            words = chance.choices(latin + numbers[:9], k=chance.randint(1, 14))
            lines.append(" ".join(words).capitalize() + chance.choice([".", "!", ", and", "  ", ""]))
        elif kind == "japanese":
            words = chance.choices(kana + numbers, k=chance.randint(1, 12))
            lines.append("".join(words) + chance.choice(["。", "、", "ー", " "]))
        else:
            words = chance.choices(
                latin + kana + cyrillic + arabic + numbers + marks, k=chance.randint(0, 12)
            )
            lines.append(chance.choice([" ", "  ", "\t", ""]).join(words) + chance.choice(["", "\r", " "]))
    return tuple(line.rstrip("\r\n").encode() for line in lines)


def _words(chance: random.Random, syllables: list[str], number: int) -> list[str]:
    """Words of which some are frequent and most are rare."""
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 5))) for _ in range(number)]
    return [word for rank, word in enumerate(words) for _ in range(1 + number // (rank + 1) // 4)]


def lines(kind: str, full: bool = False) -> list[bytes]:
    """The sentences of one kind of corpus."""
    folder = os.environ.get("CPBPE_CORPORA")
    if full and folder:
        return [line.rstrip(b"\r") for line in Path(folder, f"{kind}.txt").read_bytes().split(b"\n")]
    return list(_lines(kind))


def large() -> list[Path]:
    """Files for the longest test, which are named large-*.txt in the folder."""
    folder = os.environ.get("CPBPE_CORPORA")
    return sorted(Path(folder).glob("large-*.txt")) if folder else []
