"""The operators' dashboard: an app of its own, with its pages in `templates/ops/`.

Here: addresses, roles, views, forms, charts, template tags, and the metrics endpoint.
Not here: queries (`queries`) and changes of state (`transitions`, `operations`, `incidents`).
"""
