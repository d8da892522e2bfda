//! `models/model.json` as data: the export schema, major version 8.
//!
//! Field names are the file's. Unions are objects of one key; a key that is not known becomes `Unknown`, so that the
//! importer can name the place where it stands. Knows nothing of what any of it means.

use indexmap::IndexMap;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A floating-point number; infinities and NaN are written as text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float(pub(super) f64);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Float, D::Error> {
        struct FloatVisitor;
        impl Visitor<'_> for FloatVisitor {
            type Value = Float;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Float, E> {
                Ok(Float(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Float, E> {
                Ok(Float(value as f64))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Float, E> {
                Ok(Float(value as f64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Float, E> {
                match text {
                    "Infinity" | "inf" => Ok(Float(f64::INFINITY)),
                    "-Infinity" | "-inf" => Ok(Float(f64::NEG_INFINITY)),
                    "NaN" | "nan" => Ok(Float(f64::NAN)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(FloatVisitor)
    }
}

/// A union of the file.
pub(super) trait Union {
    /// The key that stands in the file.
    fn key(&self) -> &str;
}

macro_rules! union {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($ty:ty) = $key:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(super) enum $name { $($variant($ty),)* Unknown(String) }

        impl Union for $name {
            fn key(&self) -> &str {
                match self {
                    $($name::$variant(_) => $key,)*
                    $name::Unknown(key) => key,
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct UnionVisitor;
                impl<'de> Visitor<'de> for UnionVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object of one key (", stringify!($name), ")"))
                    }
                    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<$name, M::Error> {
                        let Some(key) = map.next_key::<String>()? else {
                            return Err(M::Error::invalid_length(0, &self));
                        };
                        let value = match key.as_str() {
                            $($key => $name::$variant(map.next_value()?),)*
                            _ => { map.next_value::<IgnoredAny>()?; $name::Unknown(key) }
                        };
                        if map.next_key::<IgnoredAny>()?.is_some() {
                            return Err(M::Error::invalid_length(2, &self));
                        }
                        Ok(value)
                    }
                }
                deserializer.deserialize_map(UnionVisitor)
            }
        }
    };
}

#[derive(Deserialize)]
pub(super) struct ExportedProgram {
    pub(super) graph_module: GraphModule,
    #[serde(default)]
    pub(super) range_constraints: IndexMap<String, RangeConstraint>,
    #[serde(default)]
    pub(super) guards_code: Vec<String>,
}

/// Read on its own first: a file of another version may differ in everything else.
#[derive(Deserialize)]
pub(super) struct VersionOnly {
    pub(super) schema_version: SchemaVersion,
    pub(super) torch_version: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct SchemaVersion {
    pub(super) major: i64,
    pub(super) minor: i64,
}

#[derive(Deserialize)]
pub(super) struct GraphModule {
    pub(super) graph: Graph,
    pub(super) signature: GraphSignature,
    #[serde(default)]
    pub(super) module_call_graph: Vec<ModuleCall>,
    /// The fields of named tuples, by the tuples' names.
    #[serde(default)]
    pub(super) treespec_namedtuple_fields: IndexMap<String, NamedTuple>,
}

/// How a module of the user's is called; the first is the whole.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModuleCall {
    #[serde(default)]
    pub(super) signature: Option<ModuleCallSignature>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModuleCallSignature {
    /// What the call gives, as PyTorch's trees are written: JSON in a string.
    #[serde(default)]
    pub(super) out_spec: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedTuple {
    #[serde(default)]
    pub(super) field_names: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Graph {
    pub(super) inputs: Vec<Argument>,
    pub(super) outputs: Vec<Argument>,
    pub(super) nodes: Vec<Node>,
    pub(super) tensor_values: IndexMap<String, TensorMeta>,
    #[serde(default)]
    pub(super) sym_int_values: IndexMap<String, SymInt>,
    #[serde(default)]
    pub(super) sym_bool_values: IndexMap<String, SymBool>,
    #[serde(default)]
    pub(super) sym_float_values: IndexMap<String, SymFloat>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Node {
    pub(super) target: String,
    pub(super) inputs: Vec<NamedArgument>,
    pub(super) outputs: Vec<Argument>,
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default)]
    pub(super) name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) stack_trace: Option<String>,
    #[serde(default)]
    pub(super) nn_module_stack: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NamedArgument {
    pub(super) name: String,
    pub(super) arg: Argument,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct TensorMeta {
    pub(super) dtype: i64,
    pub(super) sizes: Vec<SymInt>,
    pub(super) strides: Vec<SymInt>,
    pub(super) storage_offset: SymInt,
    #[serde(default = "strided")]
    pub(super) layout: i64,
}

fn strided() -> i64 {
    7
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SymExpr {
    pub(super) expr_str: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Name {
    pub(super) name: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Complex {
    pub(super) real: Float,
    pub(super) imag: Float,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct GraphArgument {
    pub(super) name: String,
    pub(super) graph: Box<Graph>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Device {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) index: Option<i64>,
}

union! { SymInt { Expr(SymExpr) = "as_expr", Int(i64) = "as_int", } }
union! { SymFloat { Expr(IgnoredAny) = "as_expr", Float(Float) = "as_float", } }
union! { SymBool { Expr(SymExpr) = "as_expr", Bool(bool) = "as_bool", } }
union! { SymIntArgument { Name(String) = "as_name", Int(i64) = "as_int", } }
union! { SymFloatArgument { Name(String) = "as_name", Float(Float) = "as_float", } }
union! { SymBoolArgument { Name(String) = "as_name", Bool(bool) = "as_bool", } }
union! { OptionalTensor { Tensor(Name) = "as_tensor", None(IgnoredAny) = "as_none", } }

union! {
    /// A value in a call, or an input or output of a graph.
    Argument {
        None(IgnoredAny) = "as_none",
        Tensor(Name) = "as_tensor",
        Tensors(Vec<Name>) = "as_tensors",
        Int(i64) = "as_int",
        Ints(Vec<i64>) = "as_ints",
        Float(Float) = "as_float",
        Floats(Vec<Float>) = "as_floats",
        String(String) = "as_string",
        Strings(IgnoredAny) = "as_strings",
        SymInt(SymIntArgument) = "as_sym_int",
        SymInts(Vec<SymIntArgument>) = "as_sym_ints",
        ScalarType(i64) = "as_scalar_type",
        MemoryFormat(i64) = "as_memory_format",
        Layout(i64) = "as_layout",
        Device(Device) = "as_device",
        Bool(bool) = "as_bool",
        Bools(Vec<bool>) = "as_bools",
        SymBool(SymBoolArgument) = "as_sym_bool",
        SymBools(IgnoredAny) = "as_sym_bools",
        Graph(GraphArgument) = "as_graph",
        OptionalTensors(Vec<OptionalTensor>) = "as_optional_tensors",
        CustomObj(IgnoredAny) = "as_custom_obj",
        Operator(String) = "as_operator",
        Named(IndexMap<String, Argument>) = "as_string_to_argument",
        SymFloat(SymFloatArgument) = "as_sym_float",
        SymFloats(Vec<SymFloatArgument>) = "as_sym_floats",
        OptionalTensor(OptionalTensor) = "as_optional_tensor",
        Complex(Complex) = "as_complex",
    }
}

#[derive(Deserialize)]
pub(super) struct GraphSignature {
    pub(super) input_specs: Vec<InputSpec>,
    pub(super) output_specs: Vec<OutputSpec>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct AnyArg {
    pub(super) arg: Argument,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ParameterSpec {
    pub(super) arg: Name,
    pub(super) parameter_name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct BufferSpec {
    pub(super) arg: Name,
    pub(super) buffer_name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct TensorConstantSpec {
    pub(super) arg: Name,
    pub(super) tensor_constant_name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct CustomObjSpec {
    pub(super) custom_obj_name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct LossSpec {
    pub(super) arg: Name,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct InputMutationSpec {
    pub(super) arg: Name,
    pub(super) user_input_name: String,
}

union! {
    /// What an input is for.
    InputSpec {
        User(AnyArg) = "user_input",
        Parameter(ParameterSpec) = "parameter",
        Buffer(BufferSpec) = "buffer",
        TensorConstant(TensorConstantSpec) = "tensor_constant",
        CustomObj(CustomObjSpec) = "custom_obj",
        Token(IgnoredAny) = "token",
        Constant(Name) = "constant_input",
    }
}

union! {
    /// What an output is for.
    OutputSpec {
        User(AnyArg) = "user_output",
        Loss(LossSpec) = "loss_output",
        BufferMutation(BufferSpec) = "buffer_mutation",
        ParameterMutation(ParameterSpec) = "parameter_mutation",
        InputMutation(InputMutationSpec) = "user_input_mutation",
        ParameterGradient(IgnoredAny) = "gradient_to_parameter",
        InputGradient(IgnoredAny) = "gradient_to_user_input",
        Token(IgnoredAny) = "token",
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct RangeConstraint {
    #[serde(default)]
    pub(super) min_val: Option<i64>,
    #[serde(default)]
    pub(super) max_val: Option<i64>,
}

/// `*_config.json`: where the data of each tensor is.
#[derive(Deserialize)]
pub(super) struct PayloadConfig {
    pub(super) config: IndexMap<String, PayloadMeta>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PayloadMeta {
    pub(super) path_name: String,
    #[serde(default)]
    pub(super) use_pickle: bool,
    #[serde(default)]
    pub(super) tensor_meta: Option<TensorMeta>,
}
