//! Tensor subclasses, which `torch.export.save` stores as pickles: a reader that executes nothing.
//!
//! Python's pickles are programs that call what they name. Here a call stays what is written: a name and operands. Of all
//! that a pickle can say, what describes the plain tensors inside of a subclass is understood; the rest is refused
//! by name. Knows nothing of any subclass.

use crate::dtype::DType;
use crate::float8::Float8;
use bytes::Bytes;
use indexmap::IndexMap;

/// Longer pickles describe more than a tensor.
const MOST_BYTES: usize = 1 << 20;

/// A value of a pickle; values that it is made of are numbers of others.
enum Node {
    None,
    Flag,
    Int(i64),
    Text(String),
    Tuple(Vec<usize>),
    List(Vec<usize>),
    Dict(Vec<(usize, usize)>),
    Global(String),
    /// What Python would call, with the number of a tuple of operands.
    Call(usize, usize),
    /// What lies beside the pickle.
    Stored(usize),
}

/// A plain tensor inside of a subclass.
pub(super) struct Inner {
    /// The attribute that holds it.
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) offset: i64,
    pub(super) data: Bytes,
}

/// The plain tensors inside of a subclass that `torch.save` wrote; `entries` are the archive's.
pub(super) fn inner_tensors(entries: &IndexMap<String, Bytes>) -> Result<Vec<Inner>, String> {
    let (nodes, root) = nodes(entries)?;
    Reader { nodes: &nodes, entries }.subclass(root)
}

/// The tensors inside of tuples, lists and dictionaries that `torch.save` wrote, in their order.
pub(super) fn tensors(entries: &IndexMap<String, Bytes>) -> Result<Vec<Inner>, String> {
    let (nodes, root) = nodes(entries)?;
    let mut found = Vec::new();
    Reader { nodes: &nodes, entries }.leaves(root, 0, &mut found)?;
    Ok(found)
}

fn nodes(entries: &IndexMap<String, Bytes>) -> Result<(Vec<Node>, usize), String> {
    let pickle = entries.get("data.pkl").ok_or("it has no `data.pkl`")?;
    if pickle.len() > MOST_BYTES {
        return Err(format!("its pickle has {} bytes", pickle.len()));
    }
    if entries.get("byteorder").is_some_and(|order| order.as_ref() != b"little") {
        return Err("its byte order is not `little`".to_owned());
    }
    let mut machine =
        Machine { text: pickle, at: 0, nodes: vec![], stack: vec![], marks: vec![], memo: IndexMap::new() };
    let root = machine.run()?;
    Ok((machine.nodes, root))
}

/// Reads a pickle into nodes.
struct Machine<'p> {
    text: &'p [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<usize>,
    /// Lengths of the stack.
    marks: Vec<usize>,
    memo: IndexMap<u32, usize>,
}

impl<'p> Machine<'p> {
    fn take(&mut self, count: usize) -> Result<&'p [u8], String> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.text.len());
        let bytes = end.map(|end| &self.text[self.at..end]).ok_or("its pickle ends early")?;
        self.at += count;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn word(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?.try_into().expect("four bytes");
        Ok(u32::from_le_bytes(bytes))
    }

    fn line(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').ok_or("its pickle ends early")?;
        let line = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Ok(line)
    }

    fn push(&mut self, node: Node) {
        self.nodes.push(node);
        self.stack.push(self.nodes.len() - 1);
    }

    fn pop(&mut self) -> Result<usize, String> {
        let least = self.marks.last().copied().unwrap_or(0);
        let has = self.stack.len() > least;
        has.then(|| self.stack.pop()).flatten().ok_or_else(|| "its pickle is malformed".to_owned())
    }

    /// Everything since the last mark.
    fn marked(&mut self) -> Result<Vec<usize>, String> {
        let start = self.marks.pop().ok_or("its pickle is malformed")?;
        Ok(self.stack.split_off(start))
    }

    fn tuple(&mut self, count: usize) -> Result<(), String> {
        let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        items.reverse();
        self.push(Node::Tuple(items));
        Ok(())
    }

