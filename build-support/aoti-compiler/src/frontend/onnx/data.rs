//! Tensors in files of their own (`input_0.pb`), as ONNX's test cases store what goes in and comes out.

use super::proto::{OptionalProto, SequenceProto, TensorProto};
use super::tensors::{self, Beside};
use crate::graph::Constant;
use bytes::Bytes;
use prost::Message;

/// A stored value.
#[derive(Clone, PartialEq, Debug)]
pub enum Stored {
    /// A tensor.
    Tensor(Constant),
    /// Several, of a sequence.
    Sequence(Vec<Constant>),
    /// An optional without an element.
    Nothing,
}

/// Reads a stored value. The file does not say what it is, so that this is known from elsewhere.
///
/// # Errors
/// What is not of that kind, or of a type that has no counterpart.
pub fn stored_value(file: Bytes, kind: super::interface::Kind) -> Result<Stored, String> {
    use super::interface::Kind;
    let broken = |error: prost::DecodeError| error.to_string();
    let tensor = |proto: &TensorProto| tensors::read(proto, &Beside::new()).map(|read| read.constant);
    let sequence = |proto: &SequenceProto| {
        proto.tensor_values.iter().map(tensor).collect::<Result<Vec<_>, _>>().map(Stored::Sequence)
    };
    match kind {
        Kind::Tensor => tensor(&TensorProto::decode(file).map_err(broken)?).map(Stored::Tensor),
        Kind::Sequence => sequence(&SequenceProto::decode(file).map_err(broken)?),
        Kind::Optional => {
            let proto = OptionalProto::decode(file).map_err(broken)?;
            match (&proto.tensor_value, &proto.sequence_value) {
                (Some(own), _) => tensor(own).map(Stored::Tensor),
                (None, Some(own)) => sequence(own),
                (None, None) => Ok(Stored::Nothing),
            }
        }
    }
}
