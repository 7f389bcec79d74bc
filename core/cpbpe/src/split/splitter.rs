//! A pattern, and the chunks of a text, batch by batch.

use fancy_regex::{Matches, Regex};

use crate::error::Error;
use crate::split::scanner::{known, safe_cut, Ends, Scanner, BATCH};

/// A pattern that splits texts.
///
/// ```
/// use cpbpe::{Batch, Splitter};
///
/// let splitter = Splitter::of(r"\p{L}+|\p{N}| ")?;
/// let (mut chunks, mut batch, mut all) = (splitter.chunks("all 42!"), Batch::default(), Vec::new());
/// while chunks.next(&mut batch)? {
///     all.extend(batch.spans());
/// }
/// assert_eq!(all, [[0, 3], [3, 4], [4, 5], [5, 6]]);
/// # Ok::<(), cpbpe::Error>(())
/// ```
pub struct Splitter(Way);

enum Way {
    /// A published pattern.
    Scanner(Scanner),
    /// Any other pattern.
    General(Box<Regex>),
    /// Several patterns, one after the other.
    Sequence(Vec<Splitter>),
}

impl Splitter {
    /// A splitter for a pattern, in the syntax of `fancy-regex`.
    pub fn of(pattern: &str) -> Result<Splitter, Error> {
        Ok(Splitter(match known(pattern) {
            Some(scans) => Way::Scanner(Scanner::new(scans)?),
            None => Way::General(Box::new(compile(pattern)?)),
        }))
    }

    /// A splitter for a pattern and further ones, each of which cuts the chunks of the one before it.
    pub fn of_all(pattern: &str, then: &[String]) -> Result<Splitter, Error> {
        let first = Splitter::of(pattern)?;
        if then.is_empty() {
            return Ok(first);
        }
        let others = then.iter().map(|pattern| Splitter::of(pattern));
        Ok(Splitter(Way::Sequence(std::iter::once(Ok(first)).chain(others).collect::<Result<_, _>>()?)))
    }

    /// Whether the pattern has a scanner. Then the chunks cover every text, and splitting never fails.
    pub fn has_scanner(&self) -> bool {
        matches!(self.0, Way::Scanner(..))
    }

    /// The chunks of a text.
    pub fn chunks<'a>(&'a self, text: &'a str) -> Chunks<'a> {
        match &self.0 {
            Way::Scanner(scanner) => Chunks::Scanned { scanner, text: text.as_bytes(), at: 0 },
            Way::General(regex) => Chunks::Matched { matches: regex.find_iter(text), next: None },
            Way::Sequence(splitters) => Chunks::Nested(Box::new(Nested::new(splitters, text))),
        }
    }

    /// The chunks of a text that is UTF-8. (A scanner works on bytes, so nothing is checked for it. Checking took a
    /// seventh of all time.)
    pub fn chunks_of<'a>(&'a self, text: &'a [u8]) -> Result<Chunks<'a>, Error> {
        match &self.0 {
            Way::Scanner(scanner) => Ok(Chunks::Scanned { scanner, text, at: 0 }),
            _ => {
                let text = std::str::from_utf8(text).map_err(|_| Error::SplitFailed("the text is not UTF-8".into()))?;
                Ok(self.chunks(text))
            }
        }
    }

    /// A place between `from` and `to` where a chunk begins, whatever is before `from` and after `to`, and where the
    /// text can be split into two parts that have the chunks of the whole text. `None` if there is no such place, or no
    /// rule to find one.
    pub fn safe_cut(&self, text: &str, from: usize, to: usize) -> Option<usize> {
        match &self.0 {
            Way::Scanner(scanner) => safe_cut(&scanner.classes, text.as_bytes(), from, to),
            Way::General(_) | Way::Sequence(_) => None,
        }
    }
}

/// The chunks of a text that have not been asked for yet.
pub enum Chunks<'a> {
    /// By a scanner.
    Scanned { scanner: &'a Scanner, text: &'a [u8], at: usize },
    /// By a regular expression. `next`: the next match, if it has been found already.
    Matched { matches: Matches<'a, 'a, str>, next: Option<[usize; 2]> },
    /// By several patterns.
    Nested(Box<Nested<'a>>),
}

impl Chunks<'_> {
    /// Put the next chunks, of about 4 KB of text, into a batch. Returns false if there are none.
    #[inline]
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        batch.ends.count = 0;
        match self {
            Chunks::Scanned { scanner, text, at } => {
                batch.base = *at;
                batch.begins = None;
                *at = scanner.scan(text, *at, &mut batch.ends);
                if batch.ends.count == 0 && *at < text.len() {
                    return Err(Error::ChunkTooLong);
                }
            }
            Chunks::Matched { matches, next } => batch.fill(matches, next)?,
            Chunks::Nested(nested) => nested.fill(batch)?,
        }
        Ok(batch.ends.count > 0)
    }
}

