"""Exports a PyTorch module for cargo-aoti, and checks what usually goes wrong. Copy this file beside your training script.

    from aoti_export import export

    export(model, {"image": image}, "models/net.pt2", dims={"image": {0: "batch"}}, bounds={"batch": (1, 64)})

writes models/net.pt2 and models/net.safetensors (sample inputs and outputs, for `cargo aoti verify models/net.pt2`), and prints the
table for Cargo.toml. Needs torch 2.8 or later and safetensors.
"""

import copy
import inspect
import io
import re
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

# Largest size that is tried of a dimension without stated sizes to check, as runs at the upper bound may take long.
LARGEST_CHECK = 64

# What messages of torch.export mean to somebody who wants to deploy a model.
REMEDIES = [
    (r"specialized|Constraints violated", "code fixes this size to the example's; look for a Python `if`, `int()` or a number in a `view`"),
    (r"data-dependent", "Python branches on a value of a tensor; use torch.where or torch.cond, or torch._check what always holds"),
    (r"fake|Fake|meta kernel", "register a fake kernel for the custom operator with torch.library.register_fake"),
    (r"graph break|Unsupported|Dynamo", "export with strict=False, or move the code that is not traceable out of `forward`"),
]


class ExportError(Exception):
    """The model cannot be exported as asked, or the exported program computes something else."""


def export(
    model,
    inputs,
    path,
    *,
    dims=None,
    bounds=None,
    outputs=None,
    check_sizes=None,
    atol=1e-4,
    rtol=1e-3,
    strict=False,
):
    """Exports `model`, checks the program and writes it to `path`. Returns the text of the model's table in Cargo.toml.

    inputs: tensors by the names of the parameters of `forward`, or a sequence of positional arguments.
    dims: for each input, the names of its dynamic dimensions: {"image": {0: "batch"}}. Equal names are equal sizes.
    bounds: for each name, (min, max); without an entry, 1 to no limit.
    outputs: names for all outputs, in order, if the model does not return a dictionary or a named tuple.
    check_sizes: for each name, sizes at which program and module are compared; by default the bounds, up to 64.
    """
    name = Path(path).stem
    dims, bounds = dims or {}, bounds or {}
    arguments = _arguments(model, inputs)
    _check_names(arguments, dims, bounds)
    notes = _prepare(model)
    program = _export(model, arguments, dims, bounds, strict)
    notes += _look_through(program)
    expected = _run(model, arguments)
    notes += _check_random(model, arguments, expected)
    sizes = _sizes_to_check(arguments, dims, bounds, check_sizes or {})
    saved = io.BytesIO()
    torch.export.save(program, saved)
    for chosen in sizes:
        resized = {key: _resize(value, dims.get(key, {}), chosen) for key, value in arguments.items()}
        _compare(saved, model, resized, chosen, atol, rtol)
    table = _manifest(program, name, path, dims, outputs, expected)
    _write(saved, arguments, expected, Path(path))
    for note in notes:
        print(f"note: {note}")
    print(f"compared with the module at {len(sizes)} combination(s) of sizes: equal within {atol} + {rtol} * |x|")
    print(f"wrote {path} and {Path(path).with_suffix('.safetensors')}; add to Cargo.toml:\n")
    print(table)
    return table


def _arguments(model, inputs):
    """The inputs by the names of the parameters of `forward`, in its order."""
    signature = inspect.signature(model.forward)
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    try:
        bound = signature.bind(**inputs) if isinstance(inputs, dict) else signature.bind(*inputs)
    except TypeError as error:
        raise ExportError(f"the inputs do not fit `forward{signature}`: {error}") from None
    return dict(bound.arguments)


