"""A migration of the greeting application that needs a table for itself."""
