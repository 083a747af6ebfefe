"""Check one page in every width and scheme: accessibility, width, errors of the console."""

from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

WIDTHS = {1280: 800, 360: 740, 1920: 1080}
SCHEMES = ("light", "dark")
TALLEST = 1200  # of a picture for the documentation; what is below is cut off
# the console's message on styles that axe and screenshots add
ADDED_STYLE = "Applying inline style"
# the console's messages on an error status, of the browser and of htmx
REFUSED = ("Failed to load resource", "Response Status Error Code")
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT_OFF = """() => [...document.querySelectorAll("svg text")].filter((text) => {
  const box = text.getBoundingClientRect(), drawing = text.ownerSVGElement.getBoundingClientRect();
  return box.left < drawing.left - 1 || box.right > drawing.right + 1;
}).map((text) => text.textContent)"""
SETTLED = """async () => {
  document.querySelectorAll("img").forEach((image) => { image.loading = "eager" });
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
FOLDED = "details:not([open])"
UNFOLD = f"""() => document.querySelectorAll("{FOLDED}").forEach((one) => {{ one.open = true }})"""


@dataclass
class Eye:
    """A browser window of one user; `problems` lists what was wrong on the pages."""

    page: Page
    folder: Path
    problems: list[str] = field(default_factory=list)
    seen: int = 0
    _errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, browser: Browser, base: str, folder: Path) -> "Eye":
        """Open a window with its own context."""
        context = browser.new_context(base_url=base, reduced_motion="reduce")
        context.set_default_timeout(30_000)
        eye = cls(context.new_page(), folder)
        eye.page.on(
            "console",
            lambda line: (
                line.type == "error"
                and eye._errors.append(f"{line.text} {line.location.get('url', '')}".strip())
            ),
        )
        eye.page.on("pageerror", lambda error: eye._errors.append(str(error)))
        return eye

    def look(self, name: str, *, refused: bool = False, docs: str = "") -> Path | None:
        """Check the page, then with all details open; return the documentation's picture."""
        errors = list(self._errors)
        self._errors.clear()
        picture = self._all_variants(name, docs)
        if self.page.locator(FOLDED).count():
            self.page.evaluate(UNFOLD)
            self._all_variants(f"{name}-open", "")
        self.page.evaluate(SETTLED)  # later errors have arrived after this
        errors += [later for later in self._errors if not later.startswith(ADDED_STYLE)]
        self.problems += [
            f"{name}: the console says: {words}"
            for words in errors
            if not (refused and words.startswith(REFUSED))
        ]
        self._errors.clear()
        return picture

    def _all_variants(self, name: str, docs: str) -> Path | None:
        picture = None
        for width, height in WIDTHS.items():
            self.page.set_viewport_size({"width": width, "height": height})
            for scheme in SCHEMES:
                self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                self.page.evaluate(SETTLED)
                self._check(f"{name} ({width}, {scheme})")
                whole = self.folder / f"{name}-{width}-{scheme}.png"
                self.page.screenshot(path=whole, full_page=True)
                if docs == f"{width}-{scheme}":
                    picture = self._excerpt(name, width)
        return picture

    def _check(self, what: str) -> None:
        self.seen += 1
        # a preload would fetch the imports of style sheets from wrong addresses
        options = {"preload": False}
        for violation in Axe().run(self.page, options=options).response["violations"]:
            where = violation["nodes"][0]["html"][:200]
            self.problems.append(
                f"{what}: {violation['id']}, {len(violation['nodes'])} times: {where}"
            )
        wide = self.page.evaluate(SIDEWAYS)
        if wide > 0:
            self.problems.append(f"{what}: scrolls sideways by {wide} px")
        if words := self.page.evaluate(CUT_OFF):
            self.problems.append(f"{what}: a drawing cuts off {words}")

    def _excerpt(self, name: str, width: int) -> Path:
        """Picture the upper part of the page."""
        height = min(TALLEST, self.page.evaluate("document.documentElement.scrollHeight"))
        path = self.folder / f"{name}.png"
        area = {"x": 0, "y": 0, "width": width, "height": height}
        self.page.screenshot(path=path, full_page=True, clip=area)
        return path
