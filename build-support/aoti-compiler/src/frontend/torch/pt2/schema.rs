//! `models/model.json` as data: the export schema, major version 8.
//!
//! Field names are the file's. Unions are objects of one key; a key that is not known becomes `Unknown`, so that the
//! importer can name the place where it stands. Knows nothing of what any of it means.

use super::values::STRIDED;
use crate::from_json;
use crate::json::{Fields, FromJson, Malformed, Value, only_entry};
use indexmap::IndexMap;

/// A floating-point number; infinities and NaN are written as text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float(pub(super) f64);

impl FromJson for Float {
    fn from_json(value: Value) -> Result<Float, Malformed> {
        let number = match value.as_str() {
            Some("Infinity" | "inf") => Some(f64::INFINITY),
            Some("-Infinity" | "-inf") => Some(f64::NEG_INFINITY),
            Some("NaN" | "nan") => Some(f64::NAN),
            Some(_) => None,
            None => value.as_f64(),
        };
        let expected = "a number, \"Infinity\", \"-Infinity\" or \"NaN\"";
        number.map(Float).ok_or_else(|| Malformed::unexpected(&value, expected))
    }
}

/// Something that is not looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ignored;

impl FromJson for Ignored {
    fn from_json(_: Value) -> Result<Ignored, Malformed> {
        Ok(Ignored)
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

        impl FromJson for $name {
            fn from_json(value: Value) -> Result<$name, Malformed> {
                let (key, value) = only_entry(value, stringify!($name))?;
                let read = match key.as_str() {
                    $($key => FromJson::from_json(value).map($name::$variant),)*
                    _ => return Ok($name::Unknown(key)),
                };
                read.map_err(|error: Malformed| error.under(&key))
            }
        }
    };
}

pub(super) struct ExportedProgram {
    pub(super) graph_module: GraphModule,
    pub(super) range_constraints: IndexMap<String, RangeConstraint>,
    pub(super) guards_code: Vec<String>,
}

from_json!(ExportedProgram { graph_module } or_default { range_constraints, guards_code });

/// Read on its own first: a file of another version may differ in everything else.
pub(super) struct VersionOnly {
    pub(super) schema_version: SchemaVersion,
    pub(super) torch_version: Option<String>,
}

impl VersionOnly {
    /// What a program says of its version.
    pub(super) fn part_of(program: &Value) -> Value {
        let part = ["schema_version", "torch_version"].map(|key| (key.to_owned(), program.get(key).cloned()));
        part.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

from_json!(VersionOnly { schema_version, torch_version });

pub(super) struct SchemaVersion {
    pub(super) major: i64,
    pub(super) minor: i64,
}

from_json!(SchemaVersion { major, minor });

pub(super) struct GraphModule {
    pub(super) graph: Graph,
    pub(super) signature: GraphSignature,
    pub(super) module_call_graph: Vec<ModuleCall>,
    /// The fields of named tuples, by the tuples' names.
    pub(super) treespec_namedtuple_fields: IndexMap<String, NamedTuple>,
}

from_json!(GraphModule { graph, signature } or_default { module_call_graph, treespec_namedtuple_fields });

/// How a module of the user's is called; the first is the whole.
#[derive(Clone, Debug)]
pub(super) struct ModuleCall {
    pub(super) signature: Option<ModuleCallSignature>,
}

from_json!(ModuleCall {} or_default { signature });

#[derive(Clone, Debug)]
pub(super) struct ModuleCallSignature {
    /// What the call gives, as PyTorch's trees are written: JSON in a string.
    pub(super) out_spec: String,
}

from_json!(ModuleCallSignature {} or_default { out_spec });

#[derive(Clone, Debug)]
pub(super) struct NamedTuple {
    pub(super) field_names: Vec<String>,
}

from_json!(NamedTuple {} or_default { field_names });

#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) inputs: Vec<Argument>,
    pub(super) outputs: Vec<Argument>,
    pub(super) nodes: Vec<Node>,
    pub(super) tensor_values: IndexMap<String, TensorMeta>,
    pub(super) sym_int_values: IndexMap<String, SymInt>,
    pub(super) sym_bool_values: IndexMap<String, SymBool>,
    pub(super) sym_float_values: IndexMap<String, SymFloat>,
}

from_json!(Graph { inputs, outputs, nodes, tensor_values } or_default { sym_int_values, sym_bool_values, sym_float_values });

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) target: String,
    pub(super) inputs: Vec<NamedArgument>,
    pub(super) outputs: Vec<Argument>,
    pub(super) metadata: Metadata,
    pub(super) name: Option<String>,
}

from_json!(Node { target, inputs, outputs } or_default { metadata, name });

#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    pub(super) stack_trace: Option<String>,
    pub(super) nn_module_stack: Option<String>,
}

from_json!(Metadata {} or_default { stack_trace, nn_module_stack });

#[derive(Clone, Debug)]
pub(super) struct NamedArgument {
    pub(super) name: String,
    pub(super) arg: Argument,
}

from_json!(NamedArgument { name, arg });

#[derive(Clone, Debug)]
pub(super) struct TensorMeta {
    pub(super) dtype: i64,
    pub(super) sizes: Vec<SymInt>,
    pub(super) strides: Vec<SymInt>,
    pub(super) storage_offset: SymInt,
    pub(super) layout: i64,
}

