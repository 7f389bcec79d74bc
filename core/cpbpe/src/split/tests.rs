//! Compares the scanners with `fancy-regex`, which tiktoken uses.

use std::collections::HashMap;

use fancy_regex::Regex;

#[cfg(target_arch = "x86_64")]
use crate::machine::Vector;
use crate::machine::BLOCK;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::machine::{Half, Plain, MORE};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::split::block::{Block, Read};
use crate::split::block::{Classes, BLANK, CASELESS, LOWER, MARK, NEWLINE, NUMBER, SPECIAL, UPPER};
use crate::split::rules::*;
use crate::split::scanner::{Ends, Scanner, Scans, PATTERNS};
use crate::split::splitter::RegexMatches;
use crate::split::{Batch, Splitter};

/// Several characters of each kind that patterns can distinguish, of all lengths in UTF-8, and some that look similar.
const CHARACTERS: &[char] = &[
    'a',
    's',
    't',
    'l',
    'v',
    'e',
    'r',
    'S',
    'T',
    'L',
    'V',
    'E',
    'R',
    'm',
    'd',
    'x',
    'A',
    'Z',
    'k',
    'K',
    '0',
    '7',
    ' ',
    ' ',
    ' ',
    '\n',
    '\n',
    '\r',
    '\t',
    '\u{b}',
    '\u{c}',
    '\u{1c}',
    '\u{1f}',
    '\0',
    '\u{7f}',
    '\'',
    '\'',
    '\'',
    '/',
    '/',
    '!',
    '.',
    '_',
    '-',
    '\u{85}',
    '\u{a0}',
    '\u{17f}',
    '\u{212a}',
    'é',
    'É',
    'ǅ',
    'ʰ',
    'я',
    'Я',
    'א',
    '漢',
    '字',
    'ー',
    '々',
    '〇',
    '한',
    'ก',
    '\u{301}',
    '\u{93e}',
    '\u{20e3}',
    '\u{fe0f}',
    '٣',
    '²',
    'Ⅷ',
    '½',
    '\u{2003}',
    '\u{2028}',
    '\u{3000}',
    '\u{180e}',
    '\u{200b}',
    '\u{200d}',
    '\u{feff}',
    '’',
    '。',
    '…',
    '\u{378}',
    '\u{fffe}',
    '\u{10ffff}',
    '𝒳',
    '𝓍',
    '𐍈',
    '😀',
    '𝟗',
    '\u{1d165}',
    '\u{e0100}',
    '\u{f0000}',
];

/// How many texts each test makes: `CPBPE_EXAMPLES`, or the usual number.
fn examples(usual: usize) -> usize {
    std::env::var("CPBPE_EXAMPLES").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// Random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// A text of up to `most` characters, of a few kinds, with runs of the same kind.
    fn text(&mut self, most: usize) -> String {
        let kinds: Vec<char> = (0..1 + self.below(9)).map(|_| CHARACTERS[self.below(CHARACTERS.len())]).collect();
        let (mut text, length) = (String::new(), self.below(most + 1));
        while text.chars().count() < length {
            let character = kinds[self.below(kinds.len())];
            let run = [1, 1, 1, 1, 2, 3, 5, 17][self.below(8)];
            text.extend(std::iter::repeat_n(character, run));
        }
        text
    }
}

/// The ends of all matches.
fn ends_of(regex: &Regex, text: &str) -> Vec<usize> {
    let (mut matches, mut ends, mut last) = (RegexMatches::of(regex, text), Vec::new(), 0);
    while let Some([begin, end]) = matches.next().unwrap() {
        assert_eq!(begin, last, "a gap: {text:?}");
        ends.push(end);
        last = end;
    }
    assert_eq!(last, text.len(), "a gap at the end: {text:?}");
    ends
}

