"""How long tests wait for what must come."""

# Seconds, and only against hanging for ever: it takes a hundredth of that on an idle machine. A test that fails where
# something comes late fails on a machine with other work.
PATIENCE = 900.0
