//! A pattern, and the chunks of a text, batch by batch.

use fancy_regex::{AstNode, Expr, Matches, Regex};

use crate::error::Error;
use crate::split::scanner::{known, safe_cut, Ends, Scanner, BATCH, PATTERNS};

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
pub struct Splitter(Method);

enum Method {
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
            Some(scans) => Method::Scanner(Scanner::new(scans)?),
            None => Method::General(Box::new(compile(pattern)?)),
        }))
    }

    /// A splitter for a pattern and further ones, each of which cuts the chunks of the one before it.
    pub fn of_all(pattern: &str, then: &[String]) -> Result<Splitter, Error> {
        let first = Splitter::of(pattern)?;
        if then.is_empty() {
            return Ok(first);
        }
        let others = then.iter().map(|pattern| Splitter::of(pattern));
        Ok(Splitter(Method::Sequence(std::iter::once(Ok(first)).chain(others).collect::<Result<_, _>>()?)))
    }

    /// The published patterns, which have scanners.
    #[doc(hidden)]
    pub fn published() -> impl Iterator<Item = &'static str> {
        PATTERNS.iter().map(|&(pattern, _)| pattern)
    }

    /// Whether the pattern has a scanner. Then the chunks cover every text, and splitting fails only for a
    /// chunk of 4 GiB or more.
    pub fn has_scanner(&self) -> bool {
        matches!(self.0, Method::Scanner(..))
    }

    /// The chunks of a text.
    pub fn chunks<'a>(&'a self, text: &'a str) -> Chunks<'a> {
        match &self.0 {
            Method::Scanner(scanner) => Chunks::Scanned { scanner, text: text.as_bytes(), at: 0 },
            Method::General(regex) => Chunks::Matched(RegexMatches::of(regex, text)),
            Method::Sequence(splitters) => Chunks::Nested(Box::new(Nested::new(splitters, text))),
        }
    }

    /// The chunks of a text, and the text between them, so that nothing is lost. (The published patterns leave nothing
    /// between chunks.)
    pub fn cover<'a>(&'a self, text: &'a str) -> Chunks<'a> {
        match &self.0 {
            Method::General(regex) => {
                Chunks::Covered { found: RegexMatches::of(regex, text), length: text.len(), done: 0 }
            }
            _ => self.chunks(text),
        }
    }

    /// The same for a text that is UTF-8. (A scanner works on bytes, so nothing is checked for it. Checking took a
    /// seventh of all time.)
    pub fn cover_bytes<'a>(&'a self, text: &'a [u8]) -> Result<Chunks<'a>, Error> {
        match &self.0 {
            Method::Scanner(scanner) => Ok(Chunks::Scanned { scanner, text, at: 0 }),
            _ => {
                let text = std::str::from_utf8(text).map_err(|_| Error::SplitFailed("the text is not UTF-8".into()))?;
                Ok(self.cover(text))
            }
        }
    }

    /// A place between `from` and `to` where a chunk begins, whatever is before `from` and after `to`, and where the
    /// text can be split into two parts that have the chunks of the whole text. `None` if there is no such place, or no
    /// rule to find one.
    pub fn safe_cut(&self, text: &str, from: usize, to: usize) -> Option<usize> {
        match &self.0 {
            Method::Scanner(scanner) => safe_cut(&scanner.classes, text.as_bytes(), from, to),
            Method::General(_) | Method::Sequence(_) => None,
        }
    }
}

