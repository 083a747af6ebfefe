"""Throughput while a partner fails, with a circuit breaker and without."""
