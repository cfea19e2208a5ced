# SPDX-License-Identifier: Apache-2.0
"""Many runs by compiled C: the host reference's bits, the cache, and what happens where there is no compiler."""
