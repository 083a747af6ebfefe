"""The demo: its catalogue, simulated shoppers and orders in every state. The shop does not need it."""
