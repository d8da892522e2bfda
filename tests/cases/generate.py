"""Writes the cases of `tests/cases`: many calls of one family of operators to a program, with PyTorch's outputs.

    python tests/cases/generate.py [FAMILY…]

Needs PyTorch, torchvision and torchao; the tests do not, they read what is stored. A table (`tables/`) lists expressions over named inputs. Of
these, what PyTorch's CPU accepts for an element type goes into one exported program for that type; what it refuses is
left out and told on stderr. The same PyTorch gives the same bytes: inputs come from a fixed seed, and archives carry
no paths, times or stack traces.

A case is a folder TYPE in the archive FAMILY.zip, with `model.pt2`, `inputs.safetensors`, `outputs.safetensors` and
`case.json`: once unpacked, `cargo aoti verify` runs it too. `case.json` has the tolerance and, for each output, the
expression that it is from.
"""

import importlib
import io
import json
import math
import resource
import struct
import sys
import warnings
import zipfile
from pathlib import Path

import torch
import torchvision
from torch._higher_order_ops import map as row_map, while_loop
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from elements import ALL_TYPES, FLOATS, FORMATS, NAMES, TOLERANCES, UNITS

# What expressions may name.
SCOPE = {"torch": torch, "torchvision": torchvision, "LOOP": while_loop, "SCAN": scan, "MAP": row_map, "JOINED": associative_scan, "F": torch.nn.functional, "special": torch.special, "math": math, **ALL_TYPES}


class Call:
    """An expression over named tensors; statements may come before it, separated by `;`."""

    def __init__(self, text, inputs):
        *head, tail = text.split(";")
        self.head = compile("\n".join(line.strip() for line in head), "case", "exec")
        self.tail = compile(tail.strip(), "case", "eval")
        named = set(self.head.co_names) | set(self.tail.co_names) | nested_names(self.head) | nested_names(self.tail)
        self.inputs = {name: tensor for name, tensor in inputs.items() if name in named}
        shapes = (f"{name}: {described(x)}" for name, x in self.inputs.items())
        self.label = f"{text}  [{', '.join(shapes)}]" if self.inputs else text

    def run(self, tensors):
        """The tensors that the expression gives; None if it is none."""
        scope = {**SCOPE, **tensors}
        exec(self.head, scope)
        result = eval(self.tail, scope)
        leaves = pytree.tree_leaves(result)
        return [leaf for leaf in leaves if leaf is not None]


def described(x):
    return f"{NAMES[x.dtype]}{list(x.shape)}" if isinstance(x, torch.Tensor) else "int"


def copied(x):
    return x.clone() if isinstance(x, torch.Tensor) else x


def nested_names(code):
    names = set()
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            names |= set(constant.co_names) | nested_names(constant)
    return names


