//! The classes of characters that the patterns tell apart.
//!
//! They are asked of `regex-syntax`, which tiktoken's own patterns are compiled with, when a splitter is made (that takes
//! a fifth of a millisecond), so they are of its version of Unicode whatever that is, and no table can be out of date.

use regex_syntax::hir::{Class, HirKind};

use crate::error::Error;
use crate::memory::zeros;

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

/// How many code points four bytes could say, so that none is outside of the table, whatever the bytes are.
const ALL: usize = 1 << 21;

/// The class of each character.
pub struct Classes {
    /// By code point; and three more bytes that can be read. (It is flat because one look-up is faster than two, by 15 %
    /// of the time for text in other languages. Parts that nobody writes or reads take no memory: 200 KB are left.)
    flags: Vec<Flags>,
    /// The same of ASCII.
    pub ascii: [Flags; 128],
}

impl Classes {
    pub fn new() -> Result<Classes, Error> {
        let mut all = zeros::<Flags>(ALL + 3)?;
        for (name, flag) in NAMES {
            for (first, last) in ranges(name)? {
                all[first as usize..=last as usize].fill(flag);
            }
        }
        for (character, flags) in
            [('\r', NEWLINE), ('\n', NEWLINE), (' ', BLANK | SPECIAL), ('\'', SPECIAL), ('/', NEWLINE | SPECIAL)]
        {
            all[character as usize] = flags;
        }
        let mut ascii = [0; 128];
        ascii.copy_from_slice(&all[..128]);
        Ok(Classes { flags: all, ascii })
    }

    /// The class of a code point.
    #[inline(always)]
    pub fn of(&self, code: u32) -> Flags {
        self.flags[code as usize]
    }

    /// The classes of all code points, for instructions that look up many at once.
    pub fn table(&self) -> &[Flags] {
        &self.flags
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
