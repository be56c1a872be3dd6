"""A figure's SVG as the page may hold it: nothing runs or loads, ids are its own, colours are the page's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

ELEMENTS = frozenset(
    (
        *("svg", "g", "defs", "symbol", "use", "style", "title", "desc", "text", "tspan", "textPath"),
        *("image", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
        *("clipPath", "mask", "pattern", "marker", "linearGradient", "radialGradient", "stop"),
    )
)
"""What a drawing is made of. `metadata` goes silently, anything else is refused."""

COLOURS = {"#222222": "var(--ink)", "#dddddd": "var(--line)", "#fefefe": "var(--paper)"}
"""Colours that the figures leave to the page, so that they suit light and dark."""

_LOADING = re.compile(r"@import|expression\s*\(|javascript:|\\|url\s*\((?!\s*[\"']?#)", re.IGNORECASE)
_SPECIAL = re.compile(r"[@(:\\#]")
"""Without one of these a value loads, refers to and colours nothing."""
_REFERENCE = re.compile(r"url\(\s*[\"']?#([^)\"']+)[\"']?\s*\)")
_PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=\s]*")


class UnfitDrawing(ValueError):
    """An SVG that the page will not hold; the message says what stands in it."""


def drawing(svg: bytes, prefix: str, alt: str = "") -> str:
    """The SVG with every id prefixed (figures share a page) and its colours as CSS variables.

    To a screen reader it is an image that says `alt`.

    Raises `UnfitDrawing` for what could run or load something: scripts, handlers, foreign objects, links.
    """
    # A document type is where entities are declared; matplotlib writes one without any.
    text = re.sub(r"<!DOCTYPE[^>\[]*>", "", svg.decode("utf-8", errors="replace"), count=1)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UnfitDrawing("it declares entities")
    try:
        root = ET.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))  # noqa: S314  (no entities are left)
    except ET.ParseError as error:
        raise UnfitDrawing(f"it is no XML: {error}") from None
    if root.tag != f"{{{SVG}}}svg":
        raise UnfitDrawing("it is no SVG")
    for element in root.iter():
        element[:] = [child for child in element if child.tag != f"{{{SVG}}}metadata"]
        element.tag = str(element.tag).removeprefix(f"{{{SVG}}}")
        if element.tag not in ELEMENTS:
            raise UnfitDrawing(f"it holds the element {element.tag[:60]!r}")
        if element.tag == "style":
            if _LOADING.search(element.text or ""):
                raise UnfitDrawing("its style loads something")
            # It speaks to the whole page, not to its drawing; matplotlib's has one rule, for lines.
            element.text = ""
        element.attrib = dict(_attributes(element, prefix))
    root.set("xmlns", SVG)
    if alt:
        root.set("role", "img")
        root.set("aria-label", alt)
    for size in ("width", "height"):  # points of a paper; the page scales by the view box
        root.attrib.pop(size, None)
    return ET.tostring(root, encoding="unicode")


def _attributes(element: ET.Element, prefix: str) -> Iterator[tuple[str, str]]:
    for qualified, value in element.attrib.items():
        key = qualified.removeprefix(f"{{{XLINK}}}")
        if key.startswith("{"):  # another namespace: xml:space and its like say nothing here
            continue
        if key.lower().startswith("on"):
            raise UnfitDrawing(f"it holds the handler {key[:60]!r}")
        if key == "href":
            yield key, _href(value, prefix, picture=element.tag == "image")
        elif key == "id":
            yield key, prefix + value
        elif key == "aria-label" or not _SPECIAL.search(value):  # what it says is read out, and loads nothing
            yield key, value
        elif _LOADING.search(value):
            raise UnfitDrawing(f"its attribute {key[:60]!r} loads something")
        else:
            value = _REFERENCE.sub(rf"url(#{prefix}\1)", value)
            for colour, variable in COLOURS.items():
                value = value.replace(colour, variable)
            yield key, value


def _href(value: str, prefix: str, *, picture: bool) -> str:
    if value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    if picture and _PICTURE.fullmatch(value):
        return value
    raise UnfitDrawing("it links to something outside itself")
