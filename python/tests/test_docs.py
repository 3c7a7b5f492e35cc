"""The examples of the docstrings, of the tutorial and of the notebook."""

import copy
import doctest
import inspect
import re

import numpy as np
import pytest

import tamis
import tamis._progress
import tamis._report
from conftest import ROOT


def documented():
    """All public objects, and the methods of the classes."""
    yield "tamis", tamis.__doc__
    for name in tamis.__all__:
        value = getattr(tamis, name)
        yield name, value.__doc__
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for method, function in vars(value).items():
                if not method.startswith("_") and callable(function):
                    yield f"{name}.{method}", function.__doc__


@pytest.mark.parametrize(("name", "text"), list(documented()))
def test_examples_hold(name, text):
    assert text, f"{name} has no documentation"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert results.failed == 0
    is_example_due = name.startswith("Filter.") or name in ("build", "open", "plan")
    assert test.examples or not is_example_due, f"{name} has no example"


def test_numpy_prints_as_in_the_examples():
    assert repr(np.array([True, False])) == "array([ True, False])"


def test_the_tutorial_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/python.md").read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", None, 0)
    assert len(test.examples) > 40
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test).failed == 0


def test_the_installed_example_is_as_printed():
    shown = re.search(
        r"print\(tamis.build.*\n(<.*>)", (ROOT / "docs/python.md").read_text()
    )
    assert shown and shown[1] == str(tamis.build(["apple"], fpr=0.001))


def test_the_notebook_has_the_outputs_that_it_shows():
    import nbformat
    from nbclient import NotebookClient

    stored = nbformat.read(ROOT / "docs/python.ipynb", as_version=4)
    fresh = copy.deepcopy(stored)
    NotebookClient(fresh, timeout=120, kernel_name="python3").execute()

    def shown(notebook):
        """Texts and data of each cell; its prints come in any number of parts."""
        return [
            (
                "".join(output.get("text", "") for output in cell.outputs),
                [output.data for output in cell.outputs if "data" in output],
            )
            for cell in notebook.cells
            if cell.cell_type == "code"
        ]

    assert shown(fresh) == shown(stored)
    assert any("text/html" in data for _, cell in shown(fresh) for data in cell)
