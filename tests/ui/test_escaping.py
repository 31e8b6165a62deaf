"""What a link, a file or an imported run says is escaped before Streamlit or a browser reads it.

Held by reading the source. The text that is given to `MARKDOWN`, or as ``help=``, is a literal, a number
with a format, an attribute that only our declarations have (`OURS`), or a call of
`fmviz.ui.escape.plain`. A variable is followed to what is assigned to it, a parameter to the calls, and a
call to what the function returns. Scripts are followed likewise: their values are calls of jinja2's
`htmlsafe_json_dumps`, which is the filter ``tojson`` in templates.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from fuzzing import MARKUP
from jinja2 import Environment, nodes
from jinja2.utils import htmlsafe_json_dumps

import fmviz
from fmviz.ui.escape import plain, plain_label

ROOT = Path(fmviz.__file__).parents[1]
MARKDOWN = (
    *("badge", "button", "caption", "error", "expander", "header", "info", "markdown", "metric", "popover"),
    *("subheader", "success", "tabs", "title", "toast", "warning", "write"),
    *("checkbox", "download_button", "file_uploader", "multiselect", "number_input", "pills", "radio"),
    *("segmented_control", "select_slider", "selectbox", "slider", "text_area", "text_input", "toggle"),
)
OURS = (
    *(
        "choices",
        "formula",
        "formulas",
        "heads",
        "help",
        "icon",
        "label",
        "lambda_p",
        "lambda_sparse",
        "learn",
    ),
    *("matrix", "mechanism", "missing", "note", "penalty_term", "question", "reveal", "selects", "shrunk"),
    *("shrinkage_term", "source", "stands_for", "symbol", "text", "unit", "weights", "where", "words"),
)
# Of numbers and of declarations; the others are followed.
SENTENCES = (
    "_command",
    "fill",
    "formula",
    "glossary",
    "penalty_forms",
    "penalty_words",
    "selects",
    "zeros_in_words",
)
SAFE = ("abs", "counted", "in_words", "int", "len", "number", "plain", "plain_label", "round", "typeset")
# In scripts, beside the files that are read.
SCRIPT = re.compile(r"</?script|\bdocument\.|\bconst \w+ =|javascript:", re.IGNORECASE)
SCRIPT_VALUES = ("htmlsafe_json_dumps", "read", "read_stage")
OF_TEXT = (
    "capitalize",
    "get",
    "items",
    "join",
    "lower",
    "read_text",
    "removeprefix",
    "replace",
    "rstrip",
    "strip",
    "values",
)
NUMBER = re.compile(r"[,.+\d]*[defg%n,]")

Bindings = dict[str, list[ast.expr | None]]


@cache
def bindings(function: ast.FunctionDef | ast.Module) -> Bindings:
    """Return what may be in each variable of a function; None for what cannot be followed."""
    result: Bindings = defaultdict(list)

    def bind(target: ast.AST, value: ast.expr | None) -> None:
        match target, value:
            case ast.Name(), _:
                result[target.id].append(value)
            case ast.Tuple(), ast.Tuple() if len(target.elts) == len(value.elts):
                for first, other in zip(target.elts, value.elts, strict=True):
                    bind(first, other)
            case ast.Tuple(), ast.Call(func=ast.Name(id="zip"), args=args) if len(args) == len(target.elts):
                for first, other in zip(target.elts, args, strict=True):
                    bind(first, other)
            case ast.Tuple(), ast.Call(func=ast.Name(id="enumerate"), args=[over, *_]):
                bind(target.elts[0], ast.Constant(0))
                bind(target.elts[1], over)
            case ast.Tuple(), ast.Tuple() | ast.List():
                for row in value.elts:
                    bind(target, row)
            case ast.Tuple(), _:
                for first in target.elts:
                    bind(first, value)
            case ast.Starred(), _:
                bind(target.value, value)

    for node in ast.walk(function):
        match node:
            case ast.Assign():
                for target in node.targets:
                    bind(target, node.value)
            case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
                bind(node.target, node.value)
            case ast.For() | ast.comprehension():
                bind(node.target, node.iter)
            case ast.withitem(optional_vars=ast.expr()):
                bind(node.optional_vars, node.context_expr)
            case ast.ExceptHandler(name=str()):
                result[node.name].append(None)
            case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr="append" | "extend" | "insert")):
                result[name.id].append(node.args[-1])
    return result


class Sources:
    """The functions of the package by their names, with their calls.

    The texts of the functions `safe` and `sentences`, and the attributes `ours`, may be shown.
    """

    def __init__(
        self,
        folder: str = "ui",
        safe: tuple[str, ...] = SAFE,
        ours: tuple[str, ...] = OURS,
        sentences: tuple[str, ...] = SENTENCES,
    ) -> None:
        self.safe, self.attributes, self.sentences = safe, ours, sentences
        self.texts: list[tuple[ast.expr, Bindings, ast.FunctionDef | None]] = []
        self.functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
        self.homes: dict[ast.AST, Path] = {}
        self.calls: dict[str, list[tuple[ast.Call, Bindings, ast.FunctionDef | None]]] = defaultdict(list)
        self.known: dict[tuple[str, str], bool] = {}
        for path in sorted([*ROOT.glob("fmviz/**/*.py"), *ROOT.glob("pages/*.py"), ROOT / "app.py"]):
            module = ast.parse(path.read_text(encoding="utf-8"))
            if "fmviz" not in path.parts or folder in path.parts:
                body = [item for item in module.body if not isinstance(item, ast.FunctionDef | ast.ClassDef)]
                self._walk(module, bindings(ast.Module(body, [])), None)
            for node in ast.walk(module):
                self.homes[node] = path.relative_to(ROOT)
                if isinstance(node, ast.FunctionDef):
                    self.functions[node.name].append(node)

    def _walk(self, node: ast.AST, bound: Bindings, within: ast.FunctionDef | None) -> None:
        for child in ast.iter_child_nodes(node):
            inner, function = bound, within
            if isinstance(child, ast.FunctionDef):
                inner, function = {**bound, **bindings(child)}, child
            if isinstance(child, ast.Call) and (name := called(child)):
                self.calls[name].append((child, inner, function))
            if isinstance(child, ast.expr) and not isinstance(child, ast.Call):
                parts = (part for part in ast.iter_child_nodes(child) if isinstance(part, ast.Constant))
                if any(isinstance(part.value, str) and SCRIPT.search(part.value) for part in parts):
                    self.texts.append((child, inner, function))
            self._walk(child, inner, function)

    def raw(self) -> list[str]:
        """Return where text that may be anybody's is given to Streamlit."""
        result = []
        for name, calls in list(self.calls.items()):
            for call, bound, within in calls:
                shown = [keyword.value for keyword in call.keywords if keyword.arg == "help"]
                if name in MARKDOWN and isinstance(call.func, ast.Attribute):
                    shown += call.args[:1]
                result += [
                    f"{self.homes[call]}:{text.lineno}: {ast.unparse(text)}"
                    for text in shown
                    if not self.ours(text, bound, within)
                ]
        return sorted(result)

    def raw_scripts(self) -> list[str]:
        """Return where a script has a value that may be anybody's."""
        texts = list(self.texts)
        for name, calls in list(self.calls.items()):
            for call, bound, within in calls:
                scripts = {"Markup": call.args, "component": call.args[1:]}.get(name, [])
                if any(keyword.arg == "unsafe_allow_javascript" for keyword in call.keywords):
                    scripts = call.args
                texts += [(script, bound, within) for script in scripts]
        return sorted(
            {f"{self.homes[text[0]]}:{ast.unparse(text[0])}" for text in texts if not self.ours(*text)}
        )

    def ours(
        self,
        text: ast.expr | None,
        bound: Bindings,
        within: ast.FunctionDef | None,
        busy: frozenset[str] = frozenset(),
    ) -> bool:
        """Return whether all of a text is ours, or escaped."""

        def fine(*parts: ast.expr | None) -> bool:
            return all(self.ours(part, bound, within, busy) for part in parts)

        match text:
            case ast.Constant() | ast.Compare() | ast.Lambda():
                return True
            case ast.FormattedValue(format_spec=ast.JoinedStr(values=[*_, ast.Constant(value=str(form))])):
                return bool(NUMBER.fullmatch(form)) or fine(text.value)
            case ast.FormattedValue() | ast.Starred() | ast.NamedExpr() | ast.Subscript():
                return fine(text.value)
            case ast.JoinedStr() | ast.BoolOp() | ast.Dict():
                return fine(*text.values)
            case ast.Tuple() | ast.List():
                return fine(*text.elts)
            case ast.BinOp(op=ast.Sub() | ast.FloorDiv() | ast.Div()):
                return True
            case ast.BinOp():
                return fine(text.left, text.right)
            case ast.IfExp():
                return fine(text.body, text.orelse)
            case ast.GeneratorExp() | ast.ListComp():
                return fine(text.elt)
            case ast.DictComp():
                return fine(text.value)
            case ast.Attribute():
                return constant(text.attr) or text.attr in self.attributes
            case ast.Name(id=name) if constant(name) or name in busy:
                return True
            case ast.Name(id=name) if name in bound:
                return all(self.ours(value, bound, within, busy | {name}) for value in bound[name])
            case ast.Name(id=name):
                return within is not None and self._parameter(within, name)
            case ast.Call(func=ast.Name(id=name)) if name in self.safe:
                return True
            case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name), _]) if name in self.safe:
                return True
            case ast.Call(
                func=ast.Name(
                    id="sorted" | "list" | "zip" | "enumerate" | "reversed" | "map" | "str" | "next"
                )
            ):
                return fine(*text.args)
            case ast.Call(func=ast.Attribute(attr=method)) if method in OF_TEXT:
                return fine(text.func.value, *(text.args if method == "join" else ()))
            case ast.Call():
                return called(text) in self.sentences or self._returned(text)
        return False

    def _returned(self, call: ast.Call) -> bool:
        name = called(call)
        functions = self.functions[name]
        if name.startswith("_"):
            functions = [function for function in functions if self.homes[function] == self.homes[call]]
        key = f"{name} of {self.homes[call]}", ""
        if key not in self.known:
            self.known[key] = True
            self.known[key] = bool(functions) and all(
                self.ours(node.value, bindings(function), function)
                for function in functions
                for node in ast.walk(function)
                if isinstance(node, ast.Return)
            )
        return self.known[key]

    def _reaches(self, call: ast.Call, function: ast.FunctionDef) -> bool:
        """Return whether a call may be one of a function that is called the same."""
        home = self.homes[function]
        match call.func:
            case ast.Attribute(value=ast.Name(id=module)):
                return module in (home.stem, home.parent.name)
        return self.homes[call] == home or not function.name.startswith("_")

    def _parameter(self, function: ast.FunctionDef, name: str) -> bool:
        key = f"{self.homes[function]}:{function.lineno}", name
        if key not in self.known:
            self.known[key] = True
            names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
            every = {*names, *(kwonlyarg.arg for kwonlyarg in function.args.kwonlyargs)}
            given = []
            for call, bound, within in list(self.calls[function.name]):
                if not self._reaches(call, function):
                    continue
                by_name = {keyword.arg: keyword.value for keyword in call.keywords}
                value = by_name.get(name)
                if value is None and name in names and (place := names.index(name)) < len(call.args):
                    value = call.args[place]
                if value is not None:
                    given.append((value, bound, within))
            self.known[key] = name in every and bool(given) and all(self.ours(*item) for item in given)
        return self.known[key]


