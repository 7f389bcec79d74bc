//! How much of a text already has its final ids, whatever text may still follow.

use crate::error::Halt;
use crate::split::Splitter;
use crate::text::utf8::{self, character};
use crate::vocab::{Joinable, Vocab};
use crate::watch::{Check, Checks};

/// Whether to go on is checked once in this many bytes.
const CHECK_BYTES: usize = 1 << 14;
/// With a byte-level vocabulary, the search for a cut begins with this many bytes at the end.
const FIRST_PART: usize = 64;

/// The last place in a normalized text that no merge can cross, however the text continues; 0 if there is none. Without
/// user-defined pieces, spaces may also be written as spaces.
pub fn last_cut(vocab: &Vocab, text: &[u8], check: Check) -> Result<usize, Halt> {
    if let Some(byte_level) = &vocab.byte_level {
        return match (&byte_level.splitter, std::str::from_utf8(text)) {
            (Some(splitter), Ok(text)) => last_split(splitter, text, check),
            _ => Ok(0),
        };
    }
    match &vocab.joinable {
        Some(joinable) if std::str::from_utf8(text).is_ok() => {
            if vocab.user_defined.is_empty() {
                backwards(vocab, joinable, text, check)
            } else {
                forwards(vocab, joinable, text, check)
            }
        }
        _ => Ok(0),
    }
}

/// The same for a byte-level vocabulary: where the last chunk begins whose beginning is certain.
fn last_split(splitter: &Splitter, text: &str, check: Check) -> Result<usize, Halt> {
    // The last part of the text that has a cut is found first, and then the last cut in it.
    let mut size = FIRST_PART;
    loop {
        check()?;
        let from = text.len().saturating_sub(size);
        if let Some(mut cut) = splitter.safe_cut(text, from, text.len()) {
            while let Some(next) = splitter.safe_cut(text, cut, text.len()) {
                cut = next;
            }
            return Ok(cut);
        }
        if from == 0 {
            return Ok(0);
        }
        size *= 8;
    }
}

/// A character as the number by which the tables find it. (Where U+2581 stands for spaces, both are one character.)
fn number(vocab: &Vocab, text: &[u8]) -> u32 {
    match text {
        utf8::SPACE if vocab.swapped => character(b" "),
        text => character(text),
    }
}

fn backwards(vocab: &Vocab, joinable: &Joinable, text: &[u8], check: Check) -> Result<usize, Halt> {
    let mut end = text.len();
    let mut after = None;
    let mut checks = Checks::new(check, CHECK_BYTES);
    while end > 0 {
        checks.at(text.len() - end)?;
        let mut begin = end - 1;
        while begin > 0 && text[begin] & 0xC0 == 0x80 {
            begin -= 1;
        }
        let here = number(vocab, &text[begin..end]);
        if after.is_some_and(|after| !joinable.pair(here, after)) {
            return Ok(end);
        }
        after = Some(here);
        end = begin;
    }
    Ok(0)
}

/// The same with user-defined pieces, which are searched for from the left. The search stops where one might begin that
/// goes on after the end of the text.
fn forwards(vocab: &Vocab, joinable: &Joinable, text: &[u8], check: Check) -> Result<usize, Halt> {
    let keys = &vocab.user_defined;
    let stop = (text.len() + 1).saturating_sub(keys.longest_key());
    let mut walk = keys.walk(text);
    let (mut at, mut cut) = (0, 0);
    let mut before = None;
    let mut checks = Checks::new(check, CHECK_BYTES);
    while at < stop {
        checks.at(at)?;
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
    Ok(cut)
}
