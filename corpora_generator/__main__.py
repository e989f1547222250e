"""Write the embedded corpora's files: ``python -m corpora_generator [FOLDER]``."""

import argparse
from pathlib import Path

from bertology_utils.corpora import GLUE

from . import files

parser = argparse.ArgumentParser(
    prog="python -m corpora_generator", description="Write the embedded corpora's files."
)
parser.add_argument(
    "folder",
    nargs="?",
    type=Path,
    default=GLUE.parent,
    help="where to (default: the package's own folder)",
)
parser.add_argument(
    "--dev", type=int, default=files.DEV, help="dev rows of each task (default: %(default)s)"
)
options = parser.parse_args()
if options.dev != files.DEV and options.folder == GLUE.parent:
    parser.error(f"the package keeps {files.DEV} dev rows; give a folder for more")
for name in files.write(options.folder, options.dev):
    print("written:", name)
