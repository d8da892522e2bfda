"""Element types: their names here, in PyTorch and in safetensors, and how exact each is."""

import torch

TYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
# Types that have few operators, and families of their own.
UNSIGNED = {"u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64}
FLOATS_OF_A_BYTE = {
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
    "f8e8m0fnu": torch.float8_e8m0fnu,
}
COMPLEX = {"c64": torch.complex64, "c128": torch.complex128}
ALL_TYPES = {**TYPES, **UNSIGNED, **FLOATS_OF_A_BYTE, **COMPLEX}
NAMES = {dtype: name for name, dtype in ALL_TYPES.items()}
FORMATS = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "i64": "I64",
    "i32": "I32",
    "i16": "I16",
    "i8": "I8",
    "u8": "U8",
    "bool": "BOOL",
    "u16": "U16",
    "u32": "U32",
    "u64": "U64",
    "f8e4m3fn": "F8_E4M3",
    "f8e5m2": "F8_E5M2",
    "f8e4m3fnuz": "F8_E4M3FNUZ",
    "f8e5m2fnuz": "F8_E5M2FNUZ",
    "f8e8m0fnu": "F8_E8M0",
    "c64": "C64",
}
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")

# Absolute and relative: full types well within what `verify` allows by default, half types about two units in the
# last place, which is what the order of a sum and one more rounding make.
TOLERANCES = {"f64": (1e-9, 1e-9), "f32": (2e-5, 1e-4), "f16": (2e-3, 2e-3), "bf16": (1.6e-2, 1.6e-2)}
# What programs of them compute, they compute in `f32`.
TOLERANCES.update({name: TOLERANCES["f32"] for name in (*UNSIGNED, *FLOATS_OF_A_BYTE)})

# What a result of a type that a program converts to may be off by at least, absolute and relative: about a unit of it.
UNITS = {torch.float16: (1e-4, 1e-3), torch.bfloat16: (8e-4, 8e-3), torch.float32: (1e-6, 1e-5)}
UNITS[torch.complex64] = UNITS[torch.float32]
