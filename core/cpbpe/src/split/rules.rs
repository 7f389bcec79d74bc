//! What the published patterns say, as rules, and a scanner that follows them character by character.
//!
//! All of these patterns consist of alternatives of the same kinds, tried in this order: a contraction; a word, with a
//! space or a sign before it; a number; signs, with a space before them; whitespace. They differ in details, which are
//! the constants of `Rules`. None of them looks at what is before a match, and every text begins with a match of one
//! alternative (a letter belongs to a word, a digit to a number, whitespace to whitespace, and anything else to signs).
//! So the chunks cover the text, and the end of a chunk depends only on the text from its beginning on.

use crate::split::block::{Classes, Flags, BLANK, CASELESS, LETTER, LOWER, MARK, NEWLINE, NUMBER, SPECIAL, UPPER};
use crate::text::utf8::decode;

/// What makes a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// ` ?\p{L}+`, and the same for numbers.
    Spaced,
    /// `[^\r\n\p{L}\p{N}]?\p{L}+`.
    Prefixed,
    /// The same with `[\p{L}\p{M}]+`; marks are not signs.
    PrefixedMarks,
    /// Two alternatives: `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` and the same with `+` and `*`, both
    /// after `[^\r\n\p{L}\p{N}]?`.
    Cased,
}

/// Where contractions such as `'s` and `'ll` are matched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contractions {
    None,
    /// The first alternative, in lower case only.
    Lower,
    /// The first alternative, in lower or upper case.
    Front,
    /// At the end of words, in lower or upper case.
    Back,
}

/// The rules of a pattern.
pub trait Rules {
    const WORDS: Words;
    const CONTRACTIONS: Contractions;
    /// How many digits a chunk has at most. Not used with `Words::Spaced`, where a number has no limit (0).
    const DIGITS: usize;
    /// Signs are followed by `[\r\n/]*` instead of `[\r\n]*`.
    const SLASH: bool;
    /// Whitespace at the end of the text is one chunk, whatever it consists of: `\s++$` comes before `\s*[\r\n]`.
    const WHOLE_END: bool;

    /// The classes that words are made of.
    const WORD: Flags = match Self::WORDS {
        Words::Spaced | Words::Prefixed => LETTER,
        Words::PrefixedMarks | Words::Cased => LETTER | MARK,
    };
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: $words:ident, $contractions:ident, $digits:literal, $slash:literal, $whole:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl Rules for $name {
            const WORDS: Words = Words::$words;
            const CONTRACTIONS: Contractions = Contractions::$contractions;
            const DIGITS: usize = $digits;
            const SLASH: bool = $slash;
            const WHOLE_END: bool = $whole;
        }
    )*};
}

rules! {
    /// GPT-2, and tiktoken's r50k_base and p50k_base.
    Gpt2: Spaced, Lower, 0, false, false;
    /// tiktoken's cl100k_base.
    Cl100k: Prefixed, Front, 3, false, true;
    /// Llama 3, and cl100k_base as tiktoken had it before 0.8.
    Llama3: Prefixed, Front, 3, false, false;
    /// Qwen and Qwen 2.
    Qwen2: Prefixed, Front, 1, false, false;
    /// The same with two digits: nanochat.
    Nanochat: Prefixed, Front, 2, false, false;
    /// Qwen 3.5.
    Qwen35: PrefixedMarks, Front, 1, false, false;
    /// tiktoken's o200k_base, and Llama 4.
    O200k: Cased, Back, 3, true, false;
    /// Mistral's tekken.
    Tekken: Cased, None, 1, true, false;
}

/// The classes of characters that alternatives other than signs match.
const fn not_signs<R: Rules>() -> Flags {
    match R::WORDS {
        Words::PrefixedMarks => LETTER | MARK | NUMBER | BLANK,
        _ => LETTER | NUMBER | BLANK,
    }
}

/// A text that is read character by character.
struct Scan<'a> {
    classes: &'a Classes,
    text: &'a [u8],
}

impl Scan<'_> {
    /// The class of the character at a place, and where the next one begins; `None` at the end.
    #[inline(always)]
    fn at(&self, at: usize) -> Option<(Flags, usize)> {
        let byte = *self.text.get(at)?;
        Some(match self.classes.ascii.get(usize::from(byte)) {
            Some(&flags) => (flags, at + 1),
            None => {
                let (code, length) = decode(self.text, at);
                (self.classes.of(code), at + length)
            }
        })
    }

    /// Where a run of characters that are all like this ends.
    #[inline(always)]
    fn run(&self, mut at: usize, like: impl Fn(Flags) -> bool) -> usize {
        while let Some((flags, next)) = self.at(at) {
            if !like(flags) {
                break;
            }
            at = next;
        }
        at
    }
}

/// Whether a character is `\r` or `\n`.
fn is_newline(flags: Flags) -> bool {
    flags == NEWLINE
}

/// Whether a character is `\s`.
fn is_white(flags: Flags) -> bool {
    flags & BLANK != 0 || is_newline(flags)
}

