//! Reads of WebAssembly modules what they import, export and define: sections of imports and exports, and of objects the table
//! of symbols (tool conventions, "Linking"). Input may be damaged.

/// What a module has to do with others.
#[derive(Default)]
pub(super) struct Module {
    /// Whether it has a table of symbols: it is linked with others.
    pub(super) is_object: bool,
    pub(super) imported: Vec<String>,
    pub(super) exported: Vec<String>,
    /// Global symbols of an object, and whether they are hidden.
    pub(super) defined: Vec<(String, bool)>,
    pub(super) undefined: Vec<String>,
}

/// Parts of a module.
const CUSTOM: u8 = 0;
const IMPORTS: u8 = 2;
const EXPORTS: u8 = 7;
/// Of the section "linking": the table of symbols.
const SYMBOLS: u8 = 8;
/// Kinds of symbols.
const DATA: u8 = 1;
const SECTION: u8 = 3;
/// Flags of symbols.
const LOCAL: u64 = 0x02;
const HIDDEN: u64 = 0x04;
const UNDEFINED: u64 = 0x10;
const NAMED: u64 = 0x40;

pub(super) const MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// The bytes that have not been read. What is not there is none.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number in LEB128.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    fn name(&mut self) -> Option<String> {
        let count = self.number()?;
        Some(String::from_utf8_lossy(self.bytes(count)?).into_owned())
    }

    fn limits(&mut self) -> Option<()> {
        let flags = self.number()?;
        self.number()?;
        if flags & 1 != 0 {
            self.number()?;
        }
        Some(())
    }
}

/// A module, or nothing where it is damaged.
pub(super) fn read(bytes: &[u8]) -> Option<Module> {
    let mut rest = Reader(bytes.strip_prefix(MAGIC)?);
    let mut module = Module::default();
    let mut functions = Vec::new();
    while let Some(kind) = rest.byte() {
        let count = rest.number()?;
        let mut section = Reader(rest.bytes(count)?);
        match kind {
            IMPORTS => imports(&mut section, &mut module, &mut functions)?,
            EXPORTS => {
                for _ in 0..section.number()? {
                    module.exported.push(section.name()?);
                    section.byte()?;
                    section.number()?;
                }
            }
            CUSTOM if section.name()? == "linking" => {
                module.is_object = true;
                section.number()?; // version
                while let Some(kind) = section.byte() {
                    let count = section.number()?;
                    let mut part = Reader(section.bytes(count)?);
                    if kind == SYMBOLS {
                        symbols(&mut part, &mut module, &functions)?;
                    }
                }
            }
            _ => {}
        }
    }
    Some(module)
}

/// Symbols of imports may have no names of their own: `others` has those of imports of each kind.
fn imports(section: &mut Reader<'_>, module: &mut Module, others: &mut Vec<(u8, String)>) -> Option<()> {
    for _ in 0..section.number()? {
        section.name()?;
        let (name, kind) = (section.name()?, section.byte()?);
        match kind {
            0 => {
                section.number()?;
            }
            1 => {
                section.byte()?;
                section.limits()?;
            }
            2 => section.limits()?,
            3 | 4 => {
                let _ = (section.byte()?, section.number()?);
            }
            _ => return None,
        }
        module.imported.push(name.clone());
        others.push((kind, name));
    }
    Some(())
}

fn symbols(part: &mut Reader<'_>, module: &mut Module, imports: &[(u8, String)]) -> Option<()> {
    for _ in 0..part.number()? {
        let (kind, flags) = (part.byte()?, part.number()?);
        let is_undefined = flags & UNDEFINED != 0;
        let name = match kind {
            DATA => {
                let name = part.name()?;
                if !is_undefined {
                    let _ = (part.number()?, part.number()?, part.number()?);
                }
                name
            }
            SECTION => {
                part.number()?;
                continue;
            }
            _ => {
                let index = usize::try_from(part.number()?).ok()?;
                if !is_undefined || flags & NAMED != 0 {
                    part.name()?
                } else {
                    // Kinds of symbols for functions, globals, tags and tables, as imports number them.
                    let of = match kind {
                        0 => 0,
                        2 => 3,
                        4 => 4,
                        5 => 1,
                        _ => return None,
                    };
                    imports.iter().filter(|(kind, _)| *kind == of).nth(index)?.1.clone()
                }
            }
        };
        if is_undefined {
            module.undefined.push(name);
        } else if flags & LOCAL == 0 {
            module.defined.push((name, flags & HIDDEN != 0));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section or a part of one.
    fn part(kind: u8, content: &[u8]) -> Vec<u8> {
        [&[kind, u8::try_from(content.len()).unwrap()], content].concat()
    }

    #[test]
    fn an_object_has_imports_and_symbols() {
        // Imports: memory `m`, function `f` of type 0. Symbols: `f` undefined by its import, data `w` undefined, function `g`
        // hidden, data `l` local.
        let imports = part(IMPORTS, b"\x02\x03env\x01m\x02\x00\x01\x03env\x01f\x00\x00");
        let table = b"\x04\x00\x10\x00\x01\x10\x01w\x00\x04\x01\x01g\x01\x02\x01l\x00\x00\x04";
        let linking = part(CUSTOM, &[b"\x07linking\x02".as_slice(), &part(SYMBOLS, table)].concat());
        let bytes = [MAGIC, &imports, &linking].concat();
        let module = read(&bytes).unwrap();
        assert!(module.is_object);
        assert_eq!(module.imported, ["m", "f"]);
        assert_eq!(module.undefined, ["f", "w"]);
        assert_eq!(module.defined, [("g".to_owned(), true)]);
        for end in MAGIC.len() + 1..bytes.len() {
            // What ends inside of a section is damaged.
            assert!(end == MAGIC.len() + imports.len() || read(&bytes[..end]).is_none(), "{end}");
        }
    }
}
