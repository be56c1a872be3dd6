"""The page: a report as one HTML file that opens from disk and asks nobody for anything."""

from __future__ import annotations

from biaskit.report.page.rendering import is_page, render_page

__all__ = ["is_page", "render_page"]
