"""What stands in a text and is no word of it: line marks, HTML, character codes (methods/texts#marks)."""

from __future__ import annotations

import html
import re
from functools import lru_cache

_SIGNS = "\u00b6\u21b2\u21b5\u23ce\u2409\u240a\u240d\u2424\u2581"  # drawn ends of lines and spaces
_TAGS = (
    "a|abbr|article|b|big|blockquote|body|br|center|cite|code|dd|del|details|div|dl|dt|em|figure|figcaption|font"
    "|footer|form|h[1-6]|head|header|hr|html|i|img|input|ins|kbd|label|li|link|main|mark|meta|nav|ol|option|p|pre"
    "|q|s|section|select|small|span|strong|sub|summary|sup|table|tbody|td|textarea|tfoot|th|thead|title|tr|tt|u"
    "|ul|bos|eos|pad|unk|(?:start|end)_of_(?:turn|text|image)|return|newline|linebreak|nl|lf|cr|crlf"
)
"""Of HTML, of models and of exports; any other word in angles is a word: x <y> z, List<String>."""
_MAY_HOLD = re.compile(rf"[<&\\[{{_{_SIGNS}]|\A\W{{0,3}}[bu]['\"]")
_MARK = re.compile(
    rf"""
      &(?:amp;)* (?P<code> (?: \#x[\da-f]{{1,6}} | \#\d{{1,7}} | (?!lt;/?[a-z])[a-z][a-z\d]{{1,30}} ); )
    | \\{{1,4}}u(?P<escape> [0-9a-f]{{4}} )
    | (?P<bytes> (?: \\{{1,2}}x[0-9a-f]{{2}} )+ )
    | (?-i: \A\W{{0,3}}[bu] (?= (?P<quote> ['"] ).*(?P=quote)\W{{0,3}}\Z ) )
    | (?P<path> \b[a-z]:\\\S+ )
    | (?-i: (?<![\s$/{{}}\\])\\{{1,4}}[nrt] | \\{{1,4}}[nrt](?![a-z]) | (?<=\\[nrt])\\{{1,4}}[nrt] )
    | (?-i: (?<![a-z])[{_SIGNS}] | [{_SIGNS}](?![a-z]) ) | _x000[9ad]_
    | [\[{{] (?: return | new[ ]?line | line[ ]?break | br | nl | cr | lf | crlf ) [\]}}]
    | <!--.{{0,1000}}?--> | <(?P<hidden> script | style )\b[^<>]{{0,200}}> .{{0,2000}}? </(?P=hidden)\s*>
    | <\|[^<>|]{{1,40}}\|> | <0x[0-9a-f]{{2}}>
    | (?:<|&lt;) /? (?:{_TAGS}) (?: \s[^<>=]{{0,200}}=[^<>]{{0,500}} )? \s{{0,9}} /? (?:>|&gt;)
    """,  # an attribute has a value: "a <b and c> d" is no tag
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_NOTHING = "\u2060"  # joins what stands beside it; no tokenizer reads it


@lru_cache(maxsize=4)  # a text is read by one rule after the other
def legible(text: str) -> str:
    """Read a text as its reader would see it: marks and tags part words, codes are their characters.

    Every character keeps its place, so that places in what is returned are places in the text.
    """
    return _MARK.sub(_read, text) if _MAY_HOLD.search(text) else text


def first_mark(text: str) -> str | None:
    """Find the first mark, tag or code that `legible` reads otherwise; None where there is none."""
    found = _MARK.finditer(text) if _MAY_HOLD.search(text) else ()
    return next((match[0] for match in found if _read(match) != match[0]), None)


def _read(match: re.Match[str]) -> str:
    written, code = match[0], match["code"] or (match["escape"] and f"#x{match['escape']};")
    read_as = html.unescape(f"&{code}") if code else " "
    if match["bytes"]:
        read_as = bytes.fromhex(re.sub(r"\\+x", "", match["bytes"])).decode(errors="replace")
    if match["path"] or read_as == written:  # a path, or a name that HTML does not know
        return written
    return " " * len(written) if read_as.isspace() else read_as.ljust(len(written), _NOTHING)
