//! The longest key at every place of a text, for texts where searching each place by itself takes too long: if keys
//! begin alike and the text looks like their beginning everywhere, thousands of bytes are read at each place.
//!
//! An automaton (Aho and Corasick's) reads the text from its end to its beginning, and each key from its last byte to
//! its first. Its state at a place is the longest part of the text from there on that some key ends with; so the
//! longest key that is a beginning of this part is the longest key at the place. It is known in advance for every
//! state, and every byte of the text is read once.

use std::collections::HashMap;

/// Keys that need more states than this get none: 12 bytes for each, and as many again while they are made. (16,000
/// keys of 20 bytes need 320,000 at most.)
const MAX_STATES: usize = 1 << 22;

/// The state in which nothing is known of the text.
const ROOT: u32 = 0;

/// What a byte leads to from a state.
#[derive(Clone, Copy, Default)]
struct State {
    /// The state to continue from if the next byte leads nowhere: the longest of the shorter parts.
    shorter: u32,
    /// The length of the longest key that the part begins with.
    longest: u32,
    /// The byte that leads here.
    head: u8,
    /// Whether this state's head leads here from the state before, in their order.
    follows: bool,
    /// Whether there are more states to go to from here, in `Backwards::others`.
    branches: bool,
}

/// The automaton. Each state is followed by one that it leads to, if there is any: most states have no other.
pub struct Backwards {
    states: Vec<State>,
    /// Where else a byte leads from a state.
    others: HashMap<(u32, u8), u32>,
}

impl Backwards {
    /// About how many bytes of memory it takes to build one for keys of this many bytes.
    pub fn memory(bytes: usize) -> usize {
        bytes.min(MAX_STATES) * 48 + bytes * 2
    }

    /// The automaton for keys that are written one after the other. `None` if it is too large.
    pub fn new(mut blob: Vec<u8>, ends: &[usize]) -> Option<Backwards> {
        // 1. Turn all keys around and sort them.
        let mut keys: Vec<std::ops::Range<usize>> = Vec::with_capacity(ends.len());
        let mut begin = 0;
        for &end in ends {
            blob[begin..end].reverse();
            keys.push(begin..end);
            begin = end;
        }
        keys.sort_unstable_by(|a, b| blob[a.clone()].cmp(&blob[b.clone()]));
        let keys: Vec<&[u8]> = keys.into_iter().map(|key| &blob[key]).collect();
        let common = |i: usize| if i == 0 { 0 } else { crate::text::common::common_length(keys[i - 1], keys[i]) };
        let count = 1 + (0..keys.len()).map(|i| keys[i].len() - common(i)).sum::<usize>();
        if count > MAX_STATES {
            return None;
        }
        // 2. A state for every beginning of a key, in the order of the keys.
        let mut states = Vec::with_capacity(count);
        states.push(State::default());
        let mut others = HashMap::new();
        let mut above = vec![ROOT]; // for each state the one before it on its path
        let mut path = vec![ROOT];
        for (i, key) in keys.iter().enumerate() {
            let same = common(i);
            path.truncate(same + 1);
            for &head in &key[same..] {
                let (from, new) = (path[path.len() - 1], states.len() as u32);
                let follows = from + 1 == new;
                if !follows {
                    others.insert((from, head), new);
                    states[from as usize].branches = true;
                }
                states.push(State { head, follows, ..State::default() });
                above.push(from);
                path.push(new);
            }
            states[path[key.len()] as usize].longest = key.len() as u32;
        }
        let mut automaton = Backwards { states, others };
        automaton.link(&above);
        Some(automaton)
    }

    /// Find for every state the longest of the shorter parts. States with shorter paths come first, because that of a
    /// state is found by way of that of the state above it.
    fn link(&mut self, above: &[u32]) {
        let count = self.states.len();
        let mut depths = vec![0u32; count];
        for at in 1..count {
            depths[at] = depths[above[at] as usize] + 1;
        }
        let mut order: Vec<u32> = (1..count as u32).collect();
        order.sort_by_key(|&at| depths[at as usize]);
        for at in order {
            let State { head, longest, .. } = self.states[at as usize];
            let from = above[at as usize];
            let shorter = if from == ROOT { ROOT } else { self.next(self.states[from as usize].shorter, head) };
            self.states[at as usize].shorter = shorter;
            if longest == 0 {
                // What the part begins with, the shorter part at the same place begins with.
                self.states[at as usize].longest = self.states[shorter as usize].longest;
            }
        }
    }

    /// The state after one more byte, the one before those already read.
    #[inline]
    fn next(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            let state = &self.states[at as usize];
            if let Some(next) = self.states.get(at as usize + 1) {
                if next.head == byte && next.follows {
                    return at + 1;
                }
            }
            if state.branches {
                if let Some(&next) = self.others.get(&(at, byte)) {
                    return next;
                }
            }
            if at == ROOT {
                return ROOT;
            }
            at = state.shorter;
        }
    }

    /// The length of the longest key at each of the first `count` places of a text. No key is longer than what follows
    /// them.
    pub fn longest(&self, text: &[u8], count: usize, lengths: &mut Vec<u32>) {
        lengths.clear();
        lengths.resize(count, 0);
        let mut at = ROOT;
        for place in (0..text.len()).rev() {
            at = self.next(at, text[place]);
            if let Some(length) = lengths.get_mut(place) {
                *length = self.states[at as usize].longest;
            }
        }
    }
}
