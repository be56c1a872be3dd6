"""The page: a report as one HTML file that opens from disk and asks nobody for anything."""

from __future__ import annotations

from biaskit.report.page.rendering import Page, render_page

__all__ = ["Page", "render_page"]
