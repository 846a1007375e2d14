"""Databases of every schema version, as SQL, and a test that upgrades them while workers run.

After a new migration, `python -m tests.stored` adds a database of the new version. Files that exist are never changed:
releases in the field have made such databases.
"""
