"""The remote partners as one small HTTP server, with a ledger and scripted faults.

It stands in for an inventory, a payment provider (in the shape of Stripe's REST API), a shipper, a
mailer and a bare partner for benchmarks. It is a program of its own and no part of the Django app.
"""
