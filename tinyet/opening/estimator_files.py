# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's estimators in files: pickles, which are code, and skops' archives, which are not."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from tinyet.errors import ModelError, ToolchainError, UsageError, bullet_list
from tinyet.files.reading import open_regular
from tinyet.messages.text import shown

PICKLES = (".joblib", ".pickle", ".pkl")
MAX_BYTES = 1 << 28
"""Of a file, and of an archive's entries together."""

_MAX_ENTRIES = 1 << 16

_DATA = (
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)
"""Types of scikit-learn's that skops does not list, for they compute with what a file has put into them: here only
their arrays are read, and checked as any file's."""


def load_estimator(path: Path, *, trust_pickle: bool) -> Any:
    """What is stored in a file. trust_pickle: run the code of a pickle.

    Raises UsageError for a pickle that nobody vouches for, ModelError for a file that cannot be loaded, or whose types
    skops does not trust, ToolchainError without scikit-learn or skops.
    """
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
    except OSError as error:
        raise ModelError(f"the model cannot be read: {error.strerror}", str(path)) from error
    if size > MAX_BYTES:
        raise ModelError(f"it has {size:,} bytes, at most {MAX_BYTES:,}", str(path))
    if path.suffix == ".skops":
        return _of_skops(path)
    if not trust_pickle:
        raise UsageError(
            "this is a pickle: to load it is to run whatever code is in it",
            str(path),
            "if it is your own: --trust-pickle, trust_pickle=True; or save it without code: "
            f"skops.io.dump(model, {str(path.with_suffix('.skops').name)!r})",
        )
    return _of_pickle(path)


def _of_pickle(path: Path) -> Any:
    try:
        import joblib
    except ImportError as error:
        raise _without("scikit-learn", path, error) from error
    try:
        # That it is of another version is scikit-learn's warning, which the user sees.
        return joblib.load(path)
    except (ImportError, AttributeError) as error:
        hint = "install what it was saved with, or load it where it was trained and call tinyet.from_sklearn"
        raise ModelError(f"it cannot be unpickled here: {shown(str(error), 200)}", str(path), hint) from error
    # Unpickling runs the file's code, which may raise anything.
    except Exception as error:
        text = f"{type(error).__name__}: {shown(str(error), 200)}"
        raise ModelError(f"it cannot be unpickled: {text}", str(path)) from error


def _of_skops(path: Path) -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise _without("skops", path, error) from error
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
        if len(entries) > _MAX_ENTRIES or total > MAX_BYTES:
            raise ModelError(f"it has {len(entries):,} entries of {total:,} bytes", str(path))
        unknown = [name for name in io.get_untrusted_types(file=path) if name not in _DATA]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, RecursionError) as error:
        raise ModelError(
            f"this is no file of skops', or a damaged one: {shown(str(error), 200)}", str(path)
        ) from error
    if unknown:
        listed = bullet_list([shown(str(name), 120) for name in unknown[:20]])
        raise ModelError(
            f"it holds types that are not scikit-learn's or numpy's:\n{listed}",
            str(path),
            "load it yourself with skops.io.load(path, trusted=[…]), and call tinyet.from_sklearn",
        )
    try:
        return io.load(path, trusted=list(_DATA))
    # The archive's numbers are the file's; what constructors make of them is scikit-learn's.
    except Exception as error:
        text = f"{type(error).__name__}: {shown(str(error), 200)}"
        raise ModelError(f"it cannot be loaded: {text}", str(path)) from error


def _without(package: str, path: Path, error: ImportError) -> ToolchainError:
    return ToolchainError(
        f"reading it needs {package}, which is not there ({error})",
        str(path),
        "pip install 'tinyet[sklearn]'",
    )
