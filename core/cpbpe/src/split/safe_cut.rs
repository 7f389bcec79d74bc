//! Where a long text can be cut so that its parts, split by themselves, have the chunks of the whole.

use crate::split::classes::{decode, Classes, BLANK, LETTER, MARK, NUMBER, SPECIAL};

/// The first place from `from` to before `to` that has a letter or a number before it, and after it a blank or a sign that
/// is not an apostrophe (nor a mark).
///
/// In none of the patterns does a match go on from a letter or a number to one of these: words and numbers end there, and
/// contractions, the only thing that can follow a word in a chunk, begin with an apostrophe. So a chunk ends there,
/// whatever is before. And it would end there, too, if the text ended: what the patterns ask about the end of the text
/// (`$` and `(?!\S)`) they ask after whitespace only; and whether uppercase letters are followed by others, where neither
/// the end nor what is there is one.
pub fn safe_cut(classes: &Classes, text: &[u8], from: usize, to: usize) -> Option<usize> {
    let is_inside = |byte: u8| (0x80..0xC0).contains(&byte);
    let mut at = (from..to.min(text.len())).find(|&at| !is_inside(text[at]))?;
    let mut after_word = false;
    while at < to.min(text.len()) {
        let (code, length) = decode(text, at);
        let flags = classes.of(code);
        let ends_word = flags & BLANK != 0 || flags & (LETTER | NUMBER | MARK) == 0 && flags != SPECIAL;
        if after_word && ends_word {
            return Some(at);
        }
        after_word = flags & (LETTER | NUMBER) != 0;
        at += length;
    }
    None
}
