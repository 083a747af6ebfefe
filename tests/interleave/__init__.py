"""Interleavings: the product's own functions in threads, switched by a seed, on a real Postgres and Redis.

Actors (schedulers, submission processes, supervisors, a housekeeper, operators) each have a thread and a
connection. A controller lets one of them run at a time, and switches at transactions, statements and pushes
to Redis. Where it switches, what the services answer and which faults strike are choices of the seed. At the
end everything runs without faults until nothing is due; then the audit and the services' ledger must agree.
"""
