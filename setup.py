"""All is in pyproject.toml but the pages: scripts beside app.py here, in `fmviz/app` of the package."""

from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py

PAGES = ("app.py", ".streamlit/config.toml", "pages/*.py")


class BuildWithPages(build_py):
    """Builds the package with the scripts that `fmviz serve` hands to Streamlit."""

    def run(self):
        """Build, then copy the scripts; what is installed in place finds those of the checkout."""
        super().run()
        if self.editable_mode:
            return
        for pattern in PAGES:
            for source in Path().glob(pattern):
                target = Path(self.build_lib, "fmviz", "app", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                copyfile(source, target)


setup(cmdclass={"build_py": BuildWithPages})
