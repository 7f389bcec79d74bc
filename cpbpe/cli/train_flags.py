"""The flags of training: how they are spelled, those of spm_train, and those that people guess."""

from __future__ import annotations

from cpbpe.cli.flags import Flags
from cpbpe.cli.parsing import Parser
from cpbpe.spelling import spelled, spelled_as
from cpbpe.training.option_table import REFUSED, advice
from cpbpe.training.options import ARGUMENTS, NAMES, ONLY_BYTES

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

FLAGS = Flags((*OPTIONS, *ONLY_BYTES, *_ARGUMENTS, "preset", "out"))
"""The spelling."""

THEIRS = {"model-prefix": "out", "num-threads": "threads", "input-format": "format"}
"""Flags of spm_train that have another name but the same meaning here."""

_OUT = "the model is named with --out"
_PROGRESS = "progress is shown on a terminal anyway, and --quiet hides it"
_REPLACED = "files are replaced without asking; leave it out"

GUESSED = {
    **dict.fromkeys(("model", "model-writer", "out-prefix", "output", "output-dir", "output-path"), _OUT),
    **dict.fromkeys(("prefix", "save", "save-path"), _OUT),
    **dict.fromkeys(("progress", "progress-bar", "show-progress"), _PROGRESS),
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
"""Flags that people guess, and what to tell them; `cpbpe.training.option_table` has the rest."""


class TrainParser(Parser):
    """The arguments of a command that takes the options of training."""

    theirs = THEIRS
    guesses = GUESSED

    def way_out(self, name: str) -> str:
        """What to say about an option that there is not, by its name in Python."""
        with spelled_as(FLAGS):
            if name in REFUSED:
                return f": {spelled(REFUSED[name])}"
            way_out = advice(name, [option for option in self.flags() if not option.startswith("no_")])
        return f"; {way_out}" if way_out else ""
