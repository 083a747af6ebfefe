"""Stand-ins for the remote partners: one small HTTP server with scripted faults and a ledger.

It has an inventory, a payment provider (in the shape of Stripe's REST API), a shipper, a mailer and a
bare partner for benchmarks. It is a separate program: it imports nothing of the Django project.
"""
