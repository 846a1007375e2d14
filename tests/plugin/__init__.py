"""The pytest plugin of these tests: fixtures, and the choice between the fast suite and `--all`."""
