"""The attempt as a handler uses it: progress, completion in a transaction, dependencies and steps."""
