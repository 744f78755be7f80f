"""The experiments of content-based-routing-2004."""
