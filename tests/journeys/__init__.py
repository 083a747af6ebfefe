"""What people come for, done in a real browser with a stopwatch and a count of clicks."""
