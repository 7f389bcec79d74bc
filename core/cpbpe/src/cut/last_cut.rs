//! How much of a text has its final ids already, whatever follows.

use crate::text::utf8::{self, character};
use crate::vocab::{Joinable, Vocab};

/// The last place in a normalized text, as it is in the model file, that no merge crosses, however the text goes on; 0 if
/// there is none.
pub fn last_cut(vocab: &Vocab, text: &[u8]) -> usize {
    match &vocab.joinable {
        Some(joinable) if std::str::from_utf8(text).is_ok() => {
            if vocab.user_defined.is_empty() {
                backwards(vocab, joinable, text)
            } else {
                forwards(vocab, joinable, text)
            }
        }
        _ => 0,
    }
}

/// A character as the tables have it.
fn number(vocab: &Vocab, text: &[u8]) -> u32 {
    match text {
        b" " if vocab.swapped => character(utf8::SPACE),
        utf8::SPACE if vocab.swapped => character(b" "),
        text => character(text),
    }
}

fn backwards(vocab: &Vocab, joinable: &Joinable, text: &[u8]) -> usize {
    let mut end = text.len();
    let mut after = None;
    while end > 0 {
        let mut begin = end - 1;
        while begin > 0 && text[begin] & 0xC0 == 0x80 {
            begin -= 1;
        }
        let here = number(vocab, &text[begin..end]);
        if after.is_some_and(|after| !joinable.pair(here, after)) {
            return end;
        }
        after = Some(here);
        end = begin;
    }
    0
}

/// With user-defined pieces, which are looked for from the left. The search stops where one might begin that goes on after
/// the end of the text.
fn forwards(vocab: &Vocab, joinable: &Joinable, text: &[u8]) -> usize {
    let keys = &vocab.user_defined;
    let stop = (text.len() + 1).saturating_sub(keys.longest_key());
    let mut walk = keys.walk(text);
    let (mut at, mut cut) = (0, 0);
    let mut before = None;
    while at < stop {
        let length = walk.longest(at);
        if length > 0 {
            (cut, before) = (at, None);
            at += length;
            continue;
        }
        let end = at + utf8::length_at(text, at);
        let here = number(vocab, &text[at..end]);
        if before.is_none_or(|before| !joinable.pair(before, here)) {
            cut = at;
        }
        (at, before) = (end, Some(here));
    }
    cut
}
