"""The peers' side of the benchmark, which runs in an environment of its own."""
