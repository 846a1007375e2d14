"""Thumbnails in child processes: the work uses all cores, and a file that crashes the decoder costs one job.

python thumbnails.py                                        # SQLite, in this directory
RELET_URL=postgresql://localhost/shop python thumbnails.py  # PostgreSQL
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from pathlib import Path

from relet import App, State

app = App()
WIDTH = 64  # of a thumbnail


@app.task(queue="thumbnails", process=True, timeout=30, max_attempts=2)
def make_thumbnail(source: str, target: str) -> str:
    """Shrink a picture. With process=True a crash ends only the child process, and the timeout always holds."""
    width, height, pixels = read_ppm(Path(source))
    step = max(1, width // WIDTH)
    rows = [shrunk_row(pixels, width, top, step) for top in range(0, height - step + 1, step)]
    # Written under another name first: an attempt that is repeated never finds half a file.
    partial = Path(f"{target}.partial")
    partial.write_bytes(png(width // step, rows))
    partial.replace(target)
    return f"{width // step}x{len(rows)}"


# The work itself, with the standard library alone. Replace it by your library, such as Pillow.


def read_ppm(path: Path) -> tuple[int, int, bytes]:
    kind, size, _, pixels = path.read_bytes().split(b"\n", 3)
    if kind != b"P6":
        os.abort()  # as a library in C does with a file that it does not expect
    width, height = map(int, size.split())
    return width, height, pixels


def shrunk_row(pixels: bytes, width: int, top: int, step: int) -> bytes:
    """One row of the thumbnail: the average colour of each square."""
    row = bytearray()
    for left in range(0, width - step + 1, step):
        starts = [3 * ((top + y) * width + left) for y in range(step)]
        for colour in range(3):
            row.append(sum(sum(pixels[at + colour : at + 3 * step : 3]) for at in starts) // step**2)
    return bytes(row)


def png(width: int, rows: list[bytes]) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def draw(path: Path, number: int) -> None:
    """A picture to shrink: a gradient."""
    rows = [bytes(v for x in range(320) for v in (x * 255 // 320, y, number * 40)) for y in range(240)]
    path.write_bytes(b"P6\n320 240\n255\n" + b"".join(rows))


def main() -> None:
    app.client.migrate()
    folder = Path(tempfile.mkdtemp(prefix="thumbnails-"))
    for number in range(6):
        draw(folder / f"{number}.ppm", number)
    (folder / "broken.ppm").write_bytes(b"no picture\n\n\n")
    drafts = [make_thumbnail.draft(str(path), f"{path}.png") for path in sorted(folder.glob("*.ppm"))]
    with app.worker(concurrency=os.cpu_count() or 2):
        jobs = app.client.wait_many(app.client.enqueue_many(drafts), timeout=120)
    for path, job in zip(sorted(folder.glob("*.ppm")), jobs, strict=True):
        print(f"{path.name}: {job.result if job.state is State.SUCCEEDED else job.error}")
    print(f"thumbnails in {folder}: {len(list(folder.glob('*.png')))}")


if __name__ == "__main__":
    main()
