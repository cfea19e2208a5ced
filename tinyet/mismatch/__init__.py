# SPDX-License-Identifier: Apache-2.0
"""The first layer whose values on a device differ from the host reference, found by halting the device behind each."""
