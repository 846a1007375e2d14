"""Cron expressions in words, for expressions of the usual kinds."""

from __future__ import annotations

import re

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
NAMES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
         "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}  # fmt: skip


def cron_words(cron: str) -> str:
    """The expression in words, such as "every Monday at 09:30"; empty if it is of another kind."""
    fields = NAMES.get(cron.strip().lower(), cron).split()
    if len(fields) != 5:
        return ""
    minute, hour, day, month, weekday = fields
    time = _time(minute, hour)
    days = _days(day, month, weekday)
    if not time or not days:
        return ""
    if days != "every day":
        return f"{days} {time}" if time.startswith("at ") else f"{time}, {days.removeprefix('on ')}"
    return f"{days} {time}" if time.startswith("at ") else time


def _time(minute: str, hour: str) -> str:
    if minute.isdigit() and _numbers(hour):
        times = [f"{int(one):02d}:{int(minute):02d}" for one in hour.split(",")]
        return f"at {_listed(times)}"
    if hour == "*":
        if step := _step(minute):
            return "every minute" if step == 1 else f"every {step} minutes"
        if minute.isdigit():
            return "every hour" if int(minute) == 0 else f"every hour at minute {int(minute)}"
    if minute.isdigit() and (step := _step(hour)):
        past = f" at minute {int(minute)}" if int(minute) else ""
        return f"every {step} hours{past}"
    return ""


def _days(day: str, month: str, weekday: str) -> str:
    """Empty: of another kind. A day of the month and a weekday together are "or" in cron, which is rarely meant."""
    if month != "*" and not (month.isdigit() and 1 <= int(month) <= 12 and day.isdigit()):
        return ""
    if day != "*":
        if weekday != "*" or not _numbers(day):
            return ""
        of = "the month" if month == "*" else MONTHS[int(month) - 1]
        return f"on day {_listed(day.split(','))} of {of}"
    if weekday == "*":
        return "every day"
    since, to, rest = (*weekday.split("-"), "", "")[:3]
    if to and not rest and "," not in weekday:
        return f"{_day(since)} to {_day(to)}" if _day(since) and _day(to) else ""
    names = [_day(one) for one in weekday.split(",")]
    return f"every {_listed(names)}" if all(names) else ""


def _day(text: str) -> str:
    if text.isdigit():
        return DAYS[int(text) % 7] if int(text) <= 7 else ""
    return next((name for name in DAYS if name[:3].lower() == text.lower()), "")


def _numbers(text: str) -> bool:
    return re.fullmatch(r"\d{1,2}(,\d{1,2}){0,5}", text) is not None


def _step(text: str) -> int:
    """3 for */3, 1 for *; 0 for anything else."""
    found = re.fullmatch(r"\*(?:/(\d{1,2}))?", text)
    return int(found[1] or 1) if found else 0


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
