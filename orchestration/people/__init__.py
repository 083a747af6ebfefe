"""Who acts: a person, the accounts that one person may hold, and what one person may do alone.

What a person does to tasks stands in `operations` and `transitions`; roles in `dashboard`.
"""
