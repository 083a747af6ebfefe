"""Clients that send or read slowly, and what they cost the others: `python -m bench.slow`."""
