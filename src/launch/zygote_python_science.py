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
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})  # what is loaded at first use
    frame.groupby("b").sum()
    str(frame), frame.to_dict("records"), frame["a"].mean()
except ImportError:
    pass