impl FromJson for TensorMeta {
    fn from_json(value: Value) -> Result<TensorMeta, Malformed> {
        let mut fields = Fields::of(value)?;
        Ok(TensorMeta {
            dtype: fields.required("dtype")?,
            sizes: fields.required("sizes")?,
            strides: fields.required("strides")?,
            storage_offset: fields.required("storage_offset")?,
            layout: fields.optional("layout")?.unwrap_or(STRIDED),
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct SymExpr {
    pub(super) expr_str: String,
}

from_json!(SymExpr { expr_str });

#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) name: String,
}

from_json!(Name { name });

#[derive(Clone, Copy, Debug)]
pub(super) struct Complex {
    pub(super) real: Float,
    pub(super) imag: Float,
}

from_json!(Complex { real, imag });

#[derive(Clone, Debug)]
pub(super) struct GraphArgument {
    pub(super) name: String,
    pub(super) graph: Box<Graph>,
}

from_json!(GraphArgument { name, graph });

#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) kind: String,
    pub(super) index: Option<i64>,
}

from_json!(Device { kind = "type" } or_default { index });

union! { SymInt { Expr(SymExpr) = "as_expr", Int(i64) = "as_int", } }
union! { SymFloat { Expr(Ignored) = "as_expr", Float(Float) = "as_float", } }
union! { SymBool { Expr(SymExpr) = "as_expr", Bool(bool) = "as_bool", } }
union! { SymIntArgument { Name(String) = "as_name", Int(i64) = "as_int", } }
union! { SymFloatArgument { Name(String) = "as_name", Float(Float) = "as_float", } }
union! { SymBoolArgument { Name(String) = "as_name", Bool(bool) = "as_bool", } }
union! { OptionalTensor { Tensor(Name) = "as_tensor", None(Ignored) = "as_none", } }

union! {
    /// A value in a call, or an input or output of a graph.
    Argument {
        None(Ignored) = "as_none",
        Tensor(Name) = "as_tensor",
        Tensors(Vec<Name>) = "as_tensors",
        Int(i64) = "as_int",
        Ints(Vec<i64>) = "as_ints",
        Float(Float) = "as_float",
        Floats(Vec<Float>) = "as_floats",
        String(String) = "as_string",
        Strings(Ignored) = "as_strings",
        SymInt(SymIntArgument) = "as_sym_int",
        SymInts(Vec<SymIntArgument>) = "as_sym_ints",
        ScalarType(i64) = "as_scalar_type",
        MemoryFormat(i64) = "as_memory_format",
        Layout(i64) = "as_layout",
        Device(Device) = "as_device",
        Bool(bool) = "as_bool",
        Bools(Vec<bool>) = "as_bools",
        SymBool(SymBoolArgument) = "as_sym_bool",
        SymBools(Ignored) = "as_sym_bools",
        Graph(GraphArgument) = "as_graph",
        OptionalTensors(Vec<OptionalTensor>) = "as_optional_tensors",
        CustomObj(Ignored) = "as_custom_obj",
        Operator(String) = "as_operator",
        Named(IndexMap<String, Argument>) = "as_string_to_argument",
        SymFloat(SymFloatArgument) = "as_sym_float",
        SymFloats(Vec<SymFloatArgument>) = "as_sym_floats",
        OptionalTensor(OptionalTensor) = "as_optional_tensor",
        Complex(Complex) = "as_complex",
    }
}

pub(super) struct GraphSignature {
    pub(super) input_specs: Vec<InputSpec>,
    pub(super) output_specs: Vec<OutputSpec>,
}

from_json!(GraphSignature { input_specs, output_specs });

#[derive(Clone, Debug)]
pub(super) struct AnyArg {
    pub(super) arg: Argument,
}

from_json!(AnyArg { arg });

#[derive(Clone, Debug)]
pub(super) struct ParameterSpec {
    pub(super) arg: Name,
    pub(super) parameter_name: String,
}

from_json!(ParameterSpec { arg, parameter_name });

#[derive(Clone, Debug)]
pub(super) struct BufferSpec {
    pub(super) arg: Name,
    pub(super) buffer_name: String,
}

from_json!(BufferSpec { arg, buffer_name });

#[derive(Clone, Debug)]
pub(super) struct TensorConstantSpec {
    pub(super) arg: Name,
    pub(super) tensor_constant_name: String,
}

from_json!(TensorConstantSpec { arg, tensor_constant_name });

#[derive(Clone, Debug)]
pub(super) struct CustomObjSpec {
    pub(super) custom_obj_name: String,
}

from_json!(CustomObjSpec { custom_obj_name });

#[derive(Clone, Debug)]
pub(super) struct LossSpec {
    pub(super) arg: Name,
}

from_json!(LossSpec { arg });

#[derive(Clone, Debug)]
pub(super) struct InputMutationSpec {
    pub(super) arg: Name,
    pub(super) user_input_name: String,
}

from_json!(InputMutationSpec { arg, user_input_name });

union! {
    /// What an input is for.
    InputSpec {
        User(AnyArg) = "user_input",
        Parameter(ParameterSpec) = "parameter",
        Buffer(BufferSpec) = "buffer",
        TensorConstant(TensorConstantSpec) = "tensor_constant",
        CustomObj(CustomObjSpec) = "custom_obj",
        Token(Ignored) = "token",
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
        ParameterGradient(Ignored) = "gradient_to_parameter",
        InputGradient(Ignored) = "gradient_to_user_input",
        Token(Ignored) = "token",
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RangeConstraint {
    pub(super) min_val: Option<i64>,
    pub(super) max_val: Option<i64>,
}

from_json!(RangeConstraint {} or_default { min_val, max_val });

/// `*_config.json`: where the data of each tensor is.
pub(super) struct PayloadConfig {
    pub(super) config: IndexMap<String, PayloadMeta>,
}

from_json!(PayloadConfig { config });

#[derive(Clone, Debug)]
pub(super) struct PayloadMeta {
    pub(super) path_name: String,
    pub(super) use_pickle: bool,
    pub(super) tensor_meta: Option<TensorMeta>,
}

from_json!(PayloadMeta { path_name } or_default { use_pickle, tensor_meta });
