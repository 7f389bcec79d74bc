//! Where chunks begin in a block, computed for all its characters at once.
//!
//! The block begins where a chunk does, so what is before it does not matter. Bit i stands for the character i; `p << 1`
//! is "after a p", `p >> 1` is "before a p". The result has a bit for each place after the first where a chunk begins and
//! what is known suffices to say so: the characters of the block, and the few bytes of a contraction. What it does not
//! suffice for is always after the last of these bits, so the chunks up to there are complete:
//!
//! * Whether the last character begins a chunk: whitespace does if no other follows.
//! * Whether blanks after a newline begin one: only if no other newline follows. If they reach the end of the block,
//!   nothing after them begins a chunk.
//! * Whether uppercase letters after caseless ones begin one: only if no other kind of letter follows. Here the same is
//!   true.
//! * What marks after signs are, see `usable`. The block is made to end there.

use crate::split::block::{Bytes, Read};
use crate::split::classes::{BLANK, LOWER, MARK, NEWLINE, NUMBER, SPECIAL, UPPER};
use crate::split::rules::{contraction, Contractions, Rules, Words};

/// The classes that all patterns tell apart.
#[derive(Clone, Copy)]
struct Kinds {
    /// The characters of the block.
    valid: u64,
    /// What words are made of.
    word: u64,
    number: u64,
    /// `\s`, except newlines.
    blank: u64,
    newline: u64,
    /// All others.
    sign: u64,
    /// The space, the apostrophe and the slash, of these.
    space: u64,
    quote: u64,
    slash: u64,
}

/// Those bits of `of` that are in a row with one of `from`, which is in `of`, or after it.
#[inline(always)]
fn flood(from: u64, of: u64) -> u64 {
    // The first of `from` in a row clears it from there on, and carries into the bit after it; another one sets only its
    // own bit again.
    ((from.wrapping_add(of) ^ of) | from) & of
}

/// Where chunks begin. `is_end`: the text ends after `count` characters of the block.
#[inline(always)]
pub fn borders<R: Rules, B: Read>(block: &B, bytes: &Bytes, count: usize, is_end: bool) -> u64 {
    let special = block.any(SPECIAL);
    let kinds = {
        let valid = u64::MAX >> (64 - count);
        // (One by one: a closure that is called by a function of arrays is not compiled for this machine.)
        let (blank, word, number) = (block.any(BLANK) & valid, block.any(R::WORD) & valid, block.any(NUMBER) & valid);
        let lines = block.any(NEWLINE) & valid;
        let (newline, slash) = (lines & !special, lines & special);
        let sign = valid & !(word | number | blank | newline);
        let (space, quote) = (blank & special, sign & special & !slash);
        Kinds { valid, word, number, blank, newline, sign, space, quote, slash }
    };
    let contraction = |quote: usize| {
        let byte = block.place(quote);
        contraction::<R>([bytes[byte + 1], bytes[byte + 2]]).map_or(0, |(_, characters)| characters)
    };
    let borders = match R::WORDS {
        Words::Spaced => spaced(kinds, contraction),
        Words::Prefixed | Words::PrefixedMarks => {
            let (mut borders, signs) = prefixed::<R>(kinds, is_end);
            // A contraction is a chunk of its own; what is left of its word begins the next.
            for quote in each(kinds.quote & signs & kinds.word >> 1) {
                let length = contraction(quote);
                if length > 0 {
                    borders |= kinds.word & bit(quote + 1 + length);
                }
            }
            borders
        }
        Words::Cased => {
            let (borders, _) = prefixed::<R>(kinds, is_end);
            let cases = [block.any(UPPER) & kinds.valid, block.any(LOWER) & kinds.valid];
            cased::<R>(kinds, cases, borders, is_end, count, contraction)
        }
    };
    borders & !1
}

/// How many of the first `count` characters of a block can be used, at least one.
///
/// A mark after a sign belongs to the sign's word if the sign is the first of its chunk, and is one of the signs
/// otherwise. Both are so rare that blocks end before such marks.
#[inline(always)]
pub fn usable<R: Rules, B: Read>(block: &B, count: usize) -> usize {
    if R::WORDS != Words::Cased {
        return count;
    }
    let marks = block.any(MARK);
    if marks == 0 {
        return count;
    }
    let sign = !(block.any(R::WORD | NUMBER | BLANK) | block.any(NEWLINE) & !block.any(SPECIAL));
    ((marks & sign << 1).trailing_zeros() as usize).min(count)
}

/// The bit of a character, if there is one.
#[inline(always)]
fn bit(character: usize) -> u64 {
    1u64.checked_shl(character as u32).unwrap_or(0)
}

/// The bits before a character.
#[inline(always)]
fn below(character: usize) -> u64 {
    bit(character).wrapping_sub(1)
}

/// The numbers of bits that are set.
#[inline(always)]
fn each(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.checked_sub(1).map(|_| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(first)
    })
}

