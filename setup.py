"""All is in pyproject.toml but the pages: what lies beside app.py here is in `fmviz/app` of the package."""

from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py

PAGES = (
    "app.py",
    ".streamlit/config.toml",
    "pages/*.py",
    "docs/glossary.md",
    "sample_data/bike.csv",
    "sample_data/flights.csv",
)


class BuildWithPages(build_py):
    """Builds the package with what `fmviz serve` hands to Streamlit, and what pages read."""

    def run(self):
        """Build, then copy these files; what is installed in place finds those of the checkout."""
        super().run()
        if self.editable_mode:
            return
        for pattern in PAGES:
            for source in Path().glob(pattern):
                target = Path(self.build_lib, "fmviz", "app", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                copyfile(source, target)


setup(cmdclass={"build_py": BuildWithPages})
