"""`relet worker shop:app`: run jobs until a signal stops the worker."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Any, Literal

from .. import logs
from .._system import HAS_PROCESS_GROUPS
from .._worker import Worker
from .._worker.signals import AT_ONCE, SignalPipe
from .._worker.source_files import SourceFiles
from .._worker.supervisor import REACHED_LIMIT, Supervisor
from ..app import App
from ..errors import InvalidInput, StoreBusy, StoreUnavailable
from .load_app import load_app

log = logging.getLogger("relet.worker")

LEFT_BEHIND = 3

EXIT_CODES = """\
signals: the first SIGTERM or Ctrl-C stops claiming and lets running jobs end within --shutdown-timeout; the second
gives them back at once; the third exits at once. Signals within half a second count as one.

exit codes: 0 stopped cleanly, 1 could not start, 2 invalid arguments, 3 some jobs could be neither settled nor given
back (their leases will expire), 128 + n exited at once on signal n."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "worker",
        help="run jobs",
        description="Run the jobs of an app until a signal stops the worker.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("app", metavar="APP", help="the app as module:attribute, such as shop:app")
    add("-q", "--queue", action="append", metavar="NAME[=SLOTS]", help="serve this queue, with SLOTS reserved slots; "
        "repeatable (default: every queue)")  # fmt: skip
    add("-c", "--concurrency", type=int, default=10, metavar="N", help="slots that the other queues share (default 10)")
    add("--processes", type=int, default=1, metavar="N", help="number of worker processes (default 1)")
    add(
        "--lease",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds until a lease expires without renewal (default 30)",
    )
    add(
        "--shutdown-timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds for running jobs to end on shutdown (default 300)",
    )
    add(
        "--poll-interval",
        type=float,
        default=1.0,
        metavar="S",
        help="seconds between polls without notifications (default 1)",
    )
    add("--rest", type=float, default=0.0, metavar="S", help="seconds that a slot pauses between two jobs (default 0)")
    add("--tenant", action="append", metavar="NAME=SLOTS", help="serve this tenant with SLOTS slots; repeatable")
    add("--all-tenants", action="store_true", help="serve every tenant that has been migrated, now or later, each with "
        "--concurrency slots")  # fmt: skip
    add(
        "--gateway",
        action="append",
        metavar="URL",
        help="reach the store through this gateway, with the token in RELET_GATEWAY_TOKEN; repeatable: the next serves "
        "when one fails",
    )
    add("--max-jobs", type=int, metavar="N", help="replace a process after N jobs")
    add("--max-rss", type=int, metavar="MIB", help="replace a process that uses more memory than this")
    add("--until-idle", action="store_true", help="stop when no job can run now")
    add("--reload", action="store_true", help="for development: restart when a Python file below the working "
        "directory was changed")  # fmt: skip
    add(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="lowest level to log (default info)",
    )
    add("--log-format", default="text", choices=("text", "json", "none"), help="readable lines, one JSON object a "
        "line, or none: the app configures logging (default text)")  # fmt: skip
    add(
        "--supervisor-pipe", type=int, help=argparse.SUPPRESS
    )  # a file descriptor of the supervisor: it closes when the supervisor exits
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run one worker here, or several under a supervisor, which also replaces workers at --max-jobs and --max-rss."""
    if options.log_format != "none":
        logs.configure(options.log_level, as_json=options.log_format == "json")
    # Before the import of the user's modules, which may be slow. The supervisor has counted the signals that it
    # forwards: only a service manager that signals all processes makes two of one.
    signals = SignalPipe(at_once=AT_ONCE / 2) if options.supervisor_pipe is not None else None
    if options.reload and options.supervisor_pipe is None:
        _check_processes(options)
        return Supervisor(options.processes, SourceFiles(os.getcwd())).run()
    app = load_app(options.app)
    worker = make_worker(app, options)
    recycled = options.max_jobs is not None or options.max_rss is not None
    if options.supervisor_pipe is None and (options.processes != 1 or recycled):
        _check_processes(options)
        for tenant in worker.tenants if options.gateway is None else ():
            with suppress(StoreUnavailable, StoreBusy):  # the children wait until the store is available
                app._store(tenant).reach()  # report a permanent error once, not in every child
        app.close()
        return Supervisor(options.processes).run()
    return run_here(worker, signals or SignalPipe(), options.supervisor_pipe, until_idle=options.until_idle)


def _check_processes(options: argparse.Namespace) -> None:
    if not HAS_PROCESS_GROUPS:
        raise InvalidInput(
            "--processes, --max-jobs, --max-rss and --reload need Linux or macOS. Start several workers instead."
        )
    if not 1 <= options.processes <= 1000:
        raise InvalidInput(f"--processes must be from 1 to 1000, not {options.processes}")
    if options.until_idle:
        raise InvalidInput(
            "--until-idle works only with one process: not with --processes, --max-jobs, --max-rss or --reload."
        )


def make_worker(app: App, options: argparse.Namespace) -> Worker:
    queues = None if options.queue is None else dict(_pair(one, "--queue") for one in options.queue)
    tenants = _tenants(options)
    return Worker(
        app,
        queues=queues,
        concurrency=options.concurrency,
        lease=options.lease,
        shutdown_timeout=options.shutdown_timeout,
        poll_interval=options.poll_interval,
        rest=options.rest,
        tenants=tenants,
        max_jobs=options.max_jobs,
        max_rss=options.max_rss,
        gateway=options.gateway,
    )


def run_here(worker: Worker, signals: SignalPipe, pipe: int | None, *, until_idle: bool) -> int:
    """Run a worker in this process until it ends or signals stop it."""
    threading.Thread(target=_handle_signals, args=(signals, worker), name="relet-signals", daemon=True).start()
    if pipe is not None:
        threading.Thread(target=_watch_supervisor, args=(pipe, worker), name="relet-supervisor", daemon=True).start()
    # If a handler blocks the event loop, this thread ends the process.
    threading.Thread(target=_exit_if_blocked, args=(worker,), name="relet-exit", daemon=True).start()
    asyncio.new_event_loop().run_until_complete(worker.run(until_idle=until_idle))
    signals.ignore()
    _exit_if_stuck(worker)
    return code_of(worker)


def code_of(worker: Worker) -> int:
    """The exit code of a worker that has ended."""
    if worker.left_behind:
        return LEFT_BEHIND
    return REACHED_LIMIT if worker.reached_limit else 0


def _handle_signals(signals: SignalPipe, worker: Worker) -> None:
    """Stop the worker on signals, including those that arrived before it existed."""
    count = 0
    while True:
        for number in signals.stops():
            if worker.finished.is_set():
                continue  # it is about to exit with its own code
            count += 1
            log.info("Received %s (%d)", number.name, count)
            if count > 2:
                os._exit(128 + number)
            worker.stop()


def _watch_supervisor(pipe: int, worker: Worker) -> None:
    os.read(pipe, 1)
    log.warning("The supervisor exited: stopping")
    worker.stop()


def _exit_if_blocked(worker: Worker) -> None:
    worker.finished.wait()
    if not worker.returned.wait(2.0):
        log.error("A handler blocks the event loop: exiting without waiting for it")
        logging.shutdown()
        os._exit(code_of(worker))


def _exit_if_stuck(worker: Worker) -> None:
    """Exit at once if handlers do not end, so that they do not delay the exit."""
    if worker.is_stuck:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(code_of(worker))


def _pair(text: str, option: str) -> tuple[str, int | None]:
    name, equals, number = text.partition("=")
    if not equals:
        return name, None
    if not number.isdecimal():
        raise InvalidInput(f"{option} {text}: slots must be a number, such as {option} {name or 'billing'}=4")
    return name, int(number)


def _tenants(options: argparse.Namespace) -> dict[str, int] | Literal["all"] | None:
    if options.all_tenants and options.tenant is not None:
        raise InvalidInput("--all-tenants serves all tenants: leave out --tenant, or --all-tenants")
    if options.all_tenants:
        return "all"
    return None if options.tenant is None else dict(_tenant(one) for one in options.tenant)


def _tenant(text: str) -> tuple[str, int]:
    name, slots = _pair(text, "--tenant")
    if slots is None:
        raise InvalidInput(f"--tenant {text} needs a number of slots, such as --tenant {name}=4")
    return name, slots
