"""Template tags of the operators' dashboard."""
