"""The place of `fmviz.lab.uploads` in programs that earlier versions copied."""
