"""From jaxprs to loop nests."""
