"""A job's `subject` table -> `Subject`: a rule page's example, a class, a function or a factory."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import torch
from torch import nn

from tsdyn_lint.configfile import TARGET_KEYS
from tsdyn_lint.verify.build import example
from tsdyn_lint.verify.build.ctor import Constructor
from tsdyn_lint.verify.build.given import BESIDE, Calls, beside, from_table, with_second
from tsdyn_lint.verify.build.guess import Recipe, plain
from tsdyn_lint.verify.build.importing import BuildError, NotATarget, attribute, import_file
from tsdyn_lint.verify.build.literal import sizes_of
from tsdyn_lint.verify.build.search import FIRST_SECONDS, Miss, example_toml, inputs_for, search
from tsdyn_lint.verify.build.seeds import function_seeds, module_seeds
from tsdyn_lint.verify.build.spec import Specs
from tsdyn_lint.verify.build.state import keeper
from tsdyn_lint.verify.build.variants import others, sweep
from tsdyn_lint.verify.limits import TooLong, attempt
from tsdyn_lint.verify.probes.dynamo import uncompiled
from tsdyn_lint.verify.probes.eager import describe
from tsdyn_lint.verify.probes.places import Project
from tsdyn_lint.verify.probes.subject import Call, Subject, seed


def build(description: Mapping[str, Any]) -> Subject:
    """`{"file": path}` alone is a rule page's example; with `qualname` a target of `verify.target`.

    Raises BuildError, NotATarget, or whatever the target's own code raises.
    """
    if "qualname" not in description:
        return example.load(description["file"], description.get("device", "cpu"))
    module = _imported(description)
    table, owner = description["table"], module
    if description.get("entry") is not None:
        table = dict(listed_targets(module)[description["entry"]])
        target = table["module"]
        if isinstance(target, str):
            dotted, _, qualname = target.partition(":")
            owner = __import__(dotted, fromlist=["_"])
            target = attribute(owner, qualname)
    else:
        target = attribute(module, description["qualname"])
    project = Project(tuple(description["roots"]))
    restore = keeper(project)
    mode = str(table.get("mode") or "eval")
    maker, calls, about = _prepared(target, table, owner, mode)
    restore()
    device = description.get("device", "cpu")
    moved = tuple(tuple(example.on_device(call, device) for call in group) for group in ((calls[0],), *calls[1:]))
    about |= {"inputs": list(describe(moved[0][0])), "device": device, "torch": torch.__version__.partition("+")[0]}
    about["mode"] = mode
    about["varies"] = table.get("second") is not None or bool(sizes_of(table.get("inputs") or []))

    def make() -> Callable[..., Any]:
        made: Callable[..., Any] = maker()
        return made.to(device) if isinstance(made, nn.Module) and device != "cpu" else made

    return Subject(make, moved[0][0], project, moved[1], moved[2], reset=restore, about=about, mode=mode)


def _imported(description: Mapping[str, Any]) -> ModuleType:
    for folder in reversed(description["roots"]):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return import_file(description["file"], description["root"], description["module"])


def listed(description: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The targets of a `tsdyn_verify.py`: their names and budgets."""
    return [
        (_name_of(table["module"]), {key: table[key] for key in ("budget", "budgets") if key in table})
        for table in listed_targets(_imported(description))
    ]


def _name_of(target: Any) -> str:
    if isinstance(target, nn.Module):
        target = type(target)
    return target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"


def listed_targets(module: ModuleType) -> list[Mapping[str, Any]]:
    """The tables of a `tsdyn_verify.py`: its `targets`, each with the keys that the configuration knows."""
    found = getattr(module, "targets", None) or getattr(module, "TARGETS", None) or []
    tables = [{"module": item} if not isinstance(item, Mapping) else item for item in found]
    for number, table in enumerate(tables, 1):
        if "module" not in table or (wrong := set(table) - TARGET_KEYS):
            problem = f"does not know {', '.join(sorted(map(str, wrong)))}" if "module" in table else "has no `module`"
            raise BuildError(
                f"target {number} of {module.__name__} {problem}; keys are {', '.join(sorted(TARGET_KEYS))}"
            )
    return tables


Prepared = tuple[Callable[[], Any], Calls, dict[str, Any]]


def _prepared(target: Any, table: Mapping[str, Any], module: ModuleType, mode: str) -> Prepared:
    """How to make it, what to call it with, and what to tell of that."""
    kwargs = dict(table.get("kwargs") or {})
    if inspect.isclass(target):
        if not issubclass(target, nn.Module):
            raise NotATarget(f"{target.__name__} is not a torch.nn.Module")
        return _of_class(target, kwargs, table, module, mode)
    if isinstance(target, nn.Module):
        return _of_instance(lambda: copy.deepcopy(target), target, table, module, mode)
    if not callable(target):
        raise NotATarget(f"{target!r} cannot be called")
    target = uncompiled(target)
    if _takes_nothing(target, kwargs):
        seed(0)
        made = target(**kwargs)
        if isinstance(made, nn.Module):
            return _of_instance(lambda: target(**kwargs), made, table, module, mode)
    return _of_function(target, table, module)


