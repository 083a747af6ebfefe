"""The operators' dashboard: pages that show the state store, and what operators do about it."""
