"""How the command spells options, and which flags of spm_train it takes."""

from __future__ import annotations

from cpbpe.spelling import Spelling
from cpbpe.training.options import ARGUMENTS, NAMES

FUNCTIONS_AND_PAIRS = (
    "pretokenizer",
    "allow_inconsistent_pretokenization",
    "normalization_rules",
    "denormalization_rules",
)
"""Options that only Python can give: functions, and pairs of texts."""

OPTIONS = tuple(name for name in NAMES if name not in FUNCTIONS_AND_PAIRS)
"""The options of training that are flags."""

_ARGUMENTS = tuple(name for name in ARGUMENTS if name != "progress")


class _Flags(Spelling):
    """The command's spelling: ``--hard-vocab-limit`` and ``--no-hard-vocab-limit``."""

    def name(self, option: str) -> str:
        return flag(option) if option in (*OPTIONS, *_ARGUMENTS, "preset", "out") else option

    def given(self, option: str, value: object) -> str:
        if isinstance(value, bool):
            return self.name(option).replace("--", "--" if value else "--no-", 1)
        return f"{self.name(option)} {flag(option)[2:].upper() if value is ... else value}"

    def value(self, value: object) -> str:
        return ("yes" if value else "no") if isinstance(value, bool) else repr(value)

    def advice(self, python: str, command: str) -> str:
        return command


FLAGS = _Flags()


def flag(option: str) -> str:
    """The flag of an option.

    >>> flag("vocab_size")
    '--vocab-size'
    """
    return "--" + option.replace("_", "-")


THEIRS = {"model-prefix": "out", "num-threads": "threads", "input-format": "format"}
"""Flags of spm_train that have another name but the same meaning here."""

_OUT = "the model is named with --out"
_PROGRESS = "progress is shown on a terminal anyway, and --quiet hides it"
_REPLACED = "files are replaced without asking; leave it out"

GUESSED = {
    **dict.fromkeys(("model", "model-writer", "out-prefix", "output", "output-dir", "output-path"), _OUT),
    **dict.fromkeys(("prefix", "save", "save-path"), _OUT),
    **dict.fromkeys(("progress", "progress-bar", "show-progress", "verbose"), _PROGRESS),
    **dict.fromkeys(("force", "overwrite"), _REPLACED),
    "encoding": "a corpus is UTF-8; convert it first, for example with iconv",
    **dict.fromkeys(("options", "config"), "each option is given by itself, such as --vocab-size 1000"),
    "i": "the corpus comes first, without a name",
    "silent": "--quiet hides everything but errors",
    "sentence-iterator": "the corpus comes first; - is the standard input",
    "sentence-reader": "the corpus comes first; - is the standard input",
    "pretokenizer": "only Python can give a function; --pretokenization-delimiter can do the same for text "
    "that another program has marked",
    "normalization-rules": "give a file with rules, as --normalization-rule-tsv",
    "denormalization-rules": "give a file with rules, as --denormalization-rule-tsv",
    "required-chars-file": 'give its text: --required-chars "$(cat FILE)"',
    "control-symbols-file": 'give its lines: --control-symbols "$(paste -sd, FILE)"',
    "user-defined-symbols-file": 'give its lines: --user-defined-symbols "$(paste -sd, FILE)"',
}
"""Flags that people guess, and what to tell them; `cpbpe.training.options_refused` has the rest."""