class Table:
    """The calls of one family for one element type."""

    def __init__(self, family, type_name, seed):
        self.family, self.type, self.dtype = family, type_name, ALL_TYPES.get(type_name)
        self.generator = torch.Generator().manual_seed(seed)
        self.names, self.calls, self.refused, self.errors, self.programs = {}, [], [], [], []
        self.modules = []
        # What size stands for any in dynamic programs, and the sizes that they are run with.
        self.dynamic, self.sizes = None, (None,)
        self.tolerance = TOLERANCES.get(type_name, (1e-4, 1e-3))
        self.is_float = type_name in FLOATS

    def bind(self, **tensors):
        """Names that later expressions use."""
        self.names.update(tensors)

    def __call__(self, *texts, **tensors):
        for text in texts:
            self.add(text, {**self.names, **tensors})

    def add(self, text, tensors):
        call = Call(text, tensors)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = call.run({name: x.clone() for name, x in call.inputs.items()})
            assert results and all(isinstance(result, torch.Tensor) for result in results), "no tensors"
            assert all(result.dtype in NAMES for result in results), "an element type that there is none of here"
            self.calls.append(call)
        except Exception as error:
            self.refused.append((call.label, str(error).split("\n")[0][:100]))

    def refuse(self, text, good, bad):
        """An expression of which PyTorch, and so we, refuse some values of `i`."""
        call = Call(text, {**self.names, "i": good})
        call.run(call.inputs)
        for index in bad:
            try:
                call.run({**call.inputs, "i": index})
                self.refused.append((call.label, f"takes {index.tolist()}"))
            except (IndexError, RuntimeError):
                self.errors.append((call, index))

    def data(self, text, inputs, bad, *good, dynamic=()):
        """A program whose sizes follow from data: with inputs that it takes, others that it takes, and those that it must
        refuse; both name only the tensors that are others. Of the `dynamic` ones the first axis may have any size."""
        sets = [(True, others) for others in bad] + [(False, others) for others in good]
        self.programs.append((Call(text, inputs), sets, dynamic))

    def sized(self, text, inputs, *others, dynamic):
        """A program run with other inputs too, of sizes of which the program itself says whether it takes them."""
        self.programs.append((Call(text, inputs), [(None, tensors) for tensors in others], dynamic))

    def least(self, text, inputs, any, sizes, number):
        """A program of which every axis of `any` elements may have any size, exported in one of the ways to say so, and run
        with all of `sizes`: the program itself says which of them it takes."""
        call = Call(text, inputs)
        hints = [torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO, torch.export.Dim("n")]
        axes = {name: {axis: hints[number % 3] for axis, n in enumerate(x.shape) if n == any} for name, x in call.inputs.items()}
        sets = [(None, {name: resized(x, any, size) for name, x in call.inputs.items()}) for size in sizes]
        self.programs.append((call, sets, axes))

    def integer(self, text, given, values):
        """A program with the integer `n` as an input, exported where it is `given` and run with every one of the values:
        the program itself says which of them it takes."""
        call = Call(text, {**self.names, "n": given})
        self.programs.append((call, [(None, {"n": value}) for value in values], "n"))

    def integer_of_data(self, text, given, values):
        """As `integer`, but `n` is read from a tensor."""
        call = Call("n = i.item(); " + text, {**self.names, "i": torch.tensor(given)})
        self.programs.append((call, [(None, {"i": torch.tensor(value)}) for value in values], ()))

    def module(self, text, inputs, **buffers):
        """A program of its own that may overwrite its inputs, with buffers whose elements lie in memory as they do here."""
        self.modules.append((Call(text, {**inputs, **buffers}), buffers))

    def rand(self, *sizes, low=-3.0, high=3.0, dtype=None):
        """Numbers in a range: with halves and zeros among the floating-point ones, whole ones of integers."""
        dtype = dtype or self.dtype
        if dtype == torch.bool:
            return torch.randint(0, 2, sizes, generator=self.generator).bool()
        uniform = torch.rand(sizes, generator=self.generator, dtype=torch.float64) * (high - low) + low
        if not dtype.is_floating_point:
            uniform = uniform.floor() if dtype != torch.uint8 else uniform.floor().abs()
            return uniform.to(dtype)
        # Few digits: exact in every type, and there are equal elements.
        return ((uniform * 16).round() / 16).to(dtype)

    def ints(self, low, high, *sizes, dtype=torch.int64):
        return torch.randint(low, high, sizes, generator=self.generator).to(dtype)

    def special(self):
        """What goes wrong at the ends of the type."""
        if self.dtype == torch.bool:
            return torch.tensor([True, False])
        if self.is_float:
            info = torch.finfo(self.dtype)
            values = [
                math.nan,
                math.inf,
                -math.inf,
                -0.0,
                0.0,
                info.tiny,
                -info.tiny,
                info.tiny / 4,
                info.max,
                info.min,
                info.eps,
                1.0,
                -1.0,
                0.5,
                -0.5,
                2.5,
                -2.5,
                1.5,
                -1.5,
                88.0,
                -104.0,
                1e4,
                -1e4,
            ]
            return torch.tensor(values, dtype=self.dtype)
        info = torch.iinfo(self.dtype)
        return torch.tensor(
            [info.min, info.min + 1, -1 % (info.max + 1) if info.min == 0 else -1, 0, 1, 2, 7, info.max - 1, info.max],
            dtype=self.dtype,
        )


class Program(torch.nn.Module):
    """All calls of a table; inputs come in order of first use."""

    def __init__(self, calls):
        super().__init__()
        self.calls, self.tensors = calls, []
        self.places = []
        positions = {}
        for call in calls:
            places = {}
            for name, tensor in call.inputs.items():
                if id(tensor) not in positions:
                    positions[id(tensor)] = len(self.tensors)
                    self.tensors.append(tensor)
                places[name] = positions[id(tensor)]
            self.places.append(places)

    def results(self, inputs):
        return [
            call.run({name: inputs[place] for name, place in places.items()})
            for call, places in zip(self.calls, self.places)
        ]

    def forward(self, *inputs):
        return tuple(leaf for leaves in self.results(inputs) for leaf in leaves)


