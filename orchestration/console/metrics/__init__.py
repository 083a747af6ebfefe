"""The metrics that Prometheus reads from `/metrics`.

All of it is read from the state store (and Redis) at each scrape, so that it is the same whichever
process answers. Nothing personal is in it: labels are names of workflows, steps, agents and queues. A project
may add figures of its own: see `views.metrics`.
"""
