"""The examples that `relet --help` and `relet COMMAND --help` end with: the options that most users need."""

from __future__ import annotations

import argparse

#: By command: the words that a user types after it.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "worker": (
        "shop:app --concurrency 20 --queue billing --queue mail=4",
        "shop:app --processes 4 --max-rss 512 --log-format json",
        "shop:app --reload",
    ),
    "enqueue": (
        "shop:app charge --arg account=acct-7 --arg cents=900",
        'shop:app charge --payload \'{"account": "acct-7"}\' --queue billing --delay 15m --unique inv-7',
    ),
    "jobs": (
        "shop:app --state failed --queue billing --since 2h",
        "shop:app show 1c3a54e9",
        "shop:app resume --state failed --task charge --yes",
    ),
    "explain": ("shop:app 1c3a54e9",),
    "run": ("shop:app 1c3a54e9",),
    "queues": ("shop:app pause billing", "shop:app limit billing --max-running 4 --rate 100 --per 1m"),
    "workers": ("shop:app --json",),
    "check": ("shop:app --ready",),
    "targets": ("shop:app acct-7 --limit 20",),
    "schedules": (
        "shop:app put nightly charge --cron '30 3 * * *' --timezone Europe/Berlin --arg account=acct-7",
        "shop:app pause nightly",
    ),
    "failures": ("shop:app --limit 10",),
    "stats": ("shop:app --since 6h", "shop:app --totals"),
    "audit": ("shop:app --limit 20",),
    "top": ("shop:app", "shop:app --once"),
    "web": ("shop:app --port 8470", "shop:app --host 0.0.0.0 --host-name jobs.example.com --proxy 10.0.0.2"),
    "gateway": ("shop:app --port 8480", "shop:app --host 0.0.0.0 --tokens /etc/relet/workers.toml"),
    "torture": ("", "postgresql://shop@db/scratch --tier M --restart 'docker restart -t 0 db'"),
    "doctor": ("shop:app", "shop:app --json"),
    "prune": ("shop:app --keep-finished 7d --keep-failed 30d",),
    "erase": ("shop:app --tag customer-7",),
    "migrate": ("shop:app", "shop:app --tenant acme --tenant globex --json", "shop:app --sql --since 3"),
    "backup": ("shop:app /backups/jobs-2026-11-16.db",),
    "restored": ("shop:app",),
    "completion": ("bash",),
    "bench": ("shop:app --jobs 20000 --processes 2",),
    "demo": ("",),
}

OVERVIEW = """\
Each command but completion, bench and demo takes APP first: the app as module:attribute, such as shop:app. These
options follow the command:
  --tenant NAME  use the store of this tenant
  --json         print one JSON document; most commands have it
  --help         all options of the command, with examples

to begin with:
  relet migrate shop:app                        create the tables, or update them
  relet worker shop:app --concurrency 20        run jobs; also --queue NAME, --processes N, --log-format json
  relet jobs shop:app --state failed            list jobs; --queue, --task and --since filter them further
  relet jobs shop:app resume --state failed     retry all that match
  relet doctor shop:app                         find problems of the store and of the workers

environment:
  RELET_URL      the database of an app that names none: postgresql://user@host/db, or sqlite:///jobs.db"""


def add_to(parser: argparse.ArgumentParser, command: str) -> None:
    """Append the examples of a command to its help."""
    lines = "\n".join(f"  relet {command} {words}".rstrip() for words in EXAMPLES[command])
    parser.epilog = "\n\n".join(part for part in (parser.epilog, f"examples:\n{lines}") if part)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
