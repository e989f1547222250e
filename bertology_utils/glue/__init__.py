"""The seven GLUE tasks: ``tasks`` describes them, ``loading`` gives their rows, ``tsv`` reads GLUE's own files.

``sources``: what the parameters that name data can say.
"""
