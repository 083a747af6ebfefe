"""Documents, and an example client of the API that the tests use."""
