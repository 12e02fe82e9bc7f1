"""What `help()` says of public functions beyond the sentence in their docstring: arguments, results, errors, an
example.

A page is the text of one function, or of several names of one function; a file here is a dictionary of the pages of one
package, or of one kind in the folder of a package that has many. They stand apart from the code, so that it stays
short, and are added to the docstrings when the package is imported. `tests/manual` runs the examples, and looks for
functions and parameters that have no page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What pages say of errors where the arguments say all: each is checked as `core/explain.py` tells.
RAISES = "    TypeError or ValueError (ArgumentError is both) for arguments that are not as said."


def by_name(*files: Mapping[str, str]) -> dict[str, str]:
    """The pages of several files by single names; a key of a file is a name, or several that share a page."""
    return {name: page for file in files for names, page in file.items() for name in names.split()}


def completed(page: str) -> str:
    """The page as it stands in the docstring: functions with arguments say what they raise."""
    page = page.strip()
    if "Arguments:" in page and "Returns:" in page and "Raises:" not in page:
        page = page.replace("\n\n>>> ", f"\nRaises:\n{RAISES}\n\n>>> ", 1)
    return page + "\n"


def add_pages(namespace: Mapping[str, Any], pages: Mapping[str, str]) -> None:
    """Add pages to the docstrings of the functions in a namespace; names that it does not have are left alone."""
    done = set()  # one function may have several names
    for name, page in by_name(pages).items():
        function = namespace.get(name)
        if function is not None and id(function) not in done:
            done.add(id(function))
            if page.strip() in (function.__doc__ or ""):
                continue  # it came from another module
            cleaned = (function.__doc__ or "").replace("\n    ", "\n").rstrip()  # pages are not indented
            function.__doc__ = f"{cleaned}\n\n{completed(page)}"
