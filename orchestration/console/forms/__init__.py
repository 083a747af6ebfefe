"""Forms for operators: searches, reasons, payloads, bulk operations."""