/// How many bytes and how many characters follow the apostrophe of a contraction: `s`, `d`, `m`, `t`, `ll`, `ve` or `re`.
///
/// If case does not matter, U+017F counts as an `s`; no other character outside ASCII is one of these letters.
#[inline(always)]
pub fn contraction<R: Rules>(after: [u8; 2]) -> Option<(usize, usize)> {
    let any_case = !matches!(R::CONTRACTIONS, Contractions::Lower);
    let lower = if any_case { after.map(|byte| byte.to_ascii_lowercase()) } else { after };
    match &lower {
        [b's' | b'd' | b'm' | b't', _] => Some((1, 1)),
        b"ll" | b"ve" | b"re" => Some((2, 2)),
        [0xC5, 0xBF] if any_case => Some((2, 1)),
        _ => None,
    }
}

/// Where the chunk ends that begins at a place before the end of the text. The text is valid UTF-8.
///
/// The time grows with the part of the text that is looked at. That is the chunk, and sometimes more: uppercase letters
/// that turn out to be no word, or whitespace up to the next newline. Then the chunks that follow lie in the part that
/// was looked at, and in all patterns at most three of them look as far again.
pub fn chunk_end<R: Rules>(classes: &Classes, text: &[u8], at: usize) -> usize {
    let scan = Scan { classes, text };
    let Some((flags, after)) = scan.at(at) else { return at };
    let quote = |at: usize| {
        let byte = |i| text.get(at + i).copied().unwrap_or_default();
        let (length, _) = contraction::<R>([byte(1), byte(2)]).filter(|_| byte(0) == b'\'')?;
        Some(at + 1 + length)
    };
    // 1. A contraction.
    if matches!(R::CONTRACTIONS, Contractions::Lower | Contractions::Front) {
        if let Some(end) = quote(at) {
            return end;
        }
    }
    let is_signs = |flags: Flags| flags & not_signs::<R>() == 0 && !is_newline(flags);
    let is_prefix = !is_newline(flags) && flags & (LETTER | NUMBER) == 0;
    // 2. A word. (It is tried with a prefix first. Where that fails, the alternative is tried again without one.)
    match R::WORDS {
        Words::Spaced => {
            let begin = if text[at] == b' ' { after } else { at };
            for kind in [LETTER, NUMBER] {
                let end = scan.run(begin, |flags| flags & kind != 0);
                if end > begin {
                    return end;
                }
            }
        }
        Words::Prefixed | Words::PrefixedMarks => {
            for begin in [if is_prefix { after } else { at }, at] {
                let end = scan.run(begin, |flags| flags & R::WORD != 0);
                if end > begin {
                    return end;
                }
            }
        }
        Words::Cased => {
            let begins = [if is_prefix { after } else { at }, at];
            let word = begins.iter().find_map(|&begin| ending_lower(&scan, begin));
            // (If the first alternative does not match, all that a word could take here is uppercase.)
            let end = word.or_else(|| {
                let ends = begins.iter().map(|&begin| (begin, scan.run(begin, |flags| flags & UPPER != 0)));
                ends.into_iter().find(|(begin, end)| end > begin).map(|(_, end)| end)
            });
            if let Some(end) = end {
                let long = if R::CONTRACTIONS == Contractions::Back { quote(end) } else { None };
                return long.unwrap_or(end);
            }
        }
    }
    // 3. A number.
    if flags & NUMBER != 0 {
        let mut end = after;
        for _ in 1..R::DIGITS {
            match scan.at(end) {
                Some((flags, next)) if flags & NUMBER != 0 => end = next,
                _ => break,
            }
        }
        return end;
    }
    // 4. Signs.
    let begin = if text[at] == b' ' { after } else { at };
    let end = scan.run(begin, is_signs);
    if end > begin {
        // (`NEWLINE | SPECIAL` is the class of the slash.)
        return match R::WORDS {
            Words::Spaced => end,
            _ => scan.run(end, |flags| is_newline(flags) || R::SLASH && flags == NEWLINE | SPECIAL),
        };
    }
    // 5. Whitespace.
    whitespace::<R>(&scan, at)
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`: where it ends, if it matches.
fn ending_lower(scan: &Scan, begin: usize) -> Option<usize> {
    // The first part takes all that it can, and then gives back characters from the end until the second part has one.
    // A caseless character fits both.
    let (mut at, mut last_caseless) = (begin, None);
    while let Some((flags, next)) = scan.at(at).filter(|(flags, _)| flags & (UPPER | CASELESS | MARK) != 0) {
        at = next;
        if flags & UPPER == 0 {
            last_caseless = Some(next);
        }
    }
    match scan.at(at) {
        Some((LOWER, next)) => Some(scan.run(next, |flags| flags & (LOWER | CASELESS | MARK) != 0)),
        _ => last_caseless,
    }
}

/// The end of a chunk of whitespace.
fn whitespace<R: Rules>(scan: &Scan, begin: usize) -> usize {
    let (mut at, mut last, mut line) = (begin, begin, begin);
    while let Some((flags, next)) = scan.at(at).filter(|&(flags, _)| is_white(flags)) {
        (last, at) = (at, next);
        if is_newline(flags) {
            line = next;
        }
    }
    let is_end = at == scan.text.len();
    if is_end && R::WHOLE_END {
        at
    } else if R::WORDS != Words::Spaced && line > begin {
        // `\s*[\r\n]+`: up to and including the last newline.
        line
    } else if is_end || last == begin {
        at
    } else {
        // `\s+(?!\S)`: all but the last character, which is left to what follows.
        last
    }
}
