"""Which equations share a loop nest."""
