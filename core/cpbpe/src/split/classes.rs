//! The classes of characters that the patterns tell apart.
//!
//! They are asked of `regex-syntax`, which tiktoken's own patterns are compiled with, when a splitter is made (a
//! quarter of a millisecond), so they are of its version of Unicode whatever that is, and no table can be out of date.

use regex_syntax::hir::{Class, HirKind};

use crate::error::Error;

/// The class of a character: some of these bits, or none for signs and all that has no class of its own.
pub type Flags = u8;

/// `\p{Lu}` and `\p{Lt}`.
pub const UPPER: Flags = 1;
/// `\p{Ll}`.
pub const LOWER: Flags = 1 << 1;
/// `\p{Lm}` and `\p{Lo}`.
pub const CASELESS: Flags = 1 << 2;
/// `\p{M}`, which are not letters.
pub const MARK: Flags = 1 << 3;
/// `\p{N}`.
pub const NUMBER: Flags = 1 << 4;
/// `\s`, except `\r` and `\n`.
pub const BLANK: Flags = 1 << 5;
/// `\r` and `\n`; with `SPECIAL` the slash, which is a sign that some patterns take with them.
pub const NEWLINE: Flags = 1 << 6;
/// With `BLANK` the space, with `NEWLINE` the slash, and alone the apostrophe.
pub const SPECIAL: Flags = 1 << 7;

/// `\p{L}`.
pub const LETTER: Flags = UPPER | LOWER | CASELESS;

/// What `regex-syntax` calls them. Each character is in one of these at most.
const NAMES: [(&str, Flags); 6] = [
    (r"[\p{Lu}\p{Lt}]", UPPER),
    (r"\p{Ll}", LOWER),
    (r"[\p{Lm}\p{Lo}]", CASELESS),
    (r"\p{M}", MARK),
    (r"\p{N}", NUMBER),
    (r"\s", BLANK),
];

/// Code points share tables of this many.
const PART: usize = 64;
/// How many parts there are: of all that four bytes could say, so that none is outside, whatever the bytes are.
const PARTS: usize = (1 << 21) / PART;

/// The class of each character, by its code point.
pub struct Classes {
    /// Where the part of 64 code points begins in `tables`. (One more number can be read.)
    parts: Vec<u16>,
    /// The classes of 64 code points each; parts that are alike, such as those of all Chinese characters, are one.
    /// (Three more bytes can be read.)
    tables: Vec<Flags>,
    /// The same of ASCII.
    pub ascii: [Flags; 128],
}

impl Classes {
    pub fn new() -> Result<Classes, Error> {
        let mut flat = vec![0; PART * PARTS];
        for (name, flag) in NAMES {
            for (first, last) in ranges(name)? {
                flat[first as usize..=last as usize].fill(flag);
            }
        }
        for (character, flags) in
            [('\r', NEWLINE), ('\n', NEWLINE), (' ', BLANK | SPECIAL), ('\'', SPECIAL), ('/', NEWLINE | SPECIAL)]
        {
            flat[character as usize] = flags;
        }
        let mut ascii = [0; 128];
        ascii.copy_from_slice(&flat[..128]);
        let (mut parts, mut tables) = (Vec::with_capacity(PARTS + 1), Vec::<Flags>::new());
        let mut known = std::collections::HashMap::new();
        for part in flat.chunks_exact(PART) {
            let at = *known.entry(part).or_insert_with(|| {
                tables.extend_from_slice(part);
                tables.len() - PART
            });
            // (There are a few hundred different ones, of 1,024 that can be numbered.)
            parts.push(u16::try_from(at).map_err(|_| Error::OutOfMemory)?);
        }
        parts.push(0);
        tables.extend([0; 3]);
        Ok(Classes { parts, tables, ascii })
    }

    /// The class of a code point.
    #[inline(always)]
    pub fn of(&self, code: u32) -> Flags {
        let part = usize::from(self.parts[code as usize / PART]);
        self.tables[part + code as usize % PART]
    }

    /// The tables, for instructions that look up many at once.
    pub fn tables(&self) -> (&[u16], &[Flags]) {
        (&self.parts, &self.tables)
    }
}

/// The ranges of code points of a class.
fn ranges(name: &str) -> Result<Vec<(char, char)>, Error> {
    let invalid = || Error::InvalidPattern(format!("the class {name} is unknown").into());
    let parsed = regex_syntax::parse(name).map_err(|_| invalid())?;
    match parsed.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Ok(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
        }
        _ => Err(invalid()),
    }
}

/// The code point of the character that begins at a place of valid UTF-8, and how many bytes it has.
#[inline(always)]
pub fn decode(text: &[u8], at: usize) -> (u32, usize) {
    let byte = |i: usize| u32::from(text.get(at + i).copied().unwrap_or_default());
    let more = |i: usize| byte(i) & 0x3F;
    match byte(0) {
        one @ 0..=0x7F => (one, 1),
        two @ 0x80..=0xDF => ((two & 0x1F) << 6 | more(1), 2),
        three @ 0xE0..=0xEF => ((three & 0xF) << 12 | more(1) << 6 | more(2), 3),
        four => ((four & 7) << 18 | more(1) << 12 | more(2) << 6 | more(3), 4),
    }
}
