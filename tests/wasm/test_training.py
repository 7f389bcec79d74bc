"""Training in the page gives the files that `cpbpe.train` gives, for every size, and shows what is true."""

import random
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe import TrainingError
from cpbpe.tools.page import TRAINING
from cpbpe.training.families import untrained
from tests.support import budget, corpus
from tests.support import node as nodes
from tests.support.node import Node

pytestmark = pytest.mark.skipif(not nodes.RUNS, reason=f"not there: {', '.join(nodes.MISSING)}")

TRAINED = """
  const base = file(kind);
  const { name, given, values } = cpbpe.training(base, options, cpbpe.utf8(text));
  cpbpe.call(name, given, ...values);
  const trained = new cpbpe.Trained(base, options, { numbers: cpbpe.numbers(), bytes: cpbpe.bytes() });
"""
"""Trains; `kind` is the file of a model that has learned nothing."""

ASKED = """
  const { merges, problem, warnings, least } = trained;
  if (problem) return { problem };
  const some = Math.floor(share * merges);
  const base64 = (bytes) => Buffer.from(bytes).toString('base64');
  // What each merge was chosen from.
  const wrong = [];
  for (let at = 0; at < merges && trained.frequencies[at]; at += 1 + Math.floor(merges / 40)) {
    cpbpe.call('rivals', new Uint8Array(), at, 5);
    const [left, right, count] = cpbpe.numbers();
    const made = [trained.pairs[2 * at], trained.pairs[2 * at + 1], trained.frequencies[at]];
    if (`${made}` !== `${[left, right, count]}`) wrong.push(at);
  }
  const model = new cpbpe.Model(trained.file());
  const units = trained.units(model, sample);
  model.close();
  return {
    merges, least, warnings, wrong, some,
    files: [base64(trained.file()), base64(trained.file(some))],
    rates: [trained.rate(0), trained.rate(merges)],
    units: units.filter(({ until }) => until > some).length,
  };
"""

TEXTS = {
    "sentences": "\n".join(corpus.lines(300)),
    "code": Path(__file__).read_text(encoding="utf-8"),
    "page": (nodes.BROWSER / "page.html").read_text(encoding="utf-8"),
    "small": "low lower lowest\nnewer  newest <s>low</s>\n\n",
    "alike": "aaaa aaaaaa aaa\nabababab\n" * 3,
    "awkward": "▅ reserved\nテスト日本\r\n\u00e9e\u0301 \0 \x1f <0x41> <|endoftext|>\n" * 20 + "long " * 1000,
}


def random_options(rng: random.Random) -> dict[str, Any]:
    flags = ["byte_fallback", "add_dummy_prefix", "split_digits", "split_by_whitespace"]
    flags += ["allow_whitespace_only_pieces", "remove_extra_whitespaces"]
    return {
        "vocab_size": rng.choice([20, 263, 300, 400, 700, 1500]),
        "character_coverage": rng.choice([0.98, 0.9995, 0.99995, 1.0]),
        "max_sentence_length": rng.choice([4192, 0, 60]),
        "ties": rng.choice(["tokenizers", "minbpe"]),
        **{name: rng.random() < 0.5 for name in flags},
    }


def python_options(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options as `cpbpe.train` takes them."""
    if kind == "sentencepiece":
        return {name: value for name, value in options.items() if name != "ties"}
    return {"preset": TRAINING[kind], "ties": options["ties"], "vocab_size": options["vocab_size"]}


@pytest.mark.parametrize("seed", range(budget.examples(24)))
@pytest.mark.filterwarnings("ignore")
def test_trainings(node: Node, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} {budget.SEED}")
    kind, text = rng.choice([*TRAINING, "sentencepiece", "sentencepiece"]), rng.choice([*TEXTS.values()])
    options = random_options(rng)
    file = tmp_path / "corpus.txt"
    file.write_bytes(text.encode())

    def trained(size: int) -> cpbpe.TrainingResult:
        return cpbpe.train(file, format="text", **{**python_options(kind, options), "vocab_size": size})

    sample = text[:300] + " Zq\u00e9 ok"
    base = b64encode(untrained(TRAINING[kind])).decode()
    made = node.ask(TRAINED + ASKED, kind=base, text=text, options=options, share=rng.random(), sample=sample)
    # 1. The same sizes are refused. If the text gives too few pieces, the page shows the largest model.
    problem = ""
    try:
        result = trained(options["vocab_size"])
    except TrainingError as error:
        problem = str(error)
    if problem and " to " not in problem:
        assert made["problem"]
        return
    if problem:
        assert f"{made['least']} to {made['least'] + made['merges']} pieces" in problem
        assert made["warnings"][0].startswith("The text gives")
        result = trained(made["least"] + made["merges"])
    # 2. The files are the same, and so is what is said of the text.
    part = trained(made["least"] + made["some"])
    assert [b64decode(data) for data in made["files"]] == [
        result.tokenizer.to_bytes(),
        part.tokenizer.to_bytes(),
    ]
    curve = result.report.curve
    assert curve is not None
    tokens = [rate * result.report.text_bytes for rate in made["rates"]]
    assert tokens == pytest.approx([curve.tokens[0], curve.tokens[made["merges"]]])
    dropped = [text for text in made["warnings"] if text.startswith("The coverage leaves out")]
    assert bool(dropped) == bool(result.report.rare_characters)
    returns = [text for text in made["warnings"] if "carriage return" in text]
    assert bool(returns) == any("carriage return" in text for text in result.report.warnings)
    # 3. Every merge is the best pair of its moment, and the sample has the tokens of the smaller model.
    assert made["wrong"] == []
    assert made["units"] == len(part.tokenizer.encode(sample))


def test_rivals(node: Node) -> None:
    """A text that is small enough to count by hand."""
    options = {**random_options(random.Random(1)), "vocab_size": 263, "ties": "minbpe"}
    text = "ab ab ab ac ac bc"
    found = node.ask(
        TRAINED
        + """
          cpbpe.call('rivals', new Uint8Array(), 0, 9);
          const numbers = [...cpbpe.numbers()];
          const rows = numbers.flatMap((_, at) => (at % 4 ? [] : [numbers.slice(at, at + 4)]));
          const shown = (symbol) => cpbpe.text(trained.bytesOf(symbol));
          return rows.map(([left, right, count]) => [shown(left), shown(right), count]);
        """,
        kind=b64encode(untrained(TRAINING["gpt2"])).decode(),
        text=text,
        options=options,
    )
    assert found == [[" ", "a", 4], ["a", "b", 3], ["a", "c", 2], [" ", "b", 1], ["b", "c", 1]]


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("", {}, "There is nothing to train on: the text is empty."),
        ("word " * 20, {"max_sentence_length": 60}, "There is nothing to train on: 1 line was left out"),
        ("abc", {"vocab_size": 5}, "A vocabulary of 5 is too small"),
        ("abc", {"vocab_size": 261}, "needs 263 at least, for 3 special pieces, 256 bytes, 4 characters"),
    ],
)
def test_problems(node: Node, text: str, changes: dict[str, Any], expected: str) -> None:
    options = {**random_options(random.Random(1)), "byte_fallback": True, "add_dummy_prefix": True, **changes}
    base = b64encode(untrained(TRAINING["sentencepiece"])).decode()
    problem = node.ask(f"{TRAINED} return trained.problem;", kind=base, text=text, options=options)
    assert expected in problem
