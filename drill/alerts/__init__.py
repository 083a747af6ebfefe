"""The drill of the alerts: a real Prometheus sees each of them fire."""
