"""The benchmark's workflow on this engine: three remote calls, one after the other."""
