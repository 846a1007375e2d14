"""What `./dev check` runs beside linters."""
