//! What one merge changes around it: how many pairs it replaces, added up for each neighbour.

use crate::train::occurrences::Occurrences;
use crate::train::pairs::{PairNumber, SymbolNumber};

/// A merge: which pair is merged, and which symbol it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Merge {
    /// The number of the pair.
    pub number: PairNumber,
    /// Its first symbol.
    pub left: SymbolNumber,
    /// Its second symbol.
    pub right: SymbolNumber,
    /// The symbol that replaces them.
    pub new: SymbolNumber,
}

/// Occurrences by symbol: an array, and a list of the symbols that have any.
#[derive(Default)]
pub struct SymbolOccurrences {
    /// The occurrences of each symbol, by its number.
    occurrences: Vec<Occurrences>,
    /// The symbols that have occurrences, in no particular order.
    seen: Vec<SymbolNumber>,
}

impl SymbolOccurrences {
    /// Add occurrences of a symbol.
    #[inline]
    pub fn add(&mut self, symbol: SymbolNumber, more: Occurrences) {
        let occurrences = &mut self.occurrences[symbol as usize];
        if occurrences.places == 0 {
            self.seen.push(symbol);
        }
        occurrences.add(more);
    }

    /// The occurrences of a symbol.
    #[inline]
    pub fn get(&self, symbol: SymbolNumber) -> Occurrences {
        self.occurrences[symbol as usize]
    }

    /// The symbols that have occurrences, with their occurrences.
    pub fn iter(&self) -> impl Iterator<Item = (SymbolNumber, Occurrences)> + '_ {
        self.seen.iter().map(|&symbol| (symbol, self.get(symbol)))
    }

    /// The symbol that `iter` reaches after this many steps. (Callers prefetch what they will need for it.)
    #[inline]
    pub fn symbol(&self, step: usize) -> Option<SymbolNumber> {
        self.seen.get(step).copied()
    }

    /// Add all occurrences of another value.
    fn absorb(&mut self, other: &SymbolOccurrences) {
        for (symbol, occurrences) in other.iter() {
            self.add(symbol, occurrences);
        }
    }

    /// Forget all occurrences. This takes time only for the symbols that have any.
    fn clear(&mut self) {
        for symbol in self.seen.drain(..) {
            self.occurrences[symbol as usize] = Occurrences::default();
        }
    }
}

/// The changes that were made by merging `left` and `right` into `new`.
#[derive(Default)]
pub struct MergeChanges {
    /// By the symbol before the merge: the pair (it, left) became (it, new). If that symbol is `new` itself, see
    /// `new_beside_new`.
    pub before: SymbolOccurrences,
    /// By the symbol after the merge: the pair (right, it) became (new, it).
    pub after: SymbolOccurrences,
    /// The occurrences of the pair (new, new). Between the two merges that made it, there was the pair (new, left) for
    /// a moment. It is counted in `after`, because (right, left) did disappear there. Even a pair that was in the text
    /// only for a moment stays a candidate (see "Pairs stay candidates" in `cpbpe/reference/training.py`).
    pub new_beside_new: Occurrences,
    /// The occurrences of the pair that were replaced.
    pub merged: Occurrences,
}

impl MergeChanges {
    /// Make room for one more symbol.
    pub fn add_symbol(&mut self) {
        for side in [&mut self.before, &mut self.after] {
            side.occurrences.push(Occurrences::default());
        }
    }

    /// Add the changes that were made in another part of the text.
    pub fn absorb(&mut self, other: &MergeChanges) {
        self.before.absorb(&other.before);
        self.after.absorb(&other.after);
        self.new_beside_new.add(other.new_beside_new);
        self.merged.add(other.merged);
    }

    /// Forget the last merge.
    pub fn clear(&mut self) {
        self.before.clear();
        self.after.clear();
        self.new_beside_new = Occurrences::default();
        self.merged = Occurrences::default();
    }
}

/// A pair of the last new symbol and a neighbour, which is tracked from now on.
#[derive(Clone, Copy, Debug)]
pub struct NewPair {
    /// The neighbour.
    pub neighbour: SymbolNumber,
    /// The number of the pair.
    pub number: PairNumber,
}

/// The pairs of the last new symbol that are tracked from now on.
#[derive(Debug, Default)]
pub struct NewPairs {
    /// Its pairs with a symbol before it.
    pub before: Vec<NewPair>,
    /// Its pairs with a symbol after it.
    pub after: Vec<NewPair>,
    /// Its pair with itself.
    pub with_itself: Option<PairNumber>,
}

impl NewPairs {
    /// Forget all pairs.
    pub fn clear(&mut self) {
        self.before.clear();
        self.after.clear();
        self.with_itself = None;
    }

    /// The highest number of all these pairs.
    pub fn last(&self) -> Option<PairNumber> {
        let numbers = self.before.iter().chain(&self.after).map(|pair| pair.number);
        numbers.chain(self.with_itself).max()
    }
}
