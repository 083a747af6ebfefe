"""Management commands: they parse arguments and delegate."""
