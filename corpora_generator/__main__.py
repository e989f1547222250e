"""Write the embedded corpora's files: ``python -m corpora_generator [FOLDER]``."""

import argparse
from pathlib import Path

from bertology_utils.corpora import GLUE

from . import files

parser = argparse.ArgumentParser(prog="python -m corpora_generator", description="Write the embedded corpora's files.")
parser.add_argument("folder", nargs="?", type=Path, default=GLUE.parent, help="where to (default: the package's own folder)")
for name in files.write(parser.parse_args().folder):
    print("written:", name)
