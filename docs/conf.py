"""The documentation site: `make docs` builds it into out/docs, with warnings as errors and without a network."""

import logging
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE / "studies")]

from aftereffect.core import VERSION  # noqa: E402

# Scripts and notebooks run in this process: their requests are no news.
for name in ("httpx", "traitlets"):
    logging.getLogger(name).setLevel(logging.WARNING)

project = "Aftereffect"
author = "The Aftereffect developers"
project_copyright = author
version = release = VERSION
language = "en"
# Quotation marks stay as written: form="sharp" is code.
smartquotes = False

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "code_blocks",
    "command_line",
    "docstrings",
    "formulas",
    "links",
    "player_pages",
    "study_page",
]
# The gallery writes notebooks for download beside its pages.
exclude_patterns = ["gallery", "generated/**.ipynb", "studies/README.md", "extensions", "static", "**_checkpoints"]
suppress_warnings = ["config.cache"]

# Pages in Markdown. Every heading gets an anchor, as on GitHub.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Notebooks are executed at every build in which they changed; a cell that fails, fails the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "out" / "docs-notebooks")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

# Docstrings name arguments as `name: text`; `extensions/docstrings.py` turns them into reStructuredText.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
python_maximum_signature_line_length = 76
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# Every script of the gallery is run; one that fails, fails the build.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "within_subsection_order": "FileNameSortKey",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"

html_theme = "furo"
html_title = f"Aftereffect {VERSION}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5f94", "color-brand-content": "#0b5f94"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6"},
}
