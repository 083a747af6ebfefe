"""The stock as the inventory says it, for pages of the shop and its owner, and what staff correct of it."""
