"""The peers' side of the benchmark, in a Python environment of its own."""
