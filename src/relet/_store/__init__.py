"""Stored jobs: flows for the verbs, one SQL file per statement and dialect, and connections to each database."""