/// The chunks of a text that have not been asked for yet.
pub enum Chunks<'a> {
    /// By a scanner.
    Scanned { scanner: &'a Scanner, text: &'a [u8], at: usize },
    /// By a regular expression.
    Matched(RegexMatches<'a>),
    /// The same, and the text between its matches. `length`: that of the text. `done`: how much of it is in chunks.
    Covered { found: RegexMatches<'a>, length: usize, done: usize },
    /// A text of this length as one chunk.
    Whole(Option<usize>),
    /// By several patterns.
    Nested(Box<Nested<'a>>),
}

impl Chunks<'_> {
    /// Put the next chunks into a batch: at most `BATCH` and, by a scanner or several patterns, of about as many bytes.
    /// Returns false if there are none.
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
            Chunks::Matched(found) => batch.fill(found)?,
            Chunks::Covered { found, length, done } => batch.cover(found, *length, done)?,
            Chunks::Whole(length) => {
                batch.restart(0);
                length.take().map_or(Ok(()), |length| batch.push(length))?;
            }
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

    /// Begin a batch in which each chunk begins where the one before it ends.
    pub fn restart(&mut self, base: usize) {
        (self.base, self.begins, self.ends.count) = (base, None, 0);
    }

    /// Add a chunk, given where it ends.
    fn push(&mut self, end: usize) -> Result<(), Error> {
        let number = u32::try_from(end - self.base).map_err(|_| Error::ChunkTooLong)?;
        self.ends.numbers[self.ends.count] = number;
        self.ends.count += 1;
        Ok(())
    }

    /// Where each chunk begins and ends in the text.
    pub fn spans(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        let mut last = 0;
        self.ends().iter().enumerate().map(move |(i, &end)| {
            let begin = self.begins.as_ref().map_or(last, |begins| begins[i]);
            last = end;
            [begin, end].map(|place| self.base + place as usize)
        })
    }

    /// Add the next matches of a text of this length, and the text between them. `done`: how much of it is in chunks.
    fn cover(&mut self, found: &mut RegexMatches, length: usize, done: &mut usize) -> Result<(), Error> {
        self.restart(*done);
        while self.ends.count < BATCH && *done < length {
            let span = found.next()?.unwrap_or([length; 2]);
            for place in span {
                if place <= *done {
                    continue;
                }
                if self.ends.count > 0 && u32::try_from(place - self.base).is_err() {
                    found.next = Some(span);
                    return Ok(());
                }
                self.push(place)?;
                *done = place;
            }
        }
        Ok(())
    }

    /// Add the next matches.
    fn fill(&mut self, found: &mut RegexMatches) -> Result<(), Error> {
        let begins = self.begins.get_or_insert_default();
        begins.clear();
        while self.ends.count < BATCH {
            let Some(span) = found.next()? else { break };
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
                    found.next = Some(span);
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
    /// Some chunks, how many of them have been handed out, and where the next one begins.
    batch: Batch,
    taken: usize,
    begin: usize,
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
        let chunks = self.splitters[self.open.len()].cover(text);
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.restart(0);
        self.open.push(Level { text, base, chunks, batch, taken: 0, begin: 0 });
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
    /// The next chunk.
    fn next(&mut self) -> Result<Option<[usize; 2]>, Error> {
        if self.taken == self.batch.ends().len() {
            self.taken = 0;
            if !self.chunks.next(&mut self.batch)? {
                return Ok(None);
            }
        }
        let end = self.batch.base() + self.batch.ends()[self.taken] as usize;
        self.taken += 1;
        Ok(Some([std::mem::replace(&mut self.begin, end), end]))
    }
}

// --- Any pattern ---------------------------------------------------------------------------------
//
// By the crate `fancy-regex`, as in tiktoken.

/// Compile a pattern.
pub fn compile(pattern: &str) -> Result<Regex, Error> {
    let invalid = |reason: String| Error::InvalidPattern(reason.into());
    let pattern = apart(pattern);
    // (Each call is written out, 20 levels deep: two of them take 2^20 times the memory. The package knows none.)
    let calls = |part: &Expr| matches!(part, Expr::SubroutineCall(_) | Expr::AstNode(AstNode::SubroutineCall(_), _));
    if Expr::parse_tree(&pattern).is_ok_and(|tree| calls(&tree.expr) || tree.expr.has_descendant(calls)) {
        return Err(invalid("it calls one of its own groups".into()));
    }
    Regex::new(&pattern).map_err(|error| invalid(error.to_string()))
}

/// A pattern that means the same, with a group that matches nothing after each `+` and `}`.
///
/// Version 0.19 of the crate takes `a+b?a+` for `a+(?:ba+)?`, which also matches a single `a`. Oniguruma and the package
/// `regex` do not. With a group between them, the crate does not see that the two repeats are alike.
fn apart(pattern: &str) -> String {
    let (mut made, mut depth) = (String::with_capacity(pattern.len()), 0usize);
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        made.push(character);
        match character {
            // An escape, up to the end of its braces.
            '\\' => {
                let escaped = characters.next();
                made.extend(escaped);
                if matches!(escaped, Some('p' | 'P' | 'x' | 'b' | 'B')) && characters.peek() == Some(&'{') {
                    made.extend(characters.by_ref().take_while(|&character| character != '}'));
                    made.push('}');
                }
            }
            '[' => {
                depth += 1;
                made.extend(characters.next_if_eq(&'^'));
                made.extend(characters.next_if_eq(&']')); // as the first one it is a character
            }
            ']' => depth = depth.saturating_sub(1),
            '+' | '}' if depth == 0 && !matches!(characters.peek(), Some('?' | '*' | '+' | '{')) => {
                made.push_str("(?:|)")
            }
            _ => {}
        }
    }
    made
}

/// The matches of a text that have not been asked for yet.
pub struct RegexMatches<'a> {
    matches: Matches<'a, 'a, str>,
    /// The next one, if it has been found already.
    next: Option<[usize; 2]>,
}

impl<'a> RegexMatches<'a> {
    pub fn of(regex: &'a Regex, text: &'a str) -> RegexMatches<'a> {
        RegexMatches { matches: regex.find_iter(text), next: None }
    }

    /// Where the next match begins and ends. As in tiktoken, text between two matches is in no chunk. Empty matches are
    /// left out, because they have no tokens.
    pub fn next(&mut self) -> Result<Option<[usize; 2]>, Error> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        for found in &mut self.matches {
            // A pattern may need more steps than are allowed.
            let found = found.map_err(|error| Error::SplitFailed(error.to_string().into()))?;
            if !found.range().is_empty() {
                return Ok(Some([found.start(), found.end()]));
            }
        }
        Ok(None)
    }
}
