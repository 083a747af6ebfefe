"""Agents: each wraps one remote service, with its error handling and retries (P2).

Here: actions and their schemas, faults, HTTP, the processes that perform requests.
Not here: when a request is sent (`transitions.claim`), and what follows from a reply (`decisions`).
"""
