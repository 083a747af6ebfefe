"""Queries for the operators' pages. Nothing here writes, and every count is capped.

Each page costs a constant number of queries over indexes, however many rows there are.
"""
