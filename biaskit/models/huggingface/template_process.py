"""A process of its own in which a model's chat template renders, so that it can be ended from outside.

Started by path by `template.py`; imports nothing of biaskit and nothing heavy. JSON in lines, both ways:
where modules are, what is rendered, then a list of messages for each answer, `{"text": ...}` or
`{"error": ...}`.
The environment is transformers' own (`utils/chat_template_utils.py`), but for the clock, which is a setting.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from datetime import datetime
from typing import Any

CPU_SECONDS = 5  # of one answer, should the process that asked be gone
MEMORY_BYTES = 2 * 2**30


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    sys.path[:] = json.loads(sys.stdin.buffer.readline())
    import jinja2.ext
    import jinja2.sandbox  # noqa: F401 (here, while the process that asks does other things)

    _bound_memory()
    given = json.loads(sys.stdin.buffer.readline() or "null")
    if given is None:
        return
    template: Any = None
    _answer({"text": ""})
    for line in sys.stdin.buffer:
        _bound_time()
        try:
            if template is None:
                template = _environment(given["date"]).from_string(given["template"])
            text = template.render(
                messages=json.loads(line),
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **given["variables"],
            )
        except MemoryError:
            _answer({"error": "it takes too much memory"})
        except BaseException as error:  # jinja2's own errors and whatever a template raises
            _answer({"error": _short(error)})
        else:
            long = len(text) > given["most"]
            _answer({"error": f"it makes a prompt of {len(text)} characters"} if long else {"text": text})


def _short(error: BaseException) -> str:
    try:
        return str(error)[:500] or type(error).__name__
    except BaseException:
        return type(error).__name__


def _answer(answer: dict[str, str]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n")
    sys.stdout.buffer.flush()


def _bound_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _bound_time() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_SECONDS, hard))


def _environment(date: str) -> Any:
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag by which templates mark an assistant's tokens; what stands in it is text as any other."""

        tags = {"generation"}  # noqa: RUF012 (as in the base class)

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

        def _same(self, caller: Any) -> Any:
            return caller()

    class Dict:
        """`dict` without a type's attributes."""

        def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
            return dict(*args, **kwargs)

        def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
            return dict.fromkeys(*args, **kwargs)

    class Namespace(jinja2.utils.Namespace):
        """`namespace` that stores no name with an underscore in front."""

        def __init__(*args: Any, **kwargs: Any) -> None:
            own, args = args[0], args[1:]
            names = dict(*args, **kwargs)
            for name in names:
                Namespace._check(name)
            jinja2.utils.Namespace.__init__(own, names)

        def __setitem__(self, name: str, value: Any) -> None:
            Namespace._check(name)
            super().__setitem__(name, value)

        @staticmethod
        def _check(name: Any) -> None:
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError(f"a namespace holds no {name!r}")

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def raise_exception(message: Any) -> None:
        raise jinja2.exceptions.TemplateError(message)

    now = datetime.fromisoformat(date)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals |= {
        "raise_exception": raise_exception,
        "strftime_now": lambda form: now.strftime(form),
        "dict": Dict(),
        "namespace": Namespace,
    }
    return environment


if __name__ == "__main__":
    main()
