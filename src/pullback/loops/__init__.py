"""Loop nests: their representation, the passes over them, their schedules, and code for them."""
