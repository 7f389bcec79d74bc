//! Compact text: U+2581, the commonest character of normalized text, is written as a space, one byte instead of three.
//!
//! A normalized text holds no space (each has become U+2581), so nothing is lost. A piece may hold one, so in pieces
//! the two are exchanged.

use crate::text::utf8::SPACE;

/// Append a text with U+2581 and the space exchanged. Doing it twice undoes it.
pub fn swap_spaces(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        // What lies between is copied as a whole. (Byte by byte, this was 4 % of the instructions of training.)
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
    fn swapping_undoes_itself() {
        let text = "a b\u{2581}\u{2582} ".as_bytes();
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        swap_spaces(text, &mut once);
        swap_spaces(&once, &mut twice);
        assert_eq!(once, "a\u{2581}b \u{2582}\u{2581}".as_bytes());
        assert_eq!(twice, text);
    }

    #[test]
    fn the_literal_is_a_space() {
        let mut text = "\u{2581}a\u{2581}\u{2582}".as_bytes().to_vec();
        make_compact(&mut text);
        assert_eq!(text, " a \u{2582}".as_bytes());
    }
}
