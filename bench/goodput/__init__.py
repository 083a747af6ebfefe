"""How much gets done while a partner fails: with a circuit breaker, and without one."""
