"""The workshop, where goods are made to order: a person says there when they are finished."""

WORKSHOP = "workshop"  # a Django group: its members decide
