"""The notebooks run from top to bottom, in their fast mode, and are committed with their outputs."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from unittest import mock

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook machinery, not of the code in the cells
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.read(path, as_version=4)
        settings = {"CUCUMBER_NOTEBOOK_FAST": "1", "PYTHONWARNINGS": "error::UserWarning:__main__"}
        with mock.patch.dict(os.environ, settings):
            NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_with_outputs(path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells), "execute it and save"
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