def _check_names(arguments, dims, bounds):
    for key, axes in dims.items():
        if key not in arguments:
            raise ExportError(f"`dims` names the input `{key}`; the inputs are {', '.join(arguments)}")
        if not isinstance(arguments[key], torch.Tensor):
            raise ExportError(f"`dims` of `{key}`: only tensors have dimensions, this is {type(arguments[key]).__name__}")
        for axis in axes:
            if not 0 <= axis < arguments[key].dim():
                raise ExportError(f"`dims` of `{key}`: there is no axis {axis}, the example has {arguments[key].dim()}")
    names = {name for axes in dims.values() for name in axes.values()}
    for name in bounds:
        if name not in names:
            raise ExportError(f"`bounds` names `{name}`, which is no name in `dims`")
    for key, axes in dims.items():
        for axis, name in axes.items():
            size, (least, most) = arguments[key].shape[axis], bounds.get(name, (1, None))
            if size < least or (most is not None and size > most):
                raise ExportError(f"the example's `{key}` has size {size} along `{name}`, outside of {least} to {most}")
            if size < 2:
                raise ExportError(f"the example's `{key}` has size {size} along `{name}`; torch.export needs 2 or more to keep it dynamic")


def _prepare(model):
    """Switches to evaluation mode; says so."""
    notes = []
    training = [name or "the module itself" for name, module in model.named_modules() if module.training]
    if training:
        model.eval()
        notes.append(f"{len(training)} module(s) were in training mode, such as {training[0]}; exported in evaluation mode")
    devices = {tensor.device.type for tensor in [*model.parameters(), *model.buffers()]}
    if devices - {"cpu"}:
        notes.append(f"parameters are on {', '.join(sorted(devices))}; the program is compiled for the devices of the manifest all the same")
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            raise ExportError(
                f"torch.autocast is active for {device}; leave the region, and convert the module with model.to(torch.bfloat16) if you want that type"
            )
    return notes


def _export(model, arguments, dims, bounds, strict):
    made = {}
    for axes in dims.values():
        for name in axes.values():
            least, most = bounds.get(name, (1, None))
            made[name] = torch.export.Dim(name, min=least, max=most)
    shapes = {}
    for key, value in arguments.items():
        axes = {axis: made[name] for axis, name in dims.get(key, {}).items()}
        # Of nested arguments, every tensor is static.
        shapes[key] = axes if isinstance(value, torch.Tensor) else pytree.tree_map(lambda _: None, value)
    try:
        with torch.no_grad():
            program = torch.export.export(copy.deepcopy(model), (), dict(arguments), dynamic_shapes=shapes, strict=strict)
        return without_folders(program)
    except Exception as error:
        text = str(error)
        remedy = next((remedy for pattern, remedy in REMEDIES if re.search(pattern, text)), None)
        raise ExportError(f"torch.export failed{': ' + remedy if remedy else ''}\n{text}") from error


def without_folders(program):
    """The program with places in the source (`net/layers.py`) that do not tell where this machine keeps it."""
    shorter = lambda found: f'File "{"/".join(Path(found[1]).parts[-2:])}"'
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", []):
            if node.meta.get("stack_trace"):
                node.meta["stack_trace"] = re.sub(r'File "([^"]+)"', shorter, node.meta["stack_trace"])
    return program


def _look_through(program):
    """What in the program needs something of the manifest or of the Rust program."""
    notes = []
    functional = program.run_decompositions({})
    mutated = sorted(set(functional.graph_signature.buffers_to_mutate.values()))
    if mutated:
        notes.append(f"the program mutates {', '.join(mutated)}: `run` takes a state, which `model.state()` creates")
    for node in program.graph.nodes:
        if "autocast" in str(node.target) and "cpu" not in [str(argument) for argument in node.args]:
            notes.append("the program has a region of torch.autocast for another device than the CPU, which cargo-aoti rejects")
            break
    for schema in _custom(program).values():
        notes.append(f"the program calls the custom operator {schema.name}; the manifest has to declare it")
    return notes


def _custom(program):
    """Schemas of the operators that are not PyTorch's own."""
    custom = {}
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", []):
            if isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in ("aten", "prims", "prim"):
                custom.setdefault(node.target._schema.name, node.target._schema)
    return custom


def _run(model, arguments):
    """Outputs of a copy of the module, whose buffers may change, on copies of the inputs."""
    with torch.no_grad():
        return copy.deepcopy(model)(**copy.deepcopy(arguments))


