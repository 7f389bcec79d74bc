"""What the site has besides docs/.

It has a front page, the pages at the root of the repository, the reference, the page of `cpbpe view`, the
chapters of the course as notebooks, the source files that pages link to, and llms.txt.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.inlinepatterns import BACKTICK_RE, BacktickInlineProcessor
from markdown.util import AtomicString, code_escape
from mkdocs.structure.files import File, Files
from mkdocs.utils import write_file
from site_notebooks import notebook

import cpbpe
from cpbpe.cli.quickstart import TEXT, sample
from cpbpe.cli.view import SAMPLE
from cpbpe.view import static_page

ROOT = Path(__file__).parents[1]
AT_ROOT = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
"""The pages at the root of the repository, and their names on the site. README.md is the front page."""
LINK = re.compile(r'(\]\(|src="|srcset=")(?!https?:|#|mailto:)([^)"#]+)')
_sources: set[str] = set()
"""The source files that pages link to, as far as pages have been read."""


def _play() -> str:
    """The page of `cpbpe view`, with a model of our own, so that there is something to see at once."""
    heading = "<h1>cpbpe view</h1>"
    before, after = static_page({SAMPLE: sample().tokenizer}, TEXT).split(heading)
    return f'{before}<h1><a href="../">cpbpe</a> view</h1>{after}'


class _Code(BacktickInlineProcessor):
    """Code between backticks keeps the spaces at its ends, as on GitHub: ` dog` is not `dog`."""

    def handleMatch(self, m: re.Match[str], data: str) -> Any:  # noqa: N802
        """The element for the code, where it begins and where it ends."""
        element, begin, end = super().handleMatch(m, data)
        if isinstance(element, Element) and (code := data[begin:end].strip("`")) != code.strip():
            element.text = AtomicString(code_escape(code))
            element.set("style", "white-space: break-spaces")
        return element, begin, end


class _Spaces(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Code(BACKTICK_RE), "backtick", 190)


def on_config(config: Any) -> Any:
    """Read code between backticks as GitHub does."""
    config.markdown_extensions.append(_Spaces())
    return config


def on_page_content(html: str, **kwargs: Any) -> str:
    r"""In a table, `\|` is a `|` that ends no cell, also in code: the backslash is not shown."""
    return re.sub(r"<t[dh]\b.*?</t[dh]>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add what is generated."""
    _sources.clear()
    readme = _relinked((ROOT / "README.md").read_text(encoding="utf-8"), "", "index.md")
    files.append(File.generated(config, "index.md", content=readme))
    for name, page in AT_ROOT.items():
        content = _relinked((ROOT / name).read_text(encoding="utf-8"), "", page)
        files.append(File.generated(config, page, content=content))
    files.append(File.generated(config, "api.md", content="".join(_reference())))
    files.append(File.generated(config, "play/index.html", content=_play()))
    pages = [file for file in files if file.src_uri.endswith(".md")]
    with TemporaryDirectory() as folder:
        for page in pages:
            if page.src_uri.startswith("learn/"):
                content = notebook(ROOT / "docs" / page.src_uri, Path(folder))
                files.append(File.generated(config, f"{page.src_uri[:-3]}.ipynb", content=content))
    files.append(File.generated(config, "llms.txt", content=_llms(config)))
    files.append(File.generated(config, "site.css", content=(ROOT / ".ci" / "site.css").read_text()))
    # Source files, as text. All pages are read here for their links; `on_page_markdown` comes too late.
    for page in pages:
        path = ROOT / "docs" / page.src_uri
        if path.exists():
            _relinked(
                path.read_text(encoding="utf-8"), posixpath.dirname(f"docs/{page.src_uri}"), page.src_uri
            )
    for source in sorted(_sources):
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, f"source/{source}.txt", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """A page with links as the site needs them, and with the links that every page ends with."""
    uri = page.file.src_uri
    folder, name = posixpath.split(uri.removesuffix(".md"))
    if uri not in ("index.md", "api.md", *AT_ROOT.values()):
        markdown = _relinked(markdown, posixpath.dirname(f"docs/{uri}"), uri)
    if uri != "api.md":
        write_file(markdown.encode(), f"{config.site_dir}/{uri}")  # for llms.txt
    # The highlighter tells what is typed from what is printed.
    markdown = re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)
    ends = [f"[Glossary]({posixpath.relpath('glossary.md', folder or '.')})"]
    if folder == "learn":
        ends.append(f'[This page as a notebook]({name}.ipynb){{ download="{name}.ipynb" }}')
    return f"{markdown}\n\n{' · '.join(ends)}\n"


