"""The shop's part of the audit: orders and tasks, money, goods, parcels and e-mails."""
