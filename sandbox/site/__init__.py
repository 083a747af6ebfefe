"""The sandbox's pages for people: break a partner by a click, watch it heal, read the mail.

They work without JavaScript, by forms and links; with it they refresh themselves.
"""
