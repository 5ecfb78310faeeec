"""Run the notebooks and keep their outputs, pictures with few colours: ``python -m tests.notebooks [NAME ...]``."""

from __future__ import annotations

import base64
import io
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
#: Of a kept picture: colours, which are enough for drawings, and pixels across.
COLOURS, WIDTH = 48, 1000


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs, run in a process of its own from the folder of the notebooks."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=900, record_timing=False, resources={"metadata": {"path": str(FOLDER)}})
    client.execute()
    return notebook


def with_small_pictures(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with its pictures as they are kept."""
    from PIL import Image

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                picture = Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))).convert("RGB")
                picture.thumbnail((WIDTH, 10 * WIDTH))
                small = io.BytesIO()
                picture.quantize(COLOURS).save(small, "PNG", optimize=True)
                output["data"]["image/png"] = base64.b64encode(small.getvalue()).decode()
    return notebook


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            nbformat.write(with_small_pictures(execute(path)), path)
            print(path.name, f"{path.stat().st_size / 1e3:.0f} kB")