def resized(tensor, dynamic, size):
    """With so many elements along each dynamic axis."""
    for axis, n in enumerate(tensor.shape):
        if size is not None and n == dynamic:
            tensor = tensor.index_select(axis, torch.arange(size) % n)
    return tensor


def export(program, dynamic, decompose):
    shapes = None
    if dynamic:
        size = torch.export.Dim("n", min=1, max=64)
        shapes = (tuple({axis: size for axis, n in enumerate(x.shape) if n == dynamic} for x in program.tensors),)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(program, tuple(program.tensors), dynamic_shapes=shapes, strict=False)
        if decompose:
            exported = exported.run_decompositions()
    return exported


def exportable(table, decompose):
    """The calls that torch.export takes. Tried all at once, then by halves."""

    def tried(calls):
        if not calls:
            return []
        try:
            export(Program(calls), table.dynamic, decompose)
            return calls
        except Exception as error:
            if len(calls) == 1:
                table.refused.append((calls[0].label, "export: " + str(error).split("\n")[0][:100]))
                return []
        half = len(calls) // 2
        return tried(calls[:half]) + tried(calls[half:])

    calls = tried(table.calls)
    return calls if len(calls) == len(table.calls) else tried(calls)


def archive(exported):
    """A `.pt2` archive without what differs from one machine to the next, or says nothing about the program."""
    buffer = io.BytesIO()
    torch.export.save(exported, buffer)
    written = io.BytesIO()
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            if "/sample_inputs/" in name or "/.data/" in name:
                continue
            data = source.read(name)
            if name.endswith("models/model.json"):
                data = scrubbed(data)
            target.writestr(zipfile.ZipInfo("model/" + name.split("/", 1)[1], (1980, 1, 1, 0, 0, 0)), data)
    return written.getvalue()


def scrubbed(data):
    program = json.loads(data)

    def walk(value):
        if isinstance(value, dict):
            if "target" in value and "metadata" in value:
                value["metadata"] = {}
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(program)
    return json.dumps(program, separators=(",", ":")).encode()


def safetensors(tensors):
    return named_safetensors({str(index): tensor for index, tensor in enumerate(tensors)})


def named_safetensors(tensors):
    header, data = {}, []
    offset = 0
    for name, tensor in tensors.items():
        tensor = torch.as_tensor(tensor).resolve_conj().resolve_neg()
        if tensor.is_complex() and NAMES[tensor.dtype] not in FORMATS:
            # The format has complex numbers of one width; pairs are as good.
            tensor = torch.view_as_real(tensor)
        # A tensor of one element counts as contiguous whatever its strides are, but cannot be seen as bytes then.
        flat = torch.empty(tensor.numel(), dtype=tensor.dtype)
        raw = flat.copy_(tensor.detach().reshape(-1)).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": FORMATS[NAMES[tensor.dtype]],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        data.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def tolerances(table, outputs):
    """What `case.json` says of how far outputs may be off: a number for all, or a list where some are of a type that is
    less exact than the program's."""
    least = [UNITS.get(x.dtype, (0, 0)) for x in outputs]
    each = [[max(own, unit) for own, unit in zip(table.tolerance, units)] for units in least] or [table.tolerance]
    columns = {"atol": [atol for atol, _ in each], "rtol": [rtol for _, rtol in each]}
    return {key: column[0] if len(set(column)) == 1 else column for key, column in columns.items()}


def write(table, decompose, files):
    calls = exportable(table, decompose)
    for label, reason in table.refused:
        print(f"  {table.family}/{table.type}: left out: {label}: {reason}", file=sys.stderr)
    if not calls:
        return
    program = Program(calls)
    exported = export(program, table.dynamic, decompose)
    for size in table.sizes:
        inputs = [resized(x, table.dynamic, size) for x in program.tensors]
        with torch.no_grad():
            results = program.results([x.clone() for x in inputs])
        labels = [call.label for call, leaves in zip(calls, results) for _ in leaves]
        outputs = [leaf for leaves in results for leaf in leaves]
        place = table.type if size is None else f"{table.type}-{size}"
        files[f"{place}/model.pt2"] = archive(exported)
        files[f"{place}/inputs.safetensors"] = safetensors(inputs)
        files[f"{place}/outputs.safetensors"] = safetensors(outputs)
        case = {**tolerances(table, outputs), "torch": torch.__version__.split("+")[0], "outputs": labels}
        files[f"{place}/case.json"] = (json.dumps(case, indent=0) + "\n").encode()
    print(f"{table.family}/{table.type}: {len(calls)} calls", flush=True)