    /// The value that is being filled.
    fn open(&mut self) -> Result<&mut Node, String> {
        let top = self.pop()?;
        self.stack.push(top);
        Ok(&mut self.nodes[top])
    }

    fn append(&mut self, items: Vec<usize>) -> Result<(), String> {
        let Node::List(list) = self.open()? else { return Err("its pickle is malformed".to_owned()) };
        list.extend(items);
        Ok(())
    }

    fn set(&mut self, items: &[usize]) -> Result<(), String> {
        let Node::Dict(entries) = self.open()? else { return Err("its pickle is malformed".to_owned()) };
        entries.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
        Ok(())
    }

    fn run(&mut self) -> Result<usize, String> {
        loop {
            let code = self.byte()?;
            if code == b'.' {
                return self.pop();
            }
            self.step(code)?;
        }
    }

    fn step(&mut self, code: u8) -> Result<(), String> {
        match code {
            0x80 => drop(self.byte()?),
            b'c' => {
                let name = format!("{}.{}", self.line()?, self.line()?);
                self.push(Node::Global(name));
            }
            b'q' | b'r' => {
                let place = if code == b'q' { u32::from(self.byte()?) } else { self.word()? };
                let top = self.pop()?;
                self.stack.push(top);
                self.memo.insert(place, top);
            }
            b'h' | b'j' => {
                let place = if code == b'h' { u32::from(self.byte()?) } else { self.word()? };
                let value = self.memo.get(&place).copied().ok_or("its pickle is malformed")?;
                self.stack.push(value);
            }
            b'(' => self.marks.push(self.stack.len()),
            b't' => {
                let items = self.marked()?;
                self.push(Node::Tuple(items));
            }
            b')' => self.push(Node::Tuple(vec![])),
            0x85..=0x87 => self.tuple(usize::from(code - 0x84))?,
            b']' => self.push(Node::List(vec![])),
            b'}' => self.push(Node::Dict(vec![])),
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.marked()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.marked()?;
                self.set(&items)?;
            }
            b'X' => {
                let length = self.word()? as usize;
                let text = String::from_utf8_lossy(self.take(length)?).into_owned();
                self.push(Node::Text(text));
            }
            _ => return self.number_or_call(code),
        }
        Ok(())
    }

    fn number_or_call(&mut self, code: u8) -> Result<(), String> {
        match code {
            b'N' => self.push(Node::None),
            0x88 | 0x89 => self.push(Node::Flag),
            b'K' => {
                let value = i64::from(self.byte()?);
                self.push(Node::Int(value));
            }
            b'M' => {
                let bytes = self.take(2)?.try_into().expect("two bytes");
                self.push(Node::Int(i64::from(u16::from_le_bytes(bytes))));
            }
            b'J' => {
                let value = self.word()?.cast_signed();
                self.push(Node::Int(i64::from(value)));
            }
            0x8a => {
                let length = usize::from(self.byte()?);
                let bytes = self.take(length)?;
                let fill = if bytes.last().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
                let mut wide = [fill; 8];
                wide.get_mut(..length).ok_or("it holds a number beyond 64 bits")?.copy_from_slice(bytes);
                self.push(Node::Int(i64::from_le_bytes(wide)));
            }
            // A floating-point number says nothing of a tensor.
            b'G' => {
                self.take(8)?;
                self.push(Node::None);
            }
            b'R' | 0x81 => {
                let (operands, function) = (self.pop()?, self.pop()?);
                self.push(Node::Call(function, operands));
            }
            // The state of an object that is no tensor.
            b'b' => drop(self.pop()?),
            b'Q' => {
                let value = self.pop()?;
                self.push(Node::Stored(value));
            }
            other => return Err(format!("its pickle has the instruction {other:#04x}")),
        }
        Ok(())
    }
}

/// Finds tensors among nodes.
struct Reader<'n> {
    nodes: &'n [Node],
    entries: &'n IndexMap<String, Bytes>,
}