/// The ends of the chunks as each implementation finds them.
fn scanned(scanner: &Scanner, scans: Scans, text: &str) -> Vec<Vec<usize>> {
    let (text, classes) = (text.as_bytes(), &scanner.classes);
    let slow = std::iter::successors(Some(0), |&at| (at < text.len()).then(|| (scans.chunk_end)(classes, text, at)));
    let by = |scan: &dyn Fn(usize, &mut Ends) -> usize| {
        let (mut at, mut all) = (0, Vec::new());
        let mut ends = Ends::default();
        while at < text.len() {
            let next = scan(at, &mut ends);
            all.extend(ends.numbers[..ends.count].iter().map(|&end| at + end as usize));
            assert_eq!(all.last(), Some(&next));
            at = next;
        }
        all
    };
    let plain = by(&|at, ends| (scans.plain)(scanner, text, at, ends));
    vec![slow.skip(1).collect(), plain, by(&|at, ends| scanner.scan(text, at, ends))]
}

fn check(scanner: &Scanner, pattern: &str, scans: Scans, regex: &Regex, text: &str) {
    let (all, expected) = (scanned(scanner, scans, text), ends_of(regex, text));
    for (way, found) in ["character by character", "in blocks", "on this machine"].iter().zip(all) {
        assert_eq!(found, expected, "{way}: {text:?} by {pattern}");
    }
}

/// Check each pattern: its scanner against the meaning of the pattern.
fn for_each_pattern(mut check: impl FnMut(&dyn Fn(&str))) {
    for &(pattern, scans) in PATTERNS {
        let scanner = Scanner::new(scans).unwrap();
        let regex = Regex::new(pattern).unwrap();
        check(&|text| self::check(&scanner, pattern, scans, &regex, text));
    }
}

#[test]
fn texts_by_chance() {
    let mut chance = Chance(1);
    for_each_pattern(|check| {
        for round in 0..examples(500) {
            check(&chance.text([6, 30, 90, 300][round % 4]));
        }
    });
}

/// All texts of up to three characters, by themselves and at the ends of blocks.
#[test]
fn short_texts() {
    let kinds = ['a', 'S', '漢', '\u{301}', '7', ' ', '\u{a0}', '\n', '\'', '/', '!', 'ſ'];
    let mut texts = vec![String::new()];
    for length in 1..=3 {
        let longer = texts.iter().filter(|text| text.chars().count() == length - 1);
        let longer: Vec<String> = longer.flat_map(|text| kinds.map(|kind| format!("{text}{kind}"))).collect();
        texts.extend(longer);
    }
    for_each_pattern(|check| {
        for text in &texts {
            check(text);
            check(&format!("{text}x"));
        }
        for (i, text) in texts.iter().enumerate().filter(|(i, _)| i % 7 == 0) {
            for before in BLOCK - 4..BLOCK + 2 {
                check(&format!("{}{text}{}", "ab ".repeat(30).get(..before).unwrap(), ["", " x", "Bc"][i % 3]));
            }
        }
    });
}

/// The class of each code point is that of the patterns.
#[test]
fn classes_of_all_characters() {
    let classes = Classes::new().unwrap();
    let named = [
        (r"[\p{Lu}\p{Lt}]", UPPER),
        (r"\p{Ll}", LOWER),
        (r"[\p{Lm}\p{Lo}]", CASELESS),
        (r"\p{M}", MARK),
        (r"\p{N}", NUMBER),
        (r"[^\S\r\n]", BLANK),
        (r"[\r\n/]", NEWLINE),
        (r"[ '/]", SPECIAL),
    ];
    let all: String = ('\0'..=char::MAX).collect();
    let mut expected = vec![0; 0x11_0000];
    for (pattern, flag) in named {
        for found in Regex::new(pattern).unwrap().find_iter(&all) {
            expected[found.unwrap().as_str().chars().next().unwrap() as usize] |= flag;
        }
    }
    for character in '\0'..=char::MAX {
        assert_eq!(classes.of(u32::from(character)), expected[character as usize], "{character:?}");
    }
}

