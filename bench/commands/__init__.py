"""One module per command. Each has `HELP`, a sentence, and `plan(lab)`, which says what to measure."""