impl<'n> Reader<'n> {
    /// What is called by a name, and with what.
    fn call(&self, at: usize) -> Option<(&'n str, &'n [usize])> {
        let Node::Call(function, operands) = &self.nodes[at] else { return None };
        let (Node::Global(name), Node::Tuple(operands)) = (&self.nodes[*function], &self.nodes[*operands])
        else {
            return None;
        };
        Some((name, operands))
    }

    fn text(&self, at: usize) -> Option<&'n str> {
        let Node::Text(text) = &self.nodes[at] else { return None };
        Some(text)
    }

    fn int(&self, at: usize) -> Option<i64> {
        let Node::Int(value) = &self.nodes[at] else { return None };
        Some(*value)
    }

    fn ints(&self, at: usize) -> Option<Vec<i64>> {
        let Node::Tuple(items) = &self.nodes[at] else { return None };
        items.iter().map(|item| self.int(*item)).collect()
    }

    fn subclass(&self, root: usize) -> Result<Vec<Inner>, String> {
        let Some(("torch._tensor._rebuild_from_type_v2", [_, _, _, state])) = self.call(root) else {
            return Err("it is no tensor subclass".to_owned());
        };
        let Node::Dict(attributes) = &self.nodes[*state] else {
            return Err("its attributes are no dictionary".to_owned());
        };
        let mut found = Vec::new();
        for (key, value) in attributes {
            if let Some(name) = self.text(*key)
                && let Some((function, operands)) = self.call(*value)
                && function.starts_with("torch._utils._rebuild_tensor")
            {
                found.push(self.tensor(name, operands).ok_or_else(|| {
                    format!("the tensor `{name}` inside of it is of an unsupported element type or layout")
                })?);
            }
        }
        Ok(found)
    }

    /// Nodes may refer to each other in circles, and one may stand in many places.
    fn leaves(&self, at: usize, depth: usize, found: &mut Vec<Inner>) -> Result<(), String> {
        const DEEPEST: usize = 16;
        const MOST: usize = 4096;
        if depth > DEEPEST || found.len() > MOST {
            return Err("its pickle nests too deep".to_owned());
        }
        match &self.nodes[at] {
            Node::Tuple(items) | Node::List(items) => {
                items.iter().try_for_each(|item| self.leaves(*item, depth + 1, found))
            }
            Node::Dict(entries) => {
                entries.iter().try_for_each(|(_, value)| self.leaves(*value, depth + 1, found))
            }
            Node::None | Node::Flag | Node::Int(_) | Node::Text(_) => Ok(()),
            Node::Global(_) | Node::Stored(_) | Node::Call(..) => {
                let (function, operands) = self.call(at).ok_or("it holds an object")?;
                let plain = function.starts_with("torch._utils._rebuild_tensor").then_some(operands);
                found.push(plain.and_then(|own| self.tensor("", own)).ok_or("it holds an object")?);
                Ok(())
            }
        }
    }

    fn tensor(&self, name: &str, operands: &[usize]) -> Option<Inner> {
        let [storage, offset, sizes, strides, ..] = operands else { return None };
        let Node::Stored(storage) = &self.nodes[*storage] else { return None };
        let Node::Tuple(storage) = &self.nodes[*storage] else { return None };
        let [kind, class, key, ..] = storage.as_slice() else { return None };
        let Node::Global(class) = &self.nodes[*class] else { return None };
        let dtype = match class.as_str() {
            // A class of storages for each type ended with those that were there first; since then the tensor has it.
            "torch.storage.UntypedStorage" => {
                let Node::Global(name) = &self.nodes[*operands.get(6)?] else { return None };
                named_element(name)
            }
            class => element(class),
        };
        let data = self.entries.get(&format!("data/{}", self.text(*key)?))?;
        (self.text(*kind)? == "storage").then_some(())?;
        Some(Inner {
            name: name.to_owned(),
            dtype: dtype?,
            sizes: self.ints(*sizes)?,
            strides: self.ints(*strides)?,
            offset: self.int(*offset)?,
            data: data.clone(),
        })
    }
}

