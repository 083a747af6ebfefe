"""What applications ask the engine for besides tasks."""
