"""The console: the operators' pages and the admin, an application that the engine runs without.

Here: addresses, views, forms, charts, template tags, metrics, their queries, and figures over time. The
pages are in `templates/ops/`. Not here: changes of state (`transitions`, `operations`, `incidents`).
"""
