"""What operators fill in: searches, reasons, payloads, bulk operations."""
