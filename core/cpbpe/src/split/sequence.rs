//! Several patterns, each of which cuts the chunks of the one before.
//!
//! What a pattern matches in a chunk, and what it leaves out between two matches, are chunks, so that nothing is lost: the
//! pre-tokenizers of `tokenizers` do the same. A chunk is a text of its own for the next pattern, which sees nothing
//! around it.

use crate::error::Error;
use crate::split::scanner::BATCH;
use crate::split::splitter::{Batch, Chunks, Splitter};

/// The chunks of a text by several patterns, as far as they have not been asked for.
pub struct Nested<'a> {
    splitters: &'a [Splitter],
    /// What the patterns are cutting now: the first one the text, each other one a chunk of the one before.
    open: Vec<Level<'a>>,
    /// Batches that can be used again.
    spare: Vec<Batch>,
    /// How much of the text is in chunks that have been handed out.
    at: usize,
}

/// A text that a pattern is cutting.
struct Level<'a> {
    text: &'a str,
    /// Where it begins in the whole text.
    base: usize,
    chunks: Chunks<'a>,
    /// Some chunks, and how many of them have been handed out.
    batch: Batch,
    taken: usize,
    /// How much of the text is in chunks, or between chunks, that have been handed out.
    done: usize,
}

impl<'a> Nested<'a> {
    /// The chunks of `text` by all these patterns, of which there is at least one.
    pub fn new(splitters: &'a [Splitter], text: &'a str) -> Nested<'a> {
        let mut nested = Nested { splitters, open: Vec::new(), spare: Vec::new(), at: 0 };
        nested.cut(text, 0);
        nested
    }

    /// Put the next chunks into a batch that is empty.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.restart(self.at);
        let begin = self.at;
        while batch.ends().len() < BATCH && self.at - begin < BATCH {
            let Some(end) = self.next_end()? else { break };
            batch.push(end)?;
            self.at = end;
        }
        Ok(())
    }

    /// Let the next pattern cut a text that begins at `base`.
    fn cut(&mut self, text: &'a str, base: usize) {
        let chunks = self.splitters[self.open.len()].chunks(text);
        let mut batch = self.spare.pop().unwrap_or_else(Batch::new);
        batch.restart(0);
        self.open.push(Level { text, base, chunks, batch, taken: 0, done: 0 });
    }

    /// Where the next chunk ends in the text.
    fn next_end(&mut self) -> Result<Option<usize>, Error> {
        loop {
            let deepest = self.open.len() == self.splitters.len();
            let Some(level) = self.open.last_mut() else { return Ok(None) };
            match level.next()? {
                Some([_, end]) if deepest => return Ok(Some(level.base + end)),
                Some([begin, end]) => {
                    let (text, base) = (&level.text[begin..end], level.base + begin);
                    self.cut(text, base);
                }
                None => self.spare.extend(self.open.pop().map(|level| level.batch)),
            }
        }
    }
}

impl Level<'_> {
    /// The next chunk, or what is between two.
    fn next(&mut self) -> Result<Option<[usize; 2]>, Error> {
        if self.done == self.text.len() {
            return Ok(None);
        }
        if self.taken == self.batch.ends().len() {
            self.taken = 0;
            if !self.chunks.next(&mut self.batch)? {
                let rest = [self.done, self.text.len()];
                self.done = self.text.len();
                return Ok(Some(rest));
            }
        }
        let [begin, end] = self.batch.span(self.taken);
        let span = if begin > self.done {
            [self.done, begin]
        } else {
            self.taken += 1;
            [begin, end]
        };
        self.done = span[1];
        Ok(Some(span))
    }
}
