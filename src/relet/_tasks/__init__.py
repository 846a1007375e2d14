"""Tasks: registered functions, their options, and the conversion of their arguments and results."""
