"""Servers that take over from one another: Postgres and its standby, PgBouncer, Redis and Sentinel.

What stands in for the infrastructure, such as Patroni or a managed service: it promotes and repoints.
"""
