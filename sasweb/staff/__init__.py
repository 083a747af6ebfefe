"""How staff get in: logins, their second factor and their end, lost passwords, forms kept over an end.

All of it belongs to this project: the dashboard itself needs only what Django offers. Accounts in the
admin are in `sasweb/admin.py`, limits of tries in `orders/rate_limit.py`.
"""
