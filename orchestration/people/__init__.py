"""Who acts: a person, their roles and accounts, what they may do alone, and what hides personal data.

Not here: what a person does to tasks; see `operations` and `transitions`.
"""
