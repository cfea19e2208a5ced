# SPDX-License-Identifier: Apache-2.0
"""What people are told: text from elsewhere, made fit for where it is read, and the stage that the work is at."""
