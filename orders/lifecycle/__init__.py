"""The life of an order: placement, submission, status, changes, e-mails. Pages are in orders/shop."""