def write_errors(table, files):
    """A program for each call that fails, with nothing to compare: `case.json` says that it must be refused."""
    for number, (call, index) in enumerate(table.errors):
        program = Program([call])
        inputs = [index if x is call.inputs["i"] else x for x in program.tensors]
        place = f"{table.type}-{number:02}"
        files[f"{place}/model.pt2"] = archive(export(program, None, False))
        files[f"{place}/inputs.safetensors"] = safetensors(inputs)
        files[f"{place}/outputs.safetensors"] = safetensors([])
        case = {"atol": 0, "rtol": 0, "outputs": [], "refused": f"{call.label}, i = {index.tolist()}"}
        files[f"{place}/case.json"] = (json.dumps(case, indent=0) + "\n").encode()


def any_size(x):
    return {0: torch.export.Dim.AUTO} if isinstance(x, torch.Tensor) else torch.export.Dim.AUTO


def given_by(module, inputs):
    with torch.no_grad():
        return [torch.as_tensor(x) for x in pytree.tree_leaves(module(*(copied(x) for x in inputs)))]


def integer_symbol(exported):
    """The symbol of an integer among the inputs, if it is one in the exported program."""
    inputs = [node for node in exported.graph.nodes if node.op == "placeholder"]
    symbols = [node.meta["val"].node.expr for node in inputs if isinstance(node.meta.get("val"), torch.SymInt)]
    return symbols[0] if symbols and symbols[0].is_Symbol else None


def exported_for(program, shapes):
    """Sizes that the program restricts have no name, but may be of any kind."""
    try:
        return torch.export.export(program, tuple(program.tensors), dynamic_shapes=shapes, strict=False)
    except Exception:
        if not any(isinstance(axes, dict) for axes in (shapes or ((),))[0]):
            raise
    any_of = lambda axes: dict.fromkeys(axes, torch.export.Dim.AUTO) if isinstance(axes, dict) else axes
    shapes = (tuple(any_of(axes) for axes in shapes[0]),)
    return torch.export.export(program, tuple(program.tensors), dynamic_shapes=shapes, strict=False)


def within_ranges(exported, inputs):
    """Whether an integer is in the range that the program states of it; PyTorch itself does not look."""
    symbol = integer_symbol(exported)
    stated = exported.range_constraints.get(symbol) if symbol is not None else None
    numbers = [x for x in inputs if not isinstance(x, torch.Tensor)]
    return stated is None or all(stated.lower <= x <= stated.upper for x in numbers)


class Largest(TorchDispatchMode):
    """Watches the sizes of what calls give."""

    def __init__(self):
        super().__init__()
        self.numel, self.is_huge = 0, False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        sizes = [x.numel() for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor)]
        # What no machine holds is refused at once.
        self.is_huge |= any(size >= 2**46 for size in sizes)
        self.numel = max(self.numel, *(size if size < 2**46 else 0 for size in sizes), 0)
        return results


def watched(call, inputs):
    """The sizes of the tensors that a call would make."""
    # What is read from a single number must stay there.
    on_meta = [x.to("meta") if isinstance(x, torch.Tensor) and x.dim() > 0 else x for x in inputs]
    largest = Largest()
    try:
        with torch.device("meta"), largest:
            call.run(dict(zip(call.inputs, on_meta)))
    except Exception:
        pass
    return largest


def is_large(call, inputs):
    """Whether some tensor takes more memory than a test should, but no more than a machine may have."""
    return watched(call, inputs).numel > 2**20


def is_huge(call, inputs):
    """Whether no machine has the memory for some tensor; where it has, PyTorch lacks it for copies of its own."""
    return watched(call, inputs).is_huge


class WithBuffers(torch.nn.Module):
    """One call, with buffers."""

    def __init__(self, call, buffers):
        super().__init__()
        self.call, self.names = call, [name for name in call.inputs if name not in buffers]
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, *inputs):
        return tuple(self.call.run({**dict(self.named_buffers()), **dict(zip(self.names, inputs))}))


def write_modules(table, files):
    """A program a case. Inputs that it overwrites are compared too: they come after what it gives."""
    for number, (call, buffers) in enumerate(table.modules):
        program = WithBuffers(call, buffers)
        inputs = [call.inputs[name] for name in program.names]
        # In memory of the same strides.
        given = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x) for x in inputs]
        with torch.no_grad():
            exported = torch.export.export(program, tuple(x.clone() for x in inputs), strict=False)
            before = [x._version for x in given]
            outputs = list(program(*given))
        outputs += [x for x, version in zip(given, before) if x._version > version]
        place = f"{table.type}-{number:02}"
        files[f"{place}/model.pt2"] = archive(exported)
        files[f"{place}/inputs.safetensors"] = safetensors(inputs)
        files[f"{place}/outputs.safetensors"] = safetensors(outputs)
        case = {**tolerances(table, outputs), "outputs": [call.label for _ in outputs]}
        files[f"{place}/case.json"] = (json.dumps(case, indent=0) + "\n").encode()
    if table.modules:
        print(f"{table.family}/{table.type}: {len(table.modules)} modules", flush=True)


