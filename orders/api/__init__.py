"""The JSON API below /api/: another team's program places orders and follows them."""
