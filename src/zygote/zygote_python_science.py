# SPDX-License-Identifier: MIT
"""What the template python-datascience loads beforehand, as far as it is installed."""
import importlib

MODULES = "numpy numpy.random pandas matplotlib matplotlib.figure".split()

for name in MODULES:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # a program's own import will say so

try:
    import pandas
except ImportError:
    pandas = None


def small():
    return pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})


def rehearse():
    """What most programs do with it; what that touches is then the copy's own."""
    if pandas:
        frame = small()
        int(frame["a"].sum()), frame["a"].mean()


if pandas:  # what is loaded at first use
    frame = small()
    frame.groupby("b").sum()
    str(frame), frame.to_dict("records")
    del frame
