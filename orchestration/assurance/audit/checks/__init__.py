"""The checks of the audit: one statement per invariant, grouped by subject."""