def called(call: ast.Call) -> str:
    """Return the name of the function that is called."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def constant(name: str) -> bool:
    """Return whether a name is that of a constant."""
    return name.strip("_").isupper()


def test_texts_of_others_are_escaped():
    assert Sources().raw() == []


def test_scripts_have_their_values_from_one_function():
    sources = Sources("fmviz", SCRIPT_VALUES, ours=(), sentences=())
    assert len(sources.texts) > 1
    assert sources.raw_scripts() == []


def test_scripts_in_templates_have_their_values_from_the_same():
    values = []
    for path in ROOT.glob("fmviz/**/*.html"):
        within = False
        for output in Environment().parse(path.read_text(encoding="utf-8")).find_all(nodes.Output):
            for node in output.nodes:
                if isinstance(node, nodes.TemplateData):
                    tags = re.findall(r"<(/?)script", node.data)
                    within = not tags[-1] if tags else within
                elif within:
                    values.append(getattr(node, "name", ""))
    # The script of a page is `Markup` of the module.
    assert sorted(values) == ["script", "tojson"]


@pytest.mark.parametrize(
    "text", ["</script><script>", "'-alert(document)-'", "\u2028", "\u2029", '"\\', "<!--"]
)
def test_a_value_in_a_script_is_a_literal(text):
    literal = htmlsafe_json_dumps({"value": text})
    assert not re.search("[<>&'\u2028\u2029]", literal)
    assert json.loads(literal) == {"value": text}


def test_our_scripts_believe_nothing_that_the_browser_keeps_and_write_no_markup():
    kept = r"localStorage|sessionStorage|indexedDB|\.cookie|window\.name"
    markup = r"\b(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|\bFunction\("
    scripts = list(ROOT.glob("fmviz/**/*.js"))
    assert scripts
    for path in scripts:
        assert not re.search(f"{kept}|{markup}", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    "name", ["weight [kg]", "price ($)", "time:hour", "x*y", "a<b", "head_shape", "1 to 2", "5 %", "a & b"]
)
def test_labels_of_everyday_names_are_read_as_they_are(name):
    assert plain_label(name) == name


@pytest.mark.parametrize("text", [*MARKUP, ":material/lock:", ":smile:", "*a* b", "$a$", "a -> b", "x <= y"])
def test_labels_with_markup_are_escaped(text):
    assert plain_label(text) == plain(text) != text


@pytest.mark.parametrize(
    "sign", ["->", "<-", "--", "<=", ">=", "~=", ":smile:", ":material/lock:", ":streamlit:"]
)
def test_signs_that_streamlit_replaces_are_broken(sign):
    assert sign not in plain(f"a {sign} b").replace("\\", "")
