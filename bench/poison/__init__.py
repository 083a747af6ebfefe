"""How a few requests that always fail slow the others at the same agent."""
