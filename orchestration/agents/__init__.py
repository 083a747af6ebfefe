"""Agents: each wraps one remote service, with its error handling and retries (P2)."""
