"""matplotlib's SVG made fit to stand beside others in one page.

Its own style sheet would reach the whole page, its ids would meet those of other figures, and `style`
attributes would need a looser content policy; attributes of the elements do the same without.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_TITLE = f"{{{_SVG}}}title"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_MEASURED = ("d", "x", "y", "width", "height", "transform", "stroke-dasharray", "stroke-width", "points")
_LOOKS = (
    *("fill", "stroke", "stroke-width", "stroke-linejoin", "stroke-linecap", "stroke-dasharray"),
    *("fill-opacity", "clip-path", "font-size", "font-weight", "text-anchor"),
)
_FONT = "DejaVu Sans, Verdana, sans-serif"
_DEFAULTS = {("fill-opacity", "1"), ("stroke-opacity", "1"), ("opacity", "1"), ("stroke-dashoffset", "0")}


def tidy(raw: bytes, name: str, alt: str, tips: Mapping[str, Sequence[str]] | None = None) -> bytes:
    """One svg element: ids begin with `name`, no style sheet, tenths of a point, an image to a reader.

    `tips`: titles of the markers of a group, or of its bar, in their order, by the group's id.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(raw)  # noqa: S314 - matplotlib wrote it, a line ago
    for parent in root.iter():
        parent[:] = [c for c in parent if c.tag not in (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata")]
    for group in root.iter(f"{{{_SVG}}}g"):
        told = (tips or {}).get(group.get("id", ""), ())
        marks = (list(group.iter(f"{{{_SVG}}}{kind}")) for kind in ("use", "path") if told)
        for marker, said in zip(next(filter(None, marks), ()), told, strict=False):
            ElementTree.SubElement(marker, _TITLE).text = said
    names = _new_names(root, name)
    small = {inside for defs in root.iter(f"{{{_SVG}}}defs") for inside in defs.iter()}
    for element in root.iter():
        _tidy_element(element, names, decimals=2 if element in small else 1)
    _colour_uses(root)
    _unwrap(root)
    _gather(root)
    root.attrib |= {"role": "img", "aria-label": alt, "font-family": _FONT}
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    return ElementTree.tostring(root, encoding="unicode").encode("utf-8")


def _new_names(root: ElementTree.Element, name: str) -> dict[str, str]:
    """Ids that something refers to get a short new one; the others are dropped."""
    used: dict[str, str] = {}
    for element in root.iter():
        for value in element.attrib.values():
            for old in _REFERENCE.findall(value) + [value[1:]] * value.startswith("#"):
                used.setdefault(old, f"{name}-{len(used) + 1}")
    return used


def _tidy_element(element: ElementTree.Element, names: dict[str, str], *, decimals: int) -> None:
    given = dict(element.attrib)
    style = given.pop("style", "")
    if (old := given.pop("id", None)) in names:
        given["id"] = names[str(old)]
    for declaration in style.split(";"):
        key, _, value = declaration.partition(":")
        if key.strip() and (key.strip(), value.strip()) not in _DEFAULTS:
            given[key.strip()] = value.strip()
    given.pop("font-family", None)
    if shorthand := re.match(r"(?:(\d+) )?([\d.]+)px", given.pop("font", "")):  # matplotlib before 3.11
        given["font-size"] = shorthand[2]
        if shorthand[1]:
            given["font-weight"] = shorthand[1]
    if given.get("transform", "").startswith("rotate(-0 "):
        del given["transform"]
    for key, value in given.items():
        if key == _XLINK:
            given[key] = f"#{names[value[1:]]}"
        elif "url(#" in value:
            given[key] = _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value)
        elif key in _MEASURED:
            given[key] = _NUMBER.sub(lambda n: _rounded(n[0], decimals), " ".join(value.split()))
        if key == "d":
            given[key] = _lines(given[key])
    if "font-size" in given:
        given["font-size"] = given["font-size"].removesuffix("px")
    element.attrib = given
    if element.tag not in (f"{{{_SVG}}}text", _TITLE):
        element.text = None
    element.tail = None


def _colour_uses(root: ElementTree.Element) -> None:
    """A marker gets its colour where it is used: a page's style does not reach the one it is copied from."""
    shapes = {f"#{shape.get('id')}": shape for shape in root.iter() if shape.get("id")}
    for use in root.iter(f"{{{_SVG}}}use"):
        colour = shapes[use.attrib[_XLINK]].get("stroke")
        if colour is not None and "stroke" not in use.attrib:
            use.set("stroke", colour)
    for use in root.iter(f"{{{_SVG}}}use"):
        shapes[use.attrib[_XLINK]].attrib.pop("stroke", None)


def _rounded(text: str, decimals: int) -> str:
    short = f"{float(text):.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _lines(path: str) -> str:
    """The same path in fewer letters: upright and level lines by one number, no needless spaces."""
    out: list[str] = []
    x = y = ""
    for command, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        values = numbers.split()
        if command == "L" and values[0] == x:
            out.append(f"V{values[1]}")
        elif command == "L" and values[1] == y:
            out.append(f"H{values[0]}")
        else:
            out.append(command + " ".join(values))
        x, y = values[-2:] if len(values) >= 2 else ("", "")
    return "".join(out)


def _unwrap(element: ElementTree.Element) -> None:
    """Groups that say nothing give way to their children."""
    children: list[ElementTree.Element] = []
    for child in element:
        _unwrap(child)
        if child.tag in (f"{{{_SVG}}}g", f"{{{_SVG}}}defs") and not len(child):
            continue
        if child.tag == f"{{{_SVG}}}g" and not child.attrib:
            children.extend(child)
        else:
            children.append(child)
    element[:] = children


def _gather(parent: ElementTree.Element) -> None:
    """Neighbours that look alike are put into one group that says it once."""
    children = list(parent)
    for child in children:
        _gather(child)
    if parent.tag == f"{{{_SVG}}}defs":
        return
    parent[:] = []
    for look, run in itertools.groupby(children, key=_look):
        alike = list(run)
        if len(alike) < 3 or not look:
            parent.extend(alike)
            continue
        group = ElementTree.SubElement(parent, f"{{{_SVG}}}g", dict(look))
        for child in alike:
            for key, _ in look:
                del child.attrib[key]
        group.extend(alike)


def _look(element: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    return tuple((key, element.attrib[key]) for key in _LOOKS if key in element.attrib)