def _takes_nothing(target: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether it can be called with those keyword arguments alone, as a factory is."""
    try:
        inspect.signature(target).bind(**kwargs)
    except (TypeError, ValueError):
        return False
    return True


def _maker(make: Callable[[], Any], mode: str) -> Callable[[], Any]:
    def made() -> Any:
        model = make()
        return model.train(mode == "train") if isinstance(model, nn.Module) else model

    return made


def _of_class(kind: Any, kwargs: dict[str, Any], table: Mapping[str, Any], module: ModuleType, mode: str) -> Prepared:
    if kind.forward is nn.Module.forward or inspect.isabstract(kind):
        raise NotATarget(f"{kind.__name__} has no forward of its own")
    constructor = Constructor(kind, kwargs)
    calls, made_up = from_table(table, module), False
    arguments: Mapping[str, Recipe] = {name: plain(value) for name, value in kwargs.items()}
    if calls is not None and constructor.needs:
        wanted = calls[0]
        arguments = _first_that_runs(constructor, lambda instance: wanted, mode)[0]
    elif calls is None and any(hasattr(owner, name) for name in BESIDE for owner in (kind, module)):
        with contextlib.suppress(BuildError):
            arguments, given = _first_that_runs(constructor, lambda instance: beside(kind, module, instance), mode)
            calls = (given, others(given), sweep(given))
    if calls is None:
        found = search(kind, kwargs, mode)
        arguments, made_up = found.arguments, True
        calls = made_calls(found.specs)
    recipes = dict(arguments)
    about = {"synthesised": made_up, "kwargs": {name: recipe.text for name, recipe in recipes.items()}}
    make = _maker(lambda: kind(**{name: recipe.make() for name, recipe in recipes.items()}), mode)
    return make, with_second(None if from_table(table, module) else table.get("second"), module, calls), about


def made_calls(specs: Specs) -> Calls:
    """The calls for inputs that were made up."""
    seed(0)
    call = Call(tuple(spec.make() for spec in specs))
    return call, others(call), sweep(call)


def _first_that_runs(
    constructor: Constructor, offered: Callable[[Any], Call | None], mode: str
) -> tuple[Mapping[str, Recipe], Call]:
    """Constructor arguments of the first instance that takes the call."""
    problem = f"no constructor arguments found: {told(constructor.error)}"
    for instance in constructor.instances():
        call = offered(instance.module.train(mode == "train"))
        if call is None:
            raise BuildError("no inputs beside the class")
        error = _error_of(instance.module, call)
        if error is None:
            return instance.arguments, call
        problem = f"the given inputs do not run: {told(error)}"
    if constructor.error is not None and "given inputs" not in problem:
        problem = f"no constructor arguments found: {told(constructor.error)}"
    raise BuildError(problem, example_toml(constructor.name, constructor.needs, ()))


def told(error: BaseException | None) -> str:
    """Type and message of an error, short."""
    return f"{type(error).__name__}: {str(error)[:300]}"


def _error_of(instance: Any, call: Call) -> BaseException | None:
    own = call.copy()
    try:
        with attempt(30.0), torch.no_grad():
            instance(*own.args, **own.kwargs)
    except (Exception, TooLong, SystemExit) as error:
        return error
    return None


def _of_instance(
    make: Callable[[], Any], model: Any, table: Mapping[str, Any], module: ModuleType, mode: str
) -> Prepared:
    """A module that exists already, from a factory or at module level."""
    calls, made_up = from_table(table, module), False
    if calls is None:
        given = beside(type(model), module, model)
        made_up = given is None
        calls = (
            made_calls(_searched(model, module_seeds(model))) if given is None else (given, others(given), sweep(given))
        )
        calls = with_second(table.get("second"), module, calls)
    return _maker(make, mode), calls, {"synthesised": made_up, "kwargs": {}}


def _of_function(function: Callable[..., Any], table: Mapping[str, Any], module: ModuleType) -> Prepared:
    calls = from_table(table, module)
    made_up = calls is None
    if calls is None:
        calls = with_second(table.get("second"), module, made_calls(_searched(function, function_seeds(function))))
    return (lambda: function), calls, {"synthesised": made_up, "kwargs": {}}


def _searched(function: Callable[..., Any], guesses: Iterable[Specs]) -> Specs:
    miss = Miss()
    specs, _ = inputs_for(function, guesses, FIRST_SECONDS, miss)
    if specs is None:
        name = f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"
        raise BuildError(miss.text, example_toml(name, (), miss.specs))
    return specs
