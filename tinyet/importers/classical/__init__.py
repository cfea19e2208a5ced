# SPDX-License-Identifier: Apache-2.0
"""From classical models to the graph: fitted estimators of scikit-learn, of which only attributes are read, and the
model files of XGBoost and LightGBM. None of these libraries is imported."""
