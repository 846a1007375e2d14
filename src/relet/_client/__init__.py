"""The client, sync and async: a program's access to its jobs."""
