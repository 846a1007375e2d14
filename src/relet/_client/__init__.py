"""What a program can do with its jobs: the client, sync and async."""