def _leaves(value):
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _check_random(model, arguments, expected):
    again = _leaves(_run(model, arguments))
    if all(torch.equal(a, b) or (a != a).any() for a, b in zip(_leaves(expected), again)):
        return []
    return ["two runs of the module differ: it draws random numbers, which compiled models draw from a seed of the run"]


def _sizes_to_check(arguments, dims, bounds, check_sizes):
    """Combinations of sizes: those of the example, and for each name its sizes with the others as in the example."""
    example = {name: arguments[key].shape[axis] for key, axes in dims.items() for axis, name in axes.items()}
    for name in check_sizes:
        if name not in example:
            raise ExportError(f"`check_sizes` names `{name}`, which is no name in `dims`")
    combinations = [example]
    for name, size in example.items():
        least, most = bounds.get(name, (1, None))
        largest = min(LARGEST_CHECK, most) if most is not None else size + 3
        for other in check_sizes.get(name, [least, max(least, largest)]):
            if {**example, name: other} not in combinations:
                combinations.append({**example, name: other})
    return combinations


def _resize(value, axes, sizes):
    """The tensor with other sizes: its elements, repeated, so that indices stay in their ranges."""
    for axis, name in axes.items():
        value = value.index_select(axis, torch.arange(sizes[name], device=value.device) % value.shape[axis])
    return value


def _compare(saved, model, arguments, sizes, atol, rtol):
    expected = _leaves(_run(model, arguments))
    # Read anew each time: a run may change the buffers of the program.
    saved.seek(0)
    program = torch.export.load(saved).module()
    with torch.no_grad():
        found = _leaves(program(**copy.deepcopy(arguments)))
    at = ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "the example's sizes"
    for index, (a, b) in enumerate(zip(found, expected)):
        if a.shape != b.shape:
            raise ExportError(f"output {index} of the program has sizes {list(a.shape)} at {at}, of the module {list(b.shape)}")
        if not torch.allclose(a.to(torch.complex128), b.to(torch.complex128), atol=atol, rtol=rtol, equal_nan=True):
            raise ExportError(f"output {index} of the program differs from the module's at {at}")


def _write(saved, arguments, expected, path):
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(saved.getvalue())
    samples = {f"inputs.{index}": value for index, value in enumerate(_leaves(arguments))}
    samples |= {f"outputs.{index}": value for index, value in enumerate(_leaves(expected))}
    # Complex numbers as pairs: the format has none of 128 bits.
    samples = {key: torch.view_as_real(value) if value.is_complex() else value for key, value in samples.items()}
    save_file({key: value.detach().cpu().clone().contiguous() for key, value in samples.items()}, path.with_suffix(".safetensors"))


def _manifest(program, name, path, dims, outputs, expected):
    lines = [f"[package.metadata.aoti.models.{name}]", f'path = "{path}"']
    renamed = _renamed(program, dims)
    if renamed:
        lines.append("dims = { " + ", ".join(f'{old} = "{new}"' for old, new in renamed.items()) + " }")
    if outputs:
        count = len(_leaves(expected))
        if len(outputs) != count:
            raise ExportError(f"`outputs` has {len(outputs)} names; the model has {count} outputs")
        lines.append("outputs = [" + ", ".join(f'"{output}"' for output in outputs) + "]")
    for operator, schema in _custom(program).items():
        arguments = str(schema).split("(", 1)[1]
        lines += ["", f'[package.metadata.aoti.operators."{operator}"]', f'schema = "({arguments}"']
        lines.append(f'symbol = "{operator.replace("::", "_")}"  # a function of your program, or `graph = "…"`')
    return "\n".join(lines)


def _renamed(program, dims):
    """Names of dimensions as cargo-aoti shows them (the first input and axis that have them), with the names of `dims`."""
    renamed, seen = {}, set()
    user_inputs = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in user_inputs or not hasattr(node.meta.get("val"), "shape"):
            continue
        for axis, size in enumerate(node.meta["val"].shape):
            if isinstance(size, torch.SymInt) and str(size) not in seen:
                seen.add(str(size))
                name = dims.get(node.name, {}).get(axis)
                if name is not None and name != f"{node.name}_d{axis}":
                    renamed[f"{node.name}_d{axis}"] = name
    return renamed
