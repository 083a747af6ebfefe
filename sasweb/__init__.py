"""The project: settings, addresses, health, and the stack of processes."""
