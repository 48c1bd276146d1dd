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


def rehearse():
    """What most programs do with it; also what is loaded at first use."""
    if pandas:
        frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})
        int(frame["a"].sum()), frame["a"].mean()


if pandas:
    whole = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})
    whole.groupby("b").sum()
    str(whole), whole.to_dict("records")
    del whole
