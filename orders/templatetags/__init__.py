"""The shop's template tags."""
