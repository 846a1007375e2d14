"""Pictures of every view of the dashboard, over the web shop that the tests look at: `./dev screenshots`.

Light and dark, on a desktop and on a phone, in docs/images. They are written with a palette of 256 colours, which is a
third of the size and looks the same.
"""

from __future__ import annotations

import argparse
import base64
import struct
import tempfile
import time
import zlib
from pathlib import Path

from tests.web import browser, example_data, history

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZES = {"": (1280, 900, 1.0, 1400), "-phone": (390, 844, 1.5, 1400)}  # width, height, scale, the most height
MATCH = """<match target="pattern"><test name="family"><string>{}</string></test>
<edit name="family" mode="prepend" binding="strong"><string>Liberation Sans</string></edit></match>
"""
FONTS = f"""<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><include ignore_missing="yes">/etc/fonts/fonts.conf</include>
{"".join(MATCH.format(name) for name in ("sans", "sans-serif", "system-ui"))}</fontconfig>
"""

# The commonest colours, of all kinds, make the palette; every other becomes the nearest of them.
QUANTIZE = """async (picture) => {
  const bitmap = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob());
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const data = new Uint32Array(context.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
  const counts = new Map();
  for (const colour of data) counts.set(colour, (counts.get(colour) || 0) + 1);
  const alike = new Map(); // of those that are nearly the same only the commonest
  for (const [colour, count] of counts) {
    const kind = colour & 0xf0f0f0;
    const known = alike.get(kind) || { total: 0, most: 0, colour };
    known.total += count;
    if (count > known.most) Object.assign(known, { most: count, colour });
    alike.set(kind, known);
  }
  const palette = [...alike.values()].sort((a, b) => b.total - a.total).slice(0, 160).map((one) => one.colour);
  const taken = new Set(palette);
  for (const [colour] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (palette.length >= 256) break;
    if (!taken.has(colour)) palette.push(colour);
  }
  const index = new Map(palette.map((colour, place) => [colour, place]));
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const known = palette.map(parts);
  for (const colour of counts.keys()) {
    if (index.has(colour)) continue;
    const [r, g, b] = parts(colour);
    let best = 0, least = Infinity;
    known.forEach(([x, y, z], place) => {
      const far = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
      if (far < least) { least = far; best = place; }
    });
    index.set(colour, best);
  }
  let text = "";
  const bytes = Uint8Array.from(data, (colour) => index.get(colour));
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return { width: bitmap.width, height: bitmap.height, palette: known.flat(), bytes: btoa(text) };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev screenshots", description=__doc__)
    parser.add_argument("views", nargs="*", metavar="VIEW", help="only these, such as overview or job")
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="FOLDER", help="(default docs/images)")
    options = parser.parse_args()
    if browser.where() is None:
        raise SystemExit(browser.HOW_TO_GET_ONE)
    options.to.mkdir(parents=True, exist_ok=True)
    for suffix in SIZES:
        for scheme in ("light", "dark"):
            with tempfile.TemporaryDirectory(prefix="relet-screenshots-") as folder:
                take(Path(folder), suffix, scheme, options.views, options.to)


def take(folder: Path, suffix: str, scheme: str, wanted: list[str], to: Path) -> None:
    """Pictures of all views that are wanted, in one size and scheme, over a shop of this very moment."""
    width, height, scale, most = SIZES[suffix]
    path, fonts = folder / "shop.db", folder / "fonts.conf"
    fonts.write_text(FONTS)
    app = example_data.build(f"sqlite:///{path}")
    history.write(str(path), time.time())
    try:
        with browser.serving(app) as url, browser.browsing(fonts) as chromium:
            how = {"viewport": {"width": width, "height": height}, "color_scheme": scheme, "device_scale_factor": scale}
            example_data.here_again(app)  # the first page is the overview, which says which workers run
            page, blank = browser.signed_in(chromium, url, **how), chromium.new_page()
            for name, address in example_data.views(app).items():
                if wanted and name not in wanted:
                    continue
                example_data.here_again(app)
                page.goto(url + address)
                page.wait_for_timeout(150)
                tall = min(page.evaluate("document.documentElement.scrollHeight"), most)
                picture = page.screenshot(
                    full_page=True, clip={"x": 0, "y": 0, "width": width, "height": max(tall, height)}
                )
                made = png(**blank.evaluate(QUANTIZE, base64.b64encode(picture).decode()))
                file = to / f"{name}{suffix}-{scheme}.png"
                file.write_bytes(made)
                print(f"{file.name:28} {len(picture) / 1024:6.0f} -> {len(made) / 1024:4.0f} KiB", flush=True)
    finally:
        app.close()


def png(width: int, height: int, palette: list[int], bytes: str) -> bytes:
    """A picture with a palette, as a file."""
    rows = base64.b64decode(bytes)
    raw = b"".join(b"\0" + rows[start : start + width] for start in range(0, width * height, width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    body = {b"IHDR": head, b"PLTE": bytearray(palette), b"IDAT": zlib.compress(raw, 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in body.items())


def _chunk(kind: bytes, data: bytes | bytearray) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + bytes(data)))


if __name__ == "__main__":
    main()
