"""Facts about conditions that are known before they run: filters, joins and sessions ask for them."""
