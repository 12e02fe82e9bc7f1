"""What holds in all tests: jaxprs and loop nests are checked before and after every pipeline."""

import os

os.environ.setdefault("PULLBACK_CHECK", "1")
