"""The sandbox's pages: break a partner by a click, watch it heal, read the mail.

They work without JavaScript, by forms and links; with it they refresh themselves.
"""