/// Which of all characters are letters of contractions such as `(?i:'s)`.
#[test]
fn contractions_of_all_characters() {
    for ends in ["a", "E"] {
        for begins in ["'", "'v", "'L"] {
            let all = ('\0'..=char::MAX).map(|character| format!("{begins}{character}{ends}\n"));
            let (texts, mut at): (Vec<String>, usize) = (all.collect(), 0);
            let text = texts.concat();
            let matches = |pattern: &str| -> HashMap<usize, usize> {
                let regex = Regex::new(pattern).unwrap();
                let found = regex.find_iter(&text).map(|found| found.unwrap().range());
                found.map(|found| (found.start, found.len() - 1)).collect()
            };
            let any_case = matches(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)");
            let lower = matches(r"'s|'t|'re|'ve|'m|'ll|'d");
            for one in &texts {
                let after = [one.as_bytes()[1], one.as_bytes()[2]];
                assert_eq!(contraction::<Cl100k>(after).map(|(bytes, _)| bytes), any_case.get(&at).copied(), "{one:?}");
                assert_eq!(contraction::<Gpt2>(after).map(|(bytes, _)| bytes), lower.get(&at).copied(), "{one:?}");
                at += one.len();
            }
        }
    }
}

/// All machines read the same from all characters, at all places.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn machines_read_the_same() {
    if let Some(half) = Half::detect() {
        reads_the_same(half);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(vector) = Vector::detect() {
        reads_the_same(vector);
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn reads_the_same(machine: impl Read) {
    let classes = Classes::new().unwrap();
    let all: Vec<char> = ('\0'..=char::MAX)
        .filter(|character| u32::from(*character) < 0x3000 || u32::from(*character) % 7 == 0)
        .collect();
    for (round, part) in all.chunks(23).enumerate() {
        let mut text = "x".repeat(round % 4);
        for (i, &character) in part.iter().enumerate() {
            text.push(character);
            text.push_str(["", "é", "漢", "😀", "z"][(i + round) % 5]);
        }
        text.push_str(&"-".repeat(BLOCK + MORE));
        for at in (0..text.len() - BLOCK - MORE).filter(|&at| text.is_char_boundary(at)).step_by(5) {
            let bytes = text.as_bytes()[at..].first_chunk().unwrap();
            let (plain, vector) = (Plain.read(&classes, bytes), machine.read(&classes, bytes));
            assert_eq!(plain.count(), vector.count());
            for flag in (0..8).map(|bit| 1 << bit) {
                assert_eq!(plain.any(flag), vector.any(flag));
            }
            for byte in [0, 1, 31, 63] {
                assert_eq!(plain.before(byte), vector.before(byte));
            }
            let [mut one, mut other] = [[0; BLOCK]; 2];
            let bits = u64::MAX >> (BLOCK - plain.count());
            let count = plain.append(bits, 77, &mut one);
            assert_eq!(vector.append(bits, 77, &mut other), count);
            assert_eq!(one[..count], other[..count]);
            assert_eq!([0, count - 1].map(|i| plain.place(i)), [0, count - 1].map(|i| vector.place(i)));
        }
    }
}

/// The time for a long text of one kind of character grows only with its length; otherwise this test would not end.
#[test]
fn long_repetitive_texts() {
    let size = 100 * examples(2_000);
    for unit in [
        "a", "A", "漢", "漢A", " ", "\n", "\n ", " \n", "'", "''s", "'s", "!", "!\n/", "1", "\u{301}", "!\u{301}",
        "A\u{301}", "a'",
    ] {
        let text = unit.repeat(size / unit.len());
        for text in [text.clone(), format!("{text}x"), format!("\n{text}."), format!("!{text}")] {
            for &(pattern, _) in PATTERNS {
                let splitter = Splitter::of(pattern).unwrap();
                let (mut chunks, mut batch, mut end) = (splitter.chunks(&text), Batch::default(), 0);
                while chunks.next(&mut batch).unwrap() {
                    for span in batch.spans() {
                        assert!(span[0] == end && span[1] > end);
                        end = span[1];
                    }
                }
                assert_eq!(end, text.len());
            }
        }
    }
}

#[test]
fn any_pattern() {
    let spans = |pattern: &str, text: &str| {
        let splitter = Splitter::of(pattern)?;
        let (mut chunks, mut batch, mut all) = (splitter.chunks(text), Batch::default(), Vec::new());
        while chunks.next(&mut batch)? {
            all.extend(batch.spans());
        }
        Ok::<_, crate::Error>(all)
    };
    assert_eq!(spans(r"\w+", "ab  c"), Ok(vec![[0, 2], [4, 5]]));
    assert_eq!(spans(r"(?<=a)b*|x?", "abbx"), Ok(vec![[1, 3], [3, 4]]));
    assert_eq!(spans(r"(?<=a|bc)\w", "abcd"), Ok(vec![[1, 2], [3, 4]]));
    let many = spans("a", &"a-".repeat(10_000)).unwrap();
    assert!(many.len() == 10_000 && many[9_999] == [19_998, 19_999]);
    for invalid in ["(", r"(a\g<0>?\g<0>?)+", r"\g0", r"(?<b>a)\g<b>"] {
        assert!(matches!(spans(invalid, "a"), Err(crate::Error::InvalidPattern(_))), "{invalid}");
    }
    assert!(matches!(spans(r"(?i)(a|b|ab)*(?>c)", &"ab".repeat(100)), Err(crate::Error::SplitFailed(_))));
}

/// The parts of a text that is cut have the same chunks as the whole text.
#[test]
fn cuts_are_safe() {
    let mut chance = Chance(2);
    let splitters: Vec<_> =
        PATTERNS.iter().map(|&(pattern, _)| (Regex::new(pattern).unwrap(), Splitter::of(pattern).unwrap())).collect();
    let (mut count, examples) = (0, examples(2_000));
    for _ in 0..examples {
        let text = chance.text(60);
        let from = chance.below(text.len() + 1);
        for (regex, splitter) in &splitters {
            if let Some(cut) = splitter.safe_cut(&text, from, text.len()) {
                assert!(cut >= from);
                let after = ends_of(regex, &text[cut..]).into_iter().map(|end| cut + end);
                let parts: Vec<usize> = ends_of(regex, &text[..cut]).into_iter().chain(after).collect();
                assert_eq!(parts, ends_of(regex, &text), "{text:?} at {cut}");
                count += 1;
            }
        }
    }
    assert!(count > examples);
    assert_eq!(splitters[0].1.safe_cut(&"a".repeat(1000), 0, 1000), None);
    assert_eq!(splitters[0].1.safe_cut("so what", 0, 7), Some(2));
}

/// Two repeats of the same, with something optional between them, need two of it.
#[test]
fn equal_repeats_stay_apart() {
    let chunks = |pattern: &str, text: &str| {
        let (splitter, mut batch, mut all) = (Splitter::of(pattern).unwrap(), Batch::default(), Vec::new());
        let mut chunks = splitter.chunks(text);
        while chunks.next(&mut batch).unwrap() {
            all.extend(batch.spans().map(|[begin, end]| text[begin..end].to_string()));
        }
        all
    };
    for pattern in ["a+b?a+", "a+b*a+", "(?:a+)b?(?:a+)", "a{1,}b?a{1,}", r"\p{L}+'?\p{L}+", r"[a\]]+\x{62}?[a\]]+"] {
        assert!(chunks(pattern, "a").is_empty(), "{pattern}");
        assert_eq!(chunks(pattern, "aa"), ["aa"], "{pattern}");
    }
    assert_eq!(chunks("[]+]+b?[]+]+|[^]a]", "]](a+]?"), ["]]", "(", "+]", "?"]);
    assert_eq!(chunks(r"a{2}|[+}{]+|a++\+?|b+?b{1,2}?x", "aaa+{}bbx+"), ["aa", "a+", "{}", "bbx", "+"]);
}
