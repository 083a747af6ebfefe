"""Commands: loops without logic."""
