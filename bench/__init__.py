"""Benchmarks: `./dev bench store`, `./dev bench bloat`. They bring their own databases and leave nothing behind."""
