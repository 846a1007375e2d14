"""SQLite in this directory; with DATABASE_URL in the environment, PostgreSQL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import django
from psycopg.conninfo import conninfo_to_dict

BASE_DIR = Path(__file__).parents[1]


def _database() -> dict[str, Any]:
    if url := os.environ.get("DATABASE_URL"):
        parts: dict[str, Any] = conninfo_to_dict(url)
        return {"ENGINE": "django.db.backends.postgresql", "NAME": parts.pop("dbname"), "OPTIONS": parts}
    folder = Path(os.environ.get("SHOP_FOLDER", BASE_DIR))
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": folder / "shop.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"} if django.VERSION >= (5, 1) else {},
        # Jobs need a file, so that a worker sees them.
        "TEST": {"NAME": folder / "test.sqlite3"},
    }


SECRET_KEY = "only for the example"
DEBUG = True
ALLOWED_HOSTS = ["*"]
DATABASES = {"default": _database()}
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "shop.urls"
STATIC_URL = "static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *([] if django.VERSION >= (6,) else ["django_tasks"]),
    "relet.contrib.django",
    "orders",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
TASKS = {
    "default": {
        "BACKEND": "relet.contrib.django.ReletBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"database": "default"},
    }
}
