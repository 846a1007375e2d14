"""What a handler can do with its attempt: report, complete in a transaction, keep steps."""
