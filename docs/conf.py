"""Sphinx's settings for the site (`make site`); every file that a page needs comes with it, mathematics as MathML."""

from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

project = "Revealing the Dark Secrets of BERT, whole and re-runnable"
html_title = "Dark Secrets of BERT"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]

nb_execution_mode = "off"  # the committed outputs are shown
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_number_source_lines = False
nb_merge_streams = True  # a cell that prints for a while has many outputs

suppress_warnings = ["ref.python"]  # a bare name in a docstring may stand for several

add_module_names = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_use_index = html_domain_indices = False  # the search finds names, too
html_favicon = "favicon.svg"
html_search_scorer = str(Path(__file__).with_name("search.js"))
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_copyright = html_show_sphinx = html_show_sourcelink = html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f5d8a", "color-brand-content": "#2f5d8a"},
    "dark_css_variables": {"color-brand-primary": "#8fb8e0", "color-brand-content": "#8fb8e0"},
}


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(f"<p>{convert(node.astext(), display='block')}</p>")
    raise nodes.SkipNode


def _show_source(app, doctree, page):
    """Links to a module's file lead to the page with its source, where there is one."""
    for node in list(doctree.findall(addnodes.download_reference)):
        module = node["reftarget"].lstrip("./").removesuffix(".py").replace("/", ".")
        if getattr(app.env, "_viewcode_modules", {}).get(module):
            address = app.builder.get_relative_uri(page, "_modules/" + module.replace(".", "/"))
            node.replace_self(
                nodes.reference("", "", *node.children, internal=True, refuri=address)
            )


_trees = {}


def _one_tree(app, page, template, context, doctree):
    """Pages of source code stand in no tree: at one depth all have the same, which would take a third of the time."""
    if page.startswith("_modules/"):
        make = context["toctree"]

        def tree(**options):
            key = (page.count("/"), *sorted(options.items()))
            if key not in _trees:
                _trees[key] = make(**options)
            return _trees[key]

        context["toctree"] = tree


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", _one_tree, priority=400)  # before the theme's own
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("doctree-resolved", _show_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
