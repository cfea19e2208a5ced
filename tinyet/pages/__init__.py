# SPDX-License-Identifier: Apache-2.0
"""Reports as pages for people to look at: one file, nothing loaded from anywhere, drawn from the stable JSON.

The page is in templates/page: page.html, page.css, page.js; d3.v7.min.js is the library that draws (ISC, d3js.org).
"""
