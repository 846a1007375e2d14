"""Pure: no I/O, no clock, no randomness. Whatever these need arrives as an argument."""