/// The element type of a class of storages.
fn element(class: &str) -> Option<DType> {
    Some(match class {
        "torch.BoolStorage" => DType::Bool,
        "torch.ByteStorage" => DType::U8,
        "torch.CharStorage" => DType::I8,
        "torch.ShortStorage" => DType::I16,
        "torch.IntStorage" => DType::I32,
        "torch.LongStorage" => DType::I64,
        "torch.HalfStorage" => DType::F16,
        "torch.BFloat16Storage" => DType::Bf16,
        "torch.FloatStorage" => DType::F32,
        "torch.DoubleStorage" => DType::F64,
        _ => return None,
    })
}

/// The element type of PyTorch's name, where there is no class of storages for it.
fn named_element(name: &str) -> Option<DType> {
    Some(match name {
        "torch.uint16" => DType::U16,
        "torch.uint32" => DType::U32,
        "torch.uint64" => DType::U64,
        "torch.float8_e4m3fn" => DType::F8(Float8::E4M3Fn),
        "torch.float8_e5m2" => DType::F8(Float8::E5M2),
        "torch.float8_e4m3fnuz" => DType::F8(Float8::E4M3Fnuz),
        "torch.float8_e5m2fnuz" => DType::F8(Float8::E5M2Fnuz),
        "torch.float8_e8m0fnu" => DType::F8(Float8::E8M0Fnu),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_rebuild_from_type_v2(f, t, (), {"q": _rebuild_tensor_v2(storage "0" of int8, 1, (2,), (1,))})`.
    const PICKLE: &[u8] = b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cf\ng\ncm\nT\n)}X\x01\0\0\0qctorch._utils\n\
        _rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nCharStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x03tQK\x01K\x02\x85K\x01\x85tRstR.";

    fn entries(pickle: &[u8]) -> IndexMap<String, Bytes> {
        let data = [("data.pkl", pickle), ("data/0", &[1, 2, 3][..])];
        data.into_iter().map(|(name, data)| (name.to_owned(), Bytes::copy_from_slice(data))).collect()
    }

    #[test]
    fn plain_tensors_inside_of_subclasses_are_found() {
        let found = inner_tensors(&entries(PICKLE)).unwrap();
        let [inner] = found.as_slice() else { panic!("{} tensors", found.len()) };
        assert_eq!((inner.name.as_str(), inner.dtype, inner.offset), ("q", DType::I8, 1));
        assert_eq!((inner.sizes.as_slice(), inner.strides.as_slice()), (&[2][..], &[1][..]));
        assert_eq!(&inner.data[..], [1, 2, 3]);
    }

    /// As `PICKLE`, with `_rebuild_tensor_v3(untyped storage "0", 1, (2,), (1,), False, {}, float8_e5m2)`.
    #[test]
    fn tensors_whose_types_have_no_storages_of_their_own_are_found() {
        let pickle = b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cf\ng\ncm\nT\n)}X\x01\0\0\0qctorch._utils\n\
            _rebuild_tensor_v3\n((X\x07\0\0\0storagectorch.storage\nUntypedStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x03tQ\
            K\x01K\x02\x85K\x01\x85\x89}ctorch\nfloat8_e5m2\ntRstR.";
        let found = inner_tensors(&entries(pickle)).unwrap();
        assert_eq!((found.len(), found[0].dtype, found[0].offset), (1, DType::F8(Float8::E5M2), 1));
    }

    #[test]
    fn any_other_pickle_is_refused() {
        for end in 0..PICKLE.len() {
            assert!(inner_tensors(&entries(&PICKLE[..end])).is_err(), "{end}");
        }
        for (at, code) in (0..PICKLE.len()).flat_map(|at| (0..=255u8).map(move |code| (at, code))) {
            let mut pickle = PICKLE.to_vec();
            pickle[at] = code;
            // Whatever it says, it is read or refused.
            drop(inner_tensors(&entries(&pickle)));
        }
        assert!(inner_tensors(&entries(b"cos\nsystem\nX\x02\0\0\0ls\x85R.")).is_err());
    }
}
