//! Encoding in the most literal way: of all pairs of neighbours that make a piece, the one with the highest score is
//! merged, and of several the left one, again and again. It shares nothing with the crate but the look-up of pieces and
//! the normalized text, so that the crate's merging can be compared with it. It takes quadratic time.

use std::collections::HashMap;
use std::ops::Range;

use cpbpe::{Batch, Engine, Splitter};

const NORMAL: u8 = 1;
const USER_DEFINED: u8 = 4;
const UNUSED: u8 = 5;
/// The types of pieces that merging can make.
const MERGEABLE: [u8; 3] = [NORMAL, USER_DEFINED, UNUSED];
/// How often an UNUSED piece is taken apart, and its parts again.
const MAX_DEPTH: u32 = 100;
/// How many bytes a character has whose first byte has these four bits in front.
const LENGTHS: [usize; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4];

/// A model, and what is asked of it again and again.
pub struct Literal<'a> {
    engine: &'a Engine,
    byte_fallback: bool,
    user_defined: Vec<Vec<u8>>,
    /// For a byte-level model: its patterns, if it has any, and whether chunks that are pieces are taken whole.
    byte_level: Option<(Option<Splitter>, bool)>,
}

impl<'a> Literal<'a> {
    pub fn new(engine: &'a Engine) -> Literal<'a> {
        let ids = 0..engine.size() as u32;
        let head = engine.head();
        let byte_level = head.byte_level.map(|options| {
            // (In brackets a pattern is not recognized as a published one, so a regular expression finds its chunks.)
            let bracketed = |pattern: &String| format!("(?:{pattern})");
            let then: Vec<String> = options.then.iter().map(bracketed).collect();
            let splitter = Splitter::of_all(&bracketed(&options.pattern), &then);
            (Some(splitter.unwrap()).filter(|_| !options.pattern.is_empty()), options.whole)
        });
        Literal {
            engine,
            byte_fallback: head.byte_fallback,
            user_defined: ids.filter(|&id| engine.kind(id) == USER_DEFINED).map(|id| engine.piece(id)).collect(),
            byte_level,
        }
    }

    /// The ids of a text.
    pub fn encoded(&self, text: &[u8]) -> Vec<u32> {
        let normalized = self.engine.origins_slowly(text).unwrap().0;
        match &self.byte_level {
            Some((splitter, whole)) => self.by_chunks(&normalized, splitter.as_ref(), *whole),
            None => self.with_unknown(&self.merged(&normalized, self.characters(&normalized))),
        }
    }

    /// The piece that merging can make of this text.
    fn mergeable(&self, text: &[u8]) -> Option<u32> {
        self.engine.find(text).filter(|&id| MERGEABLE.contains(&self.engine.kind(id)))
    }

    fn by_chunks(&self, text: &[u8], splitter: Option<&Splitter>, whole: bool) -> Vec<u32> {
        let mut chunks = vec![text];
        if let Some(splitter) = splitter {
            let (mut found, mut batch) = (splitter.cover_bytes(text).unwrap(), Batch::default());
            chunks.clear();
            while found.next(&mut batch).unwrap() {
                chunks.extend(batch.spans().map(|[begin, end]| &text[begin..end]));
            }
        }
        let ids_of = |chunk: &[u8]| match self.mergeable(chunk).filter(|_| whole) {
            Some(id) => vec![id],
            None => {
                let bytes = (0..chunk.len()).map(|at| (at..at + 1, false)).collect();
                self.merged(chunk, bytes).into_iter().map(|(_, id)| id.unwrap()).collect()
            }
        };
        chunks.into_iter().flat_map(ids_of).collect()
    }

    /// The symbols that a text begins as, and whether each is a user-defined piece, which never merges.
    fn characters(&self, text: &[u8]) -> Vec<(Range<usize>, bool)> {
        let (mut symbols, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let key = self.user_defined.iter().filter(|key| text[at..].starts_with(key)).map(Vec::len).max();
            let end = text.len().min(at + key.unwrap_or(LENGTHS[usize::from(text[at] >> 4)]));
            symbols.push((at..end, key.is_some()));
            at = end;
        }
        symbols
    }

    /// The symbols that remain of those that a text begins as, and their ids, if they are known.
    fn merged<'t>(&self, text: &'t [u8], mut symbols: Vec<(Range<usize>, bool)>) -> Vec<(&'t [u8], Option<u32>)> {
        let mut borders: HashMap<&[u8], usize> = HashMap::new(); // where the halves of each UNUSED piece meet
        loop {
            let mut best: Option<(f32, usize)> = None;
            for at in 1..symbols.len() {
                let [(left, false), (right, false)] = &symbols[at - 1..=at] else { continue };
                let both = &text[left.start..right.end];
                let Some(id) = self.mergeable(both) else { continue };
                if self.engine.kind(id) == UNUSED {
                    borders.insert(both, left.len());
                }
                let score = self.engine.score(id);
                // (By their bits, as in sentencepiece: -0.0 is below 0.0, and NaN has a place.)
                if best.is_none_or(|(highest, _)| score.total_cmp(&highest).is_gt()) {
                    best = Some((score, at));
                }
            }
            let Some((_, at)) = best else { break };
            symbols[at - 1].0.end = symbols[at].0.end;
            symbols.remove(at);
        }
        // UNUSED pieces are taken apart again. (sentencepiece stops at a depth of 100.)
        let mut waiting: Vec<(&[u8], u32)> = symbols.into_iter().rev().map(|(span, _)| (&text[span], 0)).collect();
        let mut parts = Vec::new();
        while let Some((symbol, depth)) = waiting.pop() {
            let id = self.engine.find(symbol);
            match borders.get(symbol).filter(|_| depth <= MAX_DEPTH) {
                Some(&border) => waiting.extend([(&symbol[border..], depth + 1), (&symbol[..border], depth + 1)]),
                None if depth > MAX_DEPTH => parts.push((symbol, id)),
                None => parts.push((symbol, id.filter(|&id| [NORMAL, USER_DEFINED].contains(&self.engine.kind(id))))),
            }
        }
        parts
    }

    /// The ids of symbols. Unknown ones become bytes, or one token for each run of them.
    fn with_unknown(&self, symbols: &[(&[u8], Option<u32>)]) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut after_unknown = false;
        for &(symbol, id) in symbols {
            match id {
                Some(id) => ids.push(id),
                None if self.byte_fallback => {
                    let byte_id = |byte: &u8| self.engine.find(format!("<0x{byte:02X}>").as_bytes()).unwrap();
                    ids.extend(symbol.iter().map(byte_id));
                }
                None if after_unknown => {}
                None => ids.push(self.engine.unknown().unwrap_or(0)),
            }
            after_unknown = id.is_none();
        }
        ids
    }
}
