"""The shop: knows orders, and nothing of how the engine processes them."""