/// GPT-2.
#[inline(always)]
fn spaced(kinds: Kinds, contraction: impl Fn(usize) -> usize) -> u64 {
    let Kinds { valid, word, number, sign, .. } = kinds;
    let white = kinds.blank | kinds.newline;
    // Where the kind changes, except that a space belongs to what is after it.
    let first = |kind: u64| kind & !((kind | kinds.space) << 1);
    let (words, signs) = (first(word), first(sign));
    // Of whitespace, the last character begins a chunk unless the text ends.
    let spaces = white & !(white << 1) | white & !(white >> 1) & valid >> 1;
    let mut borders = words | first(number) | signs | spaces;
    // An apostrophe is a chunk without the word after it, and a contraction one with it; what is left is the next.
    for quote in each(kinds.quote & signs & word >> 1) {
        let length = contraction(quote);
        if length > 0 {
            borders = borders & !bit(quote + 1) | word & bit(quote + 1 + length);
        }
    }
    borders
}

/// cl100k_base and those like it. Also returns where signs begin chunks.
#[inline(always)]
fn prefixed<R: Rules>(kinds: Kinds, is_end: bool) -> (u64, u64) {
    let Kinds { valid, word, number, blank, newline, sign, .. } = kinds;
    let white = blank | newline;
    // 1. Newlines after signs belong to them (and so do slashes after these newlines, in some patterns).
    let ending = if R::SLASH { newline | kinds.slash } else { newline };
    let taken = flood(newline & sign << 1, ending);
    let after_taken = taken << 1 & !taken & valid;
    // 2. Signs, with a space before them.
    let signs = sign & !taken & (!(sign << 1) | taken << 1) & !(kinds.space << 1);
    // 3. Words. A blank before them begins a chunk, as the last one of whitespace. A sign belongs to the word if it is
    // the first of its chunk, and so the only one.
    let words = word & !((word | blank | signs) << 1);
    // 4. Numbers, a few digits at a time.
    let mut numbers = number & !(number << 1);
    if R::DIGITS == 1 {
        numbers = number;
    } else {
        // Digits with as many before them, in one row.
        let more = (0..R::DIGITS).fold(number, |more, i| more & number << (i + 1));
        let mut last = numbers;
        loop {
            last = last << R::DIGITS & more;
            if last == 0 {
                break;
            }
            numbers |= last;
        }
    }
    // 5. Whitespace: where it begins, and the last character, which is left to what follows.
    let spaces = white & !(white << 1) & !taken | blank & !(white >> 1) & valid >> 1;
    // And after its last newline.
    let lines = blank & newline << 1;
    // (The blanks at the end of the block may go on.)
    let open = (blank | !valid).leading_ones();
    let closed = if is_end && !R::WHOLE_END { u64::MAX } else { u64::MAX.checked_shr(open).unwrap_or(0) };
    let lines = if newline & blank << 1 == 0 { lines & closed } else { last_lines(lines & closed, blank, newline) };
    (signs | words | numbers | spaces | lines | after_taken, signs)
}

/// Those of the first blanks of rows that no newline follows.
#[inline(always)]
fn last_lines(lines: u64, blank: u64, newline: u64) -> u64 {
    // Adding a row's first bit clears the row, and sets the bit after it.
    each(lines)
        .filter(|&line| blank.wrapping_add(bit(line)) & newline & !blank == 0)
        .fold(0, |last, line| last | bit(line))
}

/// o200k_base and tekken: what they do in words, besides.
#[inline(always)]
fn cased<R: Rules>(
    kinds: Kinds,
    [upper, lower]: [u64; 2],
    mut borders: u64,
    is_end: bool,
    count: usize,
    contraction: impl Fn(usize) -> usize,
) -> u64 {
    // 1. An uppercase letter after a lowercase one begins a chunk.
    borders |= upper & lower << 1;
    // 2. A contraction belongs to the word before it. What follows is another chunk, and if that begins with an
    // apostrophe, the letters before it are not a word that it could belong to.
    if R::CONTRACTIONS == Contractions::Back {
        let mut end = 0;
        for quote in each(kinds.quote & kinds.word << 1) {
            let length = contraction(quote);
            if length > 0 && quote != end {
                end = quote + 1 + length;
                borders = borders & (below(quote) | !below(end)) | bit(end) & kinds.valid;
            }
        }
    }
    // 3. An uppercase letter after a caseless one.
    let caseless = kinds.word & !(upper | lower);
    for at in each(upper & caseless << 1 & !borders) {
        // The chunk has a lowercase letter already, so this one ends it; or
        let others = !caseless & below(at);
        let before = 63 - (others | 1).leading_zeros() as usize;
        let is_lower = others & lower & bit(before) != 0 && borders & below(at) & !below(before + 1) == 0;
        // the chunk has none, and will have none: then it ends with its last caseless letter.
        let next = at + (upper >> at).trailing_ones() as usize;
        let is_last = if next < count { kinds.word & bit(next) == 0 } else { is_end };
        if is_lower || is_last {
            borders |= bit(at);
        }
    }
    borders
}