def _relinked(text: str, folder: str, page: str) -> str:
    """A page with links as the site needs them; `folder` is where it is in the repository.

    What a link names may be elsewhere on the site, or be a source file, which `_sources` then has.
    """

    def relinked(match: re.Match[str]) -> str:
        begin, target = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("docs/"):
            goal = path[5:]
        elif path in AT_ROOT:
            goal = AT_ROOT[path]
        elif path == "README.md":
            goal = "index.md"
        elif (ROOT / path).is_file():
            _sources.add(path)
            goal = f"source/{path}.txt"
        elif (ROOT / path / "README.md").is_file():
            _sources.add(f"{path}/README.md")
            goal = f"source/{path}/README.md.txt"
        elif (ROOT / path / "Cargo.toml").is_file():  # core/
            _sources.add(f"{path}/Cargo.toml")
            goal = f"source/{path}/Cargo.toml.txt"
        else:
            return match[0]
        # (mkdocs knows where a page will be, but leaves HTML as it is.)
        html = page.removesuffix("index.md").removesuffix(".md")
        return begin + posixpath.relpath(goal, (posixpath.dirname(page) if begin == "](" else html) or ".")

    return LINK.sub(relinked, text)


def _reference() -> Iterator[str]:
    """What `cpbpe` exports, from its docstrings."""
    yield "---\nsearch: {boost: 0.2}\n---\n"  # It has every word often.
    yield "# Reference\n\nWhat `import cpbpe` gives. The pages of this site show each name in use.\n"
    names = [name for name in cpbpe.__all__ if not name.startswith("_")]
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": ["Tokenizer"], "Errors": [], "Values": []}
    for name in names:
        value = getattr(cpbpe, name)
        if isinstance(value, type):
            kind = "Errors" if issubclass(value, Exception) else "Classes"
        else:
            kind = "Functions" if callable(value) else "Values"
        if name not in kinds[kind]:
            kinds[kind].append(name)
    for kind, those in kinds.items():
        yield "".join([f"\n## {kind}\n", *(f"\n::: cpbpe.{name}\n" for name in those)])


def _llms(config: Any) -> str:
    """llms.txt: the pages with their first sentences, for language models (https://llmstxt.org)."""
    sections: dict[str, list[str]] = {}
    for entry in config.nav:
        for section, below in entry.items():
            for page in below if isinstance(below, list) else [entry]:
                for name, uri in page.items():
                    where = section if isinstance(below, list) else "The site"
                    sections.setdefault(where, []).append(_described(name, uri))
    parts = [f"## {name}\n\n" + "\n".join(lines) for name, lines in sections.items()]
    return "\n\n".join([f"# {config.site_name}", f"> {config.site_description}.", *parts]) + "\n"


def _described(name: str, uri: str) -> str:
    """A page as a line: its Markdown, if it has some, and how its text begins."""
    sources = {"index.md": "README.md", **{page: source for source, page in AT_ROOT.items()}}
    path = ROOT / sources.get(uri, f"docs/{uri}")
    if not path.exists():
        return f"- [{name}]({uri.removesuffix('.md').removesuffix('index.html').rstrip('/')}/)"
    title, *rest = path.read_text(encoding="utf-8").split("\n\n")
    first = next(part for part in rest if not part.startswith(("#", "![", "```", "|", "**")))
    first = re.split(r"(?<=[.?])\s", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(first.split())))[0]
    return f"- [{title.lstrip('# ')}]({uri}): {first.removesuffix(':')}"
