"""A second, tiny application on the engine: it knows nothing of orders, nor the engine of it."""
