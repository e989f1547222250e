"""Write the synthetic corpora's files: ``python -m corpora_generator``."""

from bertology_utils.corpora import GLUE

from . import files

for name in files.write(GLUE.parent):
    print("written:", name)
