"""The shop's agents: one module per remote service."""