/// Some chunks in the order of the text. One batch can be used for many texts.
#[derive(Default)]
pub struct Batch {
    base: usize,
    ends: Ends,
    /// Where each chunk begins, if the pattern may leave gaps between them.
    begins: Option<Vec<u32>>,
}

impl Batch {
    /// Where the first chunk begins in the text.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Where each chunk ends, counted from `base`.
    pub fn ends(&self) -> &[u32] {
        &self.ends.numbers[..self.ends.count]
    }

    /// Where each chunk begins, counted from `base`; `None` if each begins where the one before ends.
    pub fn begins(&self) -> Option<&[u32]> {
        self.begins.as_deref()
    }

    /// Begin a batch in which each chunk begins where the one before it ends.
    pub(super) fn restart(&mut self, base: usize) {
        (self.base, self.begins, self.ends.count) = (base, None, 0);
    }

    /// Add a chunk, given where it ends.
    pub(super) fn push(&mut self, end: usize) -> Result<(), Error> {
        let number = u32::try_from(end - self.base).map_err(|_| Error::ChunkTooLong)?;
        self.ends.numbers[self.ends.count] = number;
        self.ends.count += 1;
        Ok(())
    }

    /// Where a chunk begins and ends in the text.
    pub(super) fn span(&self, i: usize) -> [usize; 2] {
        let begin = match &self.begins {
            Some(begins) => begins[i],
            None if i == 0 => 0,
            None => self.ends.numbers[i - 1],
        };
        [begin, self.ends.numbers[i]].map(|place| self.base + place as usize)
    }

    /// Where each chunk begins and ends in the text.
    pub fn spans(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        let mut last = 0;
        self.ends().iter().enumerate().map(move |(i, &end)| {
            let begin = self.begins().map_or(last, |begins| begins[i]);
            last = end;
            [begin, end].map(|place| self.base + place as usize)
        })
    }

    /// Add the next matches.
    fn fill(&mut self, matches: &mut Matches<'_, '_, str>, next: &mut Option<[usize; 2]>) -> Result<(), Error> {
        let begins = self.begins.get_or_insert_default();
        begins.clear();
        while self.ends.count < BATCH {
            let Some(span) = next.take().map_or_else(|| next_match(matches), |span| Ok(Some(span)))? else { break };
            if self.ends.count == 0 {
                self.base = span[0];
            }
            match span.map(|place| u32::try_from(place - self.base)) {
                [Ok(begin), Ok(end)] => {
                    begins.push(begin);
                    self.ends.numbers[self.ends.count] = end;
                    self.ends.count += 1;
                }
                _ if self.ends.count == 0 => return Err(Error::ChunkTooLong),
                _ => {
                    *next = Some(span);
                    break;
                }
            }
        }
        Ok(())
    }
}

// --- Several patterns ----------------------------------------------------------------------------
//
// Each pattern cuts the chunks of the one before it. Both what a pattern matches in a chunk and what it leaves out
// between two matches are chunks, so that nothing is lost. The pre-tokenizers of `tokenizers` do the same. For the next
// pattern, a chunk is a text of its own: the pattern sees nothing around it.

/// The chunks of a text by several patterns, as far as they have not been asked for yet.
pub struct Nested<'a> {
    splitters: &'a [Splitter],
    /// What each pattern is cutting now: the first one the text, each later one a chunk of the pattern before it.
    open: Vec<Level<'a>>,
    /// Batches that can be used again.
    spare: Vec<Batch>,
    /// How much of the text is in chunks that have been handed out.
    at: usize,
}

/// A text that a pattern is cutting.
struct Level<'a> {
    text: &'a str,
    /// Where it begins in the text as a whole.
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
        let mut batch = self.spare.pop().unwrap_or_default();
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
    /// The next chunk, or the text between two chunks.
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

// --- Any pattern ---------------------------------------------------------------------------------
//
// By the crate `fancy-regex`, as in tiktoken.

/// Compile a pattern.
pub fn compile(pattern: &str) -> Result<Regex, Error> {
    Regex::new(pattern).map_err(|error| Error::InvalidPattern(error.to_string().into()))
}

/// Where the next match begins and ends. As in tiktoken, text between two matches is in no chunk. Empty matches are
/// left out, because they have no tokens.
pub fn next_match(matches: &mut Matches<'_, '_, str>) -> Result<Option<[usize; 2]>, Error> {
    for found in matches {
        // A pattern may need more steps than are allowed.
        let found = found.map_err(|error| Error::SplitFailed(error.to_string().into()))?;
        if !found.range().is_empty() {
            return Ok(Some([found.start(), found.end()]));
        }
    }
    Ok(None)
}
