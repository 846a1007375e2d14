"""Pure: no I/O, no clock, no randomness. Callers pass the time and random numbers as arguments."""
