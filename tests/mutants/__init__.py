"""Deliberate faults, as patches. Each must be found: a mutant that survives shows a hole in the checker."""
