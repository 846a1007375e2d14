"""The live view of the demo, for terminals."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .scene import JOBS, SLOTS, Show, Story, WorkerProcess


class LiveShow(Show):
    """Draws ten times a second on a terminal; elsewhere prints the lines."""

    def __init__(self, story: Story, workers: list[WorkerProcess]) -> None:
        super().__init__(story)
        self._workers = workers
        self._console = Console()
        self._live = Live(self._drawn(), console=self._console, refresh_per_second=10, transient=False)

    def __enter__(self) -> LiveShow:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self()
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self) -> None:
        if self._console.is_terminal:
            self._live.update(self._drawn(), refresh=True)
        else:
            super().__call__()

    def _drawn(self) -> Group:
        story = self._story
        states = Table.grid(padding=(0, 3))
        states.add_row(
            *(
                f"[bold]{story.counts.get(state, 0):3}[/] {state}"
                for state in ("pending", "queued", "running", "succeeded")
            )
        )
        bar = ProgressBar(total=JOBS, completed=story.succeeded, width=60)
        parts: list[RenderableType] = [states, bar, Text(), self._drawn_workers()]
        if story.orphans:
            parts += [Text(), self._drawn_orphans()]
        parts += [Text(), Text("\n".join(story.lines[-8:]), style="dim")]
        return Group(Panel(Group(*parts), title="relet: two workers, one SQLite file", width=90))

    def _drawn_workers(self) -> Table:
        table = Table("worker", "process", "state", "running", "succeeded", box=None, padding=(0, 2))
        for worker in self._workers:
            dead = worker.killed_at is not None
            state = Text("killed with -9", style="bold red") if dead else Text("alive", style="green")
            running = self._story.running.get(worker.name, 0)
            slots = f"{'■' * running}{'□' * max(SLOTS - running, 0)}"
            usage = Text(f"{running} leased", style="red") if dead and running else Text("" if dead else slots)
            table.add_row(worker.name, str(worker.process.pid), state, usage, str(self._story.done.get(worker.name, 0)))
        return table

    def _drawn_orphans(self) -> Table:
        table = Table("job of A", "now", box=None, padding=(0, 2))
        for job_id, now in self._story.orphans.items():
            style = "green" if now.startswith("succeeded") else "yellow" if "again" in now else "red"
            table.add_row(f"...{job_id[-12:]}", Text(now, style=style))
        return table
