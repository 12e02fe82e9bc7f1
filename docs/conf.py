"""The site: `make docs`. Pages are Markdown; code cells of pages in MyST's notebook format run while it is built."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import write_all  # pages of the reference and of errors, from docstrings

import pullback

# Kernels of notebooks warn, each, that they talk over TCP; the build shall have no warnings.
profile = Path(__file__).parent / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text('c = get_config()\nc.IPKernelApp.log_level = "ERROR"\n')
os.environ["IPYTHONDIR"] = str(profile.parent)

project, author, copyright = "pullback", "the pullback developers", "the pullback developers"
version = release = pullback.__version__

extensions = ["myst_nb"]
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "sphinx_book_theme"
html_title = "pullback"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "use_download_button": False,
    "navbar_persistent": [],  # the field of search is in the sidebar
}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

write_all(Path(__file__).parent)
