"""The README's two commands on machines as newcomers have them: `make check-machines`."""