def write_programs(table, files):
    """A program a case. Further sets of inputs are in `sets.safetensors`, under `K.in.I`, with what they give under
    `K.out.I`; `case.json` tells of each set whether the run must fail, or may: with a number that arithmetic takes out of 64 bits.
    What PyTorch takes all the same is left out."""
    count = 0
    for number, (call, sets, dynamic) in enumerate(table.programs):
        program = Program([call])
        stated = dynamic if isinstance(dynamic, dict) else {name: any_size(x) for name, x in call.inputs.items() if name in dynamic}
        axes = tuple(stated.get(name) for name in call.inputs)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shapes = (axes,) if dynamic else None
                exported = exported_for(program, shapes)
            module = exported.module()
            assert "n" not in call.inputs or integer_symbol(exported), "the export is for one integer"
            outputs = given_by(module, program.tensors)
            model = archive(exported)
        except Exception as error:
            print(f"  {table.family}: left out: {call.label}: {str(error).split(chr(10))[0][:200]}", file=sys.stderr)
            continue
        told, tensors = [], {}
        for fails, others in sets:
            inputs = [others.get(name, x) for name, x in call.inputs.items()]
            told_as = described if dynamic is stated else lambda x: torch.as_tensor(x).tolist()
            what = ", ".join(f"{name} = {told_as(x)}" for name, x in others.items())[:200]
            if fails is None and is_large(call, inputs):
                continue
            results = []
            try:
                assert within_ranges(exported, inputs), "a range that the program states"
                results = given_by(module, inputs)
            except Exception as error:
                if fails is False:
                    raise
                if fails is None and "allocate memory" in str(error) and not is_huge(call, inputs):
                    continue
            else:
                if fails:
                    print(f"  {table.family}: taken: {call.label}: {what}", file=sys.stderr)
                    continue
            # What follows was traced for as many axes as there were.
            fails = not results or [x.dim() for x in results] != [x.dim() for x in outputs]
            results = [] if fails else results
            for kind, values in (("in", inputs), ("out", results)):
                tensors.update({f"{len(told)}.{kind}.{k}": value for k, value in enumerate(values)})
            numbers = [x for x in others.values() if isinstance(x, int) or (x.dim() == 0 and x.dtype == torch.int64)]
            told.append({"what": what, "fails": fails, "may_fail": any(abs(int(x)) >= 2**60 for x in numbers)})
        place = f"{table.type}-{number:03}"
        files[f"{place}/model.pt2"] = model
        files[f"{place}/inputs.safetensors"] = safetensors(program.tensors)
        files[f"{place}/outputs.safetensors"] = safetensors(outputs)
        files[f"{place}/sets.safetensors"] = named_safetensors(tensors)
        case = {**tolerances(table, outputs), "outputs": [call.label for _ in outputs], "sets": told}
        files[f"{place}/case.json"] = (json.dumps(case, indent=0) + "\n").encode()
        count += 1
    if table.programs:
        print(f"{table.family}/{table.type}: {count} programs", flush=True)


def pack(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name, data in sorted(files.items()):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(info, data, compresslevel=9)


# What PyTorch may take for a call: sizes that it is asked for are beyond all bounds.
MEMORY = 10 << 30


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    wanted = sys.argv[1:]
    families = {}
    for path in sorted((HERE / "tables").glob("*.py")):
        families.update(importlib.import_module(f"tables.{path.stem}").FAMILIES)
    for number, (name, (types, fill)) in enumerate(sorted(families.items())):
        if wanted and name not in wanted:
            continue
        files = {}
        for type_name in types:
            # The same inputs whatever other families there are.
            table = Table(name, type_name, sum(name.encode()) * 31 + len(type_name))
            fill(table)
            # Half of the programs in each dialect.
            decompose = list(types).index(type_name) % 2 == 1
            write(table, decompose, files)
            write_errors(table, files)
            write_programs(table, files)
            write_modules(table, files)
        pack(HERE / f"{name}.zip", files)


if __name__ == "__main__":
    main()
