"""The programs that `./dev check` runs beside linters."""
