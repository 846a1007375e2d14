"""`relet worker shop:app`: run jobs until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from .. import logs
from .._worker import Worker
from .._worker.signals import AT_ONCE, SignalPipe
from .._worker.supervisor import DONE_ITS_SHARE, Supervisor
from ..app import App
from ..errors import InvalidInput, StoreBusy, StoreUnavailable
from .load_app import load_app

log = logging.getLogger("relet.worker")

LEFT_BEHIND = 3

EXIT_CODES = """\
signals: SIGTERM or Ctrl-C stops claiming and lets running jobs end within the grace; said again, they are given back
at once; the third time the process just exits. What is said again within half a second counts once.

exit codes: 0 stopped in good order, 1 could not start, 2 wrong arguments, 3 some jobs could be neither settled nor
given back (their leases run out), 128 + n exited at once on signal n."""


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "worker",
        help="run jobs until told to stop",
        description="Run the jobs of an app until told to stop.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("app", help="where the app is, as in shop:app")
    add("-q", "--queue", action="append", metavar="NAME[=SLOTS]", help="serve this queue, with slots of its own if a "
        "number is given; repeatable; default: every queue")  # fmt: skip
    add("-c", "--concurrency", type=int, default=10, metavar="N", help="slots of all other queues (default 10)")
    add("--processes", type=int, default=1, metavar="N", help="so many worker processes (default 1)")
    add(
        "--lease", type=float, default=30.0, metavar="S", help="seconds that a job is held without renewal (default 30)"
    )
    add(
        "--shutdown-timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds for running jobs to end (default 300)",
    )
    add("--poll-interval", type=float, default=1.0, metavar="S", help="look so often when nothing is heard (default 1)")
    add("--rest", type=float, default=0.0, metavar="S", help="seconds that a slot rests between two jobs (default 0)")
    add("--tenant", action="append", metavar="NAME=SLOTS", help="serve this tenant with so many slots; repeatable")
    add("--max-jobs", type=int, metavar="N", help="replace a process after so many jobs")
    add("--max-rss", type=int, metavar="MIB", help="replace a process once it holds so much memory")
    add("--until-idle", action="store_true", help="stop once nothing is left that could run now")
    add("--log-level", default="info", choices=("debug", "info", "warning", "error"), help="(default info)")
    add("--log-format", default="text", choices=("text", "json"), help="lines to read, or a JSON object a line "
        "(default text)")  # fmt: skip
    add("--leash", type=int, help=argparse.SUPPRESS)  # a file descriptor: when it ends, the supervisor is gone
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """One worker here, or several under a supervisor; that also replaces one that has done its share."""
    logs.configure(options.log_level, as_json=options.log_format == "json")
    # Before the user's modules, which may take a while. What the supervisor passes on, it has counted already; only a
    # service manager that sends a signal to all processes makes two of one.
    signals = SignalPipe(at_once=AT_ONCE / 2) if options.leash is not None else None
    app = load_app(options.app)
    worker = make_worker(app, options)
    recycled = options.max_jobs is not None or options.max_rss is not None
    if options.leash is None and (options.processes != 1 or recycled):
        if not 1 <= options.processes <= 1000:
            raise InvalidInput(f"--processes must be from 1 to 1000, not {options.processes}")
        if options.until_idle:
            raise InvalidInput("--until-idle is for one process: not with --processes, --max-jobs or --max-rss")
        for tenant in worker.tenants:
            with suppress(StoreUnavailable, StoreBusy):  # the children wait for it
                app._store(tenant).reach()  # what is wrong for good is told here, not by each of the children
        app.close()
        return Supervisor(options.processes).run()
    return run_here(worker, signals or SignalPipe(), options.leash, until_idle=options.until_idle)


def make_worker(app: App, options: argparse.Namespace) -> Worker:
    """The worker that the arguments describe."""
    return Worker(
        app,
        queues=None if options.queue is None else dict(_pair(one, "--queue") for one in options.queue),
        concurrency=options.concurrency,
        lease=options.lease,
        shutdown_timeout=options.shutdown_timeout,
        poll_interval=options.poll_interval,
        rest=options.rest,
        tenants=None if options.tenant is None else dict(_tenant(one) for one in options.tenant),
        max_jobs=options.max_jobs,
        max_rss=options.max_rss,
    )


def run_here(worker: Worker, signals: SignalPipe, leash: int | None, *, until_idle: bool) -> int:
    """Run a worker in this process, and obey signals."""
    threading.Thread(target=_obey, args=(signals, worker), name="relet-signals", daemon=True).start()
    if leash is not None:
        threading.Thread(target=_hold, args=(leash, worker), name="relet-leash", daemon=True).start()
    # Should a handler block the event loop, the process ends without it.
    threading.Thread(target=_exit_with, args=(worker,), name="relet-exit", daemon=True).start()
    asyncio.new_event_loop().run_until_complete(worker.run(until_idle=until_idle))
    signals.ignore()
    _leave(worker)
    return code_of(worker)


def code_of(worker: Worker) -> int:
    """How it ended."""
    if worker.left_behind:
        return LEFT_BEHIND
    return DONE_ITS_SHARE if worker.reached_limit else 0


def _obey(signals: SignalPipe, worker: Worker) -> None:
    """Stop the worker when told to; what was told before it was there counts."""
    count = 0
    while True:
        for number in signals.stops():
            if worker.finished.is_set():
                continue  # it is about to exit, with the code that it has earned
            count += 1
            log.info("%s (%d)", number.name, count)
            if count > 2:
                os._exit(128 + number)
            worker.stop()


def _hold(leash: int, worker: Worker) -> None:
    os.read(leash, 1)
    log.warning("the supervisor is gone: stopping")
    worker.stop()


def _exit_with(worker: Worker) -> None:
    worker.finished.wait()
    if not worker.returned.wait(2.0):
        log.error("a handler blocks the event loop: the process ends without it")
        logging.shutdown()
        os._exit(code_of(worker))


def _leave(worker: Worker) -> None:
    """Handlers that do not end must not hold up the exit."""
    if worker.is_stuck:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(code_of(worker))


def _pair(text: str, option: str) -> tuple[str, int | None]:
    name, equals, number = text.partition("=")
    if not equals:
        return name, None
    if not number.isdecimal():
        raise InvalidInput(f"{option} {text}: the slots must be a number, as in {option} {name or 'billing'}=4")
    return name, int(number)


def _tenant(text: str) -> tuple[str, int]:
    name, slots = _pair(text, "--tenant")
    if slots is None:
        raise InvalidInput(f"--tenant {text}: say how many slots it gets, as in --tenant {name}=4")
    return name, slots
