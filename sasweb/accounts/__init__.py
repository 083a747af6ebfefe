"""Accounts by django-allauth: its settings' classes, and its pages with the limits and rules of this project.

What it has no part of is elsewhere: the door of the staff's pages in `sasweb/staff`, forms of customers in
`orders/shop`.
"""
