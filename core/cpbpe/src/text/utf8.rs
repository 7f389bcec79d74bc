//! Characters as bytes, in the two ways of sentencepiece: by the first byte alone, or strictly.

use crate::error::Halt;
use crate::memory::Grow;

/// U+2581, which stands for a space.
pub const SPACE: &[u8] = "\u{2581}".as_bytes();
/// U+FFFD, which replaces a byte that belongs to no character.
pub const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// Whether a byte continues a character.
#[inline(always)]
pub fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// How many bytes a character takes, by the upper half of its first byte.
pub const LENGTHS: [u8; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4];

/// How many bytes a character takes according to its first byte.
#[inline]
pub fn length_by_first(byte: u8) -> usize {
    LENGTHS[usize::from(byte >> 4)] as usize
}

/// How many bytes the character at `at` takes according to its first byte, but no more than are left.
#[inline]
pub fn length_at(text: &[u8], at: usize) -> usize {
    length_by_first(text[at]).min(text.len() - at)
}

/// The length of the valid character at `at`; 0 if there is none.
#[inline]
pub fn valid_length(text: &[u8], at: usize) -> usize {
    let length = length_by_first(text[at]);
    if text[at] < 0x80 {
        return 1;
    }
    match text.get(at..at + length) {
        Some(bytes) if std::str::from_utf8(bytes).is_ok() => length,
        _ => 0,
    }
}

/// The character at `at` of a text that is UTF-8, which is not checked again; `None` at the end of the text.
#[inline]
pub fn character_at(text: &[u8], at: usize) -> Option<char> {
    if at < text.len() {
        char::from_u32(decode(text, at).0)
    } else {
        None
    }
}

/// The code point of the character at a place of valid UTF-8, and how many bytes it has.
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

/// The bytes of one character as a number. If there are more than four bytes, the first four count.
pub const fn character(bytes: &[u8]) -> u32 {
    let (mut value, mut i) = (0, 0);
    while i < bytes.len() && i < 4 {
        value |= (bytes[i] as u32) << (8 * i);
        i += 1;
    }
    value
}

/// How many characters a text has. The text is UTF-8.
pub fn count(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

/// The same for the first `size` bytes of eight: most tokens are shorter, and this takes no loop.
#[inline]
pub fn count_first(bytes: [u8; 8], size: usize) -> usize {
    let word = u64::from_le_bytes(bytes);
    // The highest bit of each byte that continues a character, which begins with 10.
    let inside = word & !(word << 1) & 0x8080_8080_8080_8080;
    let rest = inside.checked_shl(64 - 8 * size as u32).unwrap_or(0);
    size - rest.count_ones() as usize
}

/// Append `text` with a space for each U+2581. The text does not become longer, and callers make room for it.
pub fn spaces_into(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = 0;
    for space in memchr::memmem::find_iter(text, SPACE) {
        out.extend_from_slice(&text[rest..space]);
        out.push(b' ');
        rest = space + SPACE.len();
    }
    out.extend_from_slice(&text[rest..]);
}

/// Append `text` with U+FFFD for each byte that belongs to no character.
pub fn repair_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), Halt> {
    out.grow(text.len())?;
    if std::str::from_utf8(text).is_ok() {
        out.extend_from_slice(text);
        return Ok(());
    }
    let mut at = 0;
    while at < text.len() {
        match valid_length(text, at) {
            0 => {
                out.try_extend(REPLACEMENT)?;
                at += 1;
            }
            length => {
                out.try_extend(&text[at..at + length])?;
                at += length;
            }
        }
    }
    Ok(())
}

/// Replace what is not UTF-8 from `begin` on. A truncated character becomes one U+FFFD, and so does each byte that can
/// begin none, as with Python's errors="replace" and in the libraries of byte-level models. (`repair_into` writes one
/// for every byte.)
pub fn repair_like_python(text: &mut Vec<u8>, begin: usize) -> Result<(), Halt> {
    if std::str::from_utf8(&text[begin..]).is_ok() {
        return Ok(());
    }
    let mut repaired: Vec<u8> = Vec::new();
    repaired.grow(text.len() - begin + REPLACEMENT.len())?;
    for part in text[begin..].utf8_chunks() {
        repaired.try_extend(part.valid().as_bytes())?;
        repaired.try_extend(if part.invalid().is_empty() { b"" } else { REPLACEMENT })?;
    }
    text.truncate(begin);
    text.try_extend(&repaired)
}

// --- Compact text --------------------------------------------------------------------------------
//
// In compact text, U+2581, the most common character of normalized text, is written as a space: one byte instead of
// three.
//
// Normalized text has no spaces (each has become U+2581), so nothing is lost. A piece may contain a space, so in pieces
// the two characters are exchanged.

/// Append a text with U+2581 and the space exchanged. Doing it again undoes it.
pub fn swap_spaces(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        // Everything between two of these characters is copied at once. (Copying byte by byte took 4 % of the
        // instructions of training.)
        let between = rest.iter().position(|&byte| byte == b' ' || byte == SPACE[0]).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..between]);
        rest = &rest[between..];
        let Some(&first) = rest.first() else { return };
        if first == b' ' {
            out.extend_from_slice(SPACE);
            rest = &rest[1..];
        } else if let Some(after) = rest.strip_prefix(SPACE) {
            out.push(b' ');
            rest = after;
        } else {
            out.push(first);
            rest = &rest[1..];
        }
    }
}

/// Make a normalized text compact.
pub fn make_compact(text: &mut Vec<u8>) {
    let Some(first) = memchr::memmem::find(text, SPACE) else { return };
    let (mut from, mut to) = (first, first);
    while from < text.len() {
        let space = text[from..].starts_with(SPACE);
        text[to] = if space { b' ' } else { text[from] };
        to += 1;
        from += if space { SPACE.len() } else { 1 };
    }
    text.truncate(to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_decoded() {
        for character in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            assert_eq!(character_at(character.encode_utf8(&mut bytes).as_bytes(), 0), Some(character));
        }
        assert_eq!(character_at("é".as_bytes(), 2), None);
    }

    #[test]
    fn characters_of_eight_bytes_are_counted_alike() {
        let text = "a\u{e9}\u{65e5}\u{1f999}b\u{7f}\u{80}ccc\u{2581}dddddddd".as_bytes();
        for bytes in text.windows(8) {
            for size in 0..=8 {
                assert_eq!(count_first(bytes.try_into().unwrap(), size), count(&bytes[..size]));
            }
        }
    }

    #[test]
    fn one_replacement_for_each_bad_byte() {
        let mut out = Vec::new();
        repair_into(b"a\xe2\x96!\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches('\u{FFFD}').count(), 2 + 2 + 3 + 4);
    }

    #[test]
    fn swapping_undoes_itself() {
        let text = "a b\u{2581}\u{2582} ".as_bytes();
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        swap_spaces(text, &mut once);
        swap_spaces(&once, &mut twice);
        assert_eq!(once, "a\u{2581}b \u{2582}\u{2581}".as_bytes());
        assert_eq!(twice, text);
    }

    #[test]
    fn compact_text_has_a_space_for_each_u2581() {
        let mut text = "\u{2581}a\u{2581}\u{2582}".as_bytes().to_vec();
        make_compact(&mut text);
        assert_eq!(text, " a \u{2582}".as_bytes());
    }
}
