# SPDX-License-Identifier: Apache-2.0
"""What would help, planned before it is said. subject.py: what is asked about; trials.py: what is tried."""
