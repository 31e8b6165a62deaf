"""What programs copied from earlier versions import."""

from fmviz.lab.uploads.importing import import_file as bring

__all__ = ["bring"]
