"""The website: products, cart, checkout, accounts and pages of orders."""
