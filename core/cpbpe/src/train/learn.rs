//! Words -> merges. `learn` in `cpbpe/reference_train.py` says what is learned; this says how it is made fast.
//!
//! **Few pairs are watched.** A pair is at its most frequent right after the later of its halves was made (or at the
//! start): from then on, every merge can only take places from it, because the symbols of a pair come into being by
//! one merge alone. So a pair that is rarer than some threshold at that moment will not be the best while the best
//! is as frequent as the threshold, and needs neither a list of places nor an entry in the queue. When the best sinks
//! below it, all pairs of the text as it is then are counted again, with a lower threshold. A good first guess makes
//! that rare; a bad one costs time only.
//!
//! **Pairs that stand nowhere** come last, in the order of their texts (see "Nothing is forgotten" there). To know
//! them, every pair must have been watched from the start. Small texts are merged like that at once. With others it
//! is seldom needed, and all is begun anew when it is.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};

use crate::train::characters::{accept, count_characters};
use crate::train::columns::{joined, Words};
use crate::train::pairs::{key, Entry, Map, Pair, Queue, Texts};
use crate::train::part::{check, Changes, Merge, Part, Stopped, Watch, WALL};
use crate::train::piece::{Rules, Shape, ALONE};
use crate::train::weights::{Bounds, PairCounts};

/// All that decides which merges are learned; `LearnSpec` in `cpbpe/train_engine.py`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// How many pieces the model shall have.
    pub vocab_size: usize,
    /// How many of these are no merges and no characters.
    pub meta_pieces: usize,
    /// What a piece may hold.
    pub rules: Rules,
    /// How much of the text the accepted characters cover.
    pub coverage: f32,
    /// Characters to accept first.
    pub required: Vec<char>,
    /// Accept every character.
    pub auto_coverage: bool,
    /// With fewer words, all text is in one part.
    pub parts_from: usize,
    /// Below this many symbols, watch every pair from the start.
    pub small: usize,
    /// The first threshold is the number of pairs in the text over the number of merges wanted, over this.
    pub guess: u64,
}

/// What was learned; `Learned` in `cpbpe/train_engine.py`.
#[derive(Debug, Default)]
pub struct Learned {
    /// Accepted characters and their counts.
    pub characters: Vec<(char, u64)>,
    /// Those not accepted.
    pub dropped: Vec<(char, u64)>,
    /// How often BOUNDARY was seen.
    pub boundaries: u64,
    /// How often U+0000 was seen.
    pub nuls: u64,
    /// The pieces made.
    pub merges: Vec<Vec<u8>>,
    /// How often each stood in the text.
    pub frequencies: Vec<u64>,
    /// How many symbols the text had, before the first merge and after each.
    pub symbols: Vec<u64>,
}

/// A merge at more places than this in one part is shared among threads. (To start one takes as long as a thousand
/// places.)
const PARALLEL: usize = 1 << 15;

/// Why nothing was learned.
#[derive(Debug)]
pub enum Failure {
    /// It was to be stopped.
    Stopped,
    /// Counts add up to 2**63 or more.
    TooMany,
    /// The text does not fit into memory as we lay it out.
    TooLong,
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Failure {
        Failure::Stopped
    }
}

/// How far the work is, for whoever watches from another thread.
#[derive(Default)]
pub struct Monitor {
    /// To be set to end the work.
    pub stop: AtomicBool,
    /// An index into `PHASES`.
    pub phase: AtomicU8,
    /// How much is done,
    pub done: AtomicU64,
    /// of how much.
    pub total: AtomicU64,
}

/// The names of the phases.
pub const PHASES: [&str; 3] = ["characters", "pairs", "merges"];

impl Monitor {
    fn enter(&self, phase: u8, total: usize) {
        self.phase.store(phase, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total as u64, Ordering::Relaxed);
    }

    /// So much is done. Whether to go on.
    pub fn done(&self, done: usize) -> Result<(), Stopped> {
        self.done.store(done as u64, Ordering::Relaxed);
        check(&self.stop)
    }
}

/// The words in the order of their counts, highest first.
fn by_count(words: &Words) -> Vec<u32> {
    const SMALL: usize = 256; // most words are rarer; they are counted into place, the others sorted
    let count = |at: u32| words.count(at as usize);
    let all = 0..words.len() as u32;
    let mut order: Vec<u32> = all.clone().filter(|&at| count(at) >= SMALL as u64).collect();
    order.sort_unstable_by_key(|&at| u64::MAX - count(at));
    let mut begins = [0usize; SMALL + 1];
    for at in all.clone() {
        if count(at) < SMALL as u64 {
            begins[SMALL - 1 - count(at) as usize] += 1;
        }
    }
    let mut begin = order.len();
    for slot in &mut begins {
        (*slot, begin) = (begin, begin + *slot);
    }
    order.resize(words.len(), 0);
    for at in all {
        if count(at) < SMALL as u64 {
            let slot = &mut begins[SMALL - 1 - count(at) as usize];
            order[*slot] = at;
            *slot += 1;
        }
    }
    order
}

/// The text as symbols, in parts.
fn lay_out(
    words: &Words,
    order: &[u32],
    characters: &[(char, u64)],
    threads: usize,
    monitor: &Monitor,
) -> Result<Vec<Part>, Failure> {
    let mut ids = vec![WALL; 0x11_0000];
    for (id, (c, _)) in (1..).zip(characters) {
        ids[*c as usize] = id;
    }
    let ids = &ids;
    // Neighbours in the order go to different parts, so that these are alike.
    let build = |number: usize| -> Result<Part, Failure> {
        let mut part = Part::new(characters.len());
        let mut symbols = Vec::new();
        for (done, &at) in order.iter().skip(number).step_by(threads).enumerate() {
            if done % (1 << 16) == 0 {
                check(&monitor.stop)?;
            }
            let (word, count) = words.get(at as usize);
            symbols.clear();
            symbols.extend(word.chars().map(|c| ids[c as usize]));
            for run in symbols.split(|&symbol| symbol == WALL).filter(|run| run.len() > 1) {
                part.push(run, count).ok_or(Failure::TooLong)?;
            }
        }
        Ok(part)
    };
    each(0..threads, build).into_iter().collect()
}

/// Do something with each item, every one in a thread of its own.
fn each<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let mut items = items.into_iter();
    let Some(first) = items.next() else { return Vec::new() };
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let mut done = vec![work(first)];
        done.extend(others.into_iter().map(joined));
        done
    })
}

/// Merging, under way.
struct Learner<'a> {
    spec: &'a Spec,
    parts: Vec<Part>,
    /// The text of every symbol.
    texts: Texts,
    /// The shape of every symbol.
    shapes: Vec<Shape>,
    /// The pairs that are watched.
    pairs: Vec<Pair>,
    /// Their numbers.
    numbers: Map<u32>,
    queue: Queue,
    /// How frequent the last merge will be, going by words.
    expected: u64,
    /// Rarer pairs are not watched; at 0 those that stand nowhere are watched, too.
    threshold: u64,
    changes: Changes,
    /// Pairs before and behind the last new symbol that have come to be watched.
    before: Vec<Watch>,
    behind: Vec<Watch>,
    monitor: &'a Monitor,
}

impl<'a> Learner<'a> {
    fn new(spec: &'a Spec, characters: &[(char, u64)], parts: Vec<Part>, monitor: &'a Monitor) -> Learner<'a> {
        let mut learner = Learner {
            spec,
            parts,
            texts: Texts::default(),
            shapes: Vec::new(),
            pairs: Vec::new(),
            numbers: Map::default(),
            queue: Queue::default(),
            expected: 0,
            threshold: 0,
            changes: Changes::default(),
            before: Vec::new(),
            behind: Vec::new(),
            monitor,
        };
        let classes = spec.rules.classes();
        learner.texts.push(b"");
        learner.shapes.push(spec.rules.shape(ALONE));
        learner.changes.grow();
        for (c, _) in characters {
            learner.texts.push(c.encode_utf8(&mut [0; 4]).as_bytes());
            // The rules speak of compact text.
            let compact = if *c == '\u{2581}' { ' ' } else { *c };
            learner.shapes.push(spec.rules.shape(classes.of(compact)));
            learner.changes.grow();
        }
        learner
    }

    /// Count all pairs anew and watch those that reach the threshold.
    fn begin(&mut self, threshold: Option<u64>) -> Result<(), Failure> {
        let stop = &self.monitor.stop;
        let bounds = match threshold {
            Some(threshold) if threshold > 1 => Some((self.bounds()?, threshold)),
            _ => None,
        };
        let bounds = bounds.as_ref().map(|(bounds, threshold)| (bounds, *threshold));
        let mut found = each(&self.parts, |part| part.count_pairs(bounds, stop)).into_iter();
        let mut counts = found.next().transpose()?.unwrap_or_default();
        for other in found {
            counts.absorb(&other?);
        }
        self.threshold = threshold.unwrap_or_else(|| self.first_threshold(&counts));
        self.pairs.clear();
        self.numbers = Map::default();
        self.queue = Queue::default();
        for (left, right, amount) in counts.iter() {
            if amount.weight >= self.threshold {
                self.consider(left, right, amount.weight);
            }
        }
        drop(counts);
        let (numbers, count) = (&self.numbers, self.pairs.len());
        each(&mut self.parts, |part| part.watch_all(numbers, count, stop)).into_iter().collect::<Result<(), _>>()?;
        Ok(())
    }

    /// Upper bounds of what all pairs weigh.
    fn bounds(&self) -> Result<Bounds, Failure> {
        let places: usize = self.parts.iter().map(Part::len).sum();
        let bits = places.ilog2().clamp(10, 24);
        let stop = &self.monitor.stop;
        let mut found = each(&self.parts, |part| part.bounds(bits, stop)).into_iter();
        // There is at least one part.
        let mut bounds = found.next().unwrap_or(Err(Stopped))?;
        for other in found {
            bounds.absorb(&other?);
        }
        Ok(bounds)
    }

    /// A guess at how frequent the last merge will be; one too low costs less than one too high. Frequent words become
    /// pieces, so it is about as frequent as a word of that rank. Where there are no words to speak of, frequencies
    /// still fall about like 1 / rank.
    fn first_threshold(&self, counts: &PairCounts) -> u64 {
        let total: u64 = counts.iter().map(|(_, _, amount)| amount.weight).sum();
        let merges = self.spec.vocab_size as u64;
        (total / merges.max(1) / self.spec.guess.max(1)).max(self.expected).max(1)
    }

    /// Now that the threshold was too high by so many merges.
    fn next_threshold(&self, merges: usize, limit: usize) -> u64 {
        let sunk = self.threshold as f64 * (merges as f64 / limit as f64).powf(1.5) / 2.0;
        (sunk as u64).clamp(1, self.threshold - 1)
    }

    /// Watch a pair, if it may be a piece.
    #[inline]
    fn consider(&mut self, left: u32, right: u32, frequency: u64) -> Option<u32> {
        let shape = self.spec.rules.join(&self.shapes[left as usize], &self.shapes[right as usize])?;
        let number = self.pairs.len() as u32;
        let pair = Pair { left, right, frequency };
        self.pairs.push(pair);
        *self.numbers.entry(key(left, right), 0) = number;
        self.queue.push(Entry::new(number, &pair, shape.length, &self.texts), &self.pairs, &self.texts);
        Some(number)
    }

    /// The best pair, if there is one that reaches the threshold.
    fn best(&mut self) -> Option<u32> {
        while let Some(entry) = self.queue.peek() {
            let frequency = self.pairs[entry.pair as usize].frequency;
            if frequency == entry.frequency {
                if frequency < self.threshold {
                    return None;
                }
                self.queue.pop(&self.pairs, &self.texts);
                return Some(entry.pair);
            }
            if frequency < self.threshold {
                self.queue.pop(&self.pairs, &self.texts);
            } else {
                self.queue.update(frequency, &self.pairs, &self.texts);
            }
        }
        None
    }

    /// A pair lost so many places.
    #[inline]
    fn lower(&mut self, left: u32, right: u32, weight: u64) {
        if let Some(number) = self.numbers.get(key(left, right)) {
            let frequency = &mut self.pairs[number as usize].frequency;
            // The pair that was just merged is no longer asked for, and loses what it had in overlaps.
            *frequency = frequency.wrapping_sub(weight);
        }
    }

    /// Merge a pair everywhere. How many symbols are gone.
    fn merge(&mut self, number: u32) -> Result<u64, Failure> {
        let Pair { left, right, .. } = self.pairs[number as usize];
        let new = self.shapes.len() as u32;
        let Some(shape) = self.spec.rules.join(&self.shapes[left as usize], &self.shapes[right as usize]) else {
            return Ok(0); // not reached: only valid pairs are watched
        };
        self.texts.push_pair(left, right);
        self.shapes.push(shape);
        let merge = Merge { pair: number, left, right, new };
        let stop = &self.monitor.stop;
        self.changes.grow();
        if self.parts.len() > 1 && self.parts[0].listed(number) > PARALLEL {
            each(&mut self.parts, |part| part.merge(merge, stop)).into_iter().collect::<Result<(), _>>()?;
        } else {
            self.parts.iter_mut().try_for_each(|part| part.merge(merge, stop))?;
        }
        let mut changes = std::mem::take(&mut self.changes);
        if let [only] = &mut self.parts[..] {
            std::mem::swap(&mut changes, &mut only.changes);
        } else {
            changes.clear();
            for part in &self.parts {
                changes.absorb(&part.changes);
            }
        }
        self.before.clear();
        self.behind.clear();
        let twins = changes.twins;
        let (merged, places) = (changes.merged.weight, changes.merged.places as usize);
        for &neighbour in &changes.before.seen {
            let weight = changes.before.get(neighbour).weight;
            self.lower(neighbour, left, weight);
            if weight >= self.threshold {
                if let Some(pair) = self.consider(neighbour, new, weight) {
                    self.before.push(Watch { neighbour, pair });
                }
            }
        }
        for &neighbour in &changes.behind.seen {
            let weight = changes.behind.get(neighbour).weight;
            self.lower(right, neighbour, weight);
            let weight = if neighbour == left { weight - twins.weight } else { weight };
            if weight >= self.threshold {
                if let Some(pair) = self.consider(new, neighbour, weight) {
                    self.behind.push(Watch { neighbour, pair });
                }
            }
        }
        let mut twin = None;
        if twins.places > 0 && twins.weight >= self.threshold {
            twin = self.consider(new, new, twins.weight);
        }
        if let [only] = &mut self.parts[..] {
            std::mem::swap(&mut changes, &mut only.changes);
        }
        self.changes = changes;
        let (before, behind) = (&self.before, &self.behind);
        let watch = |part: &mut Part| part.watch(merge, before, behind, twin, stop);
        if self.parts.len() > 1 && places > PARALLEL {
            each(&mut self.parts, watch).into_iter().collect::<Result<(), _>>()?;
        } else {
            self.parts.iter_mut().try_for_each(watch)?;
        }
        Ok(merged)
    }

    /// Merge until there are `limit` merges. Whether there were so many.
    fn run(&mut self, limit: usize, all: bool, found: &mut Learned) -> Result<bool, Failure> {
        self.begin(if all { Some(0) } else { None })?;
        let mut made: HashSet<Vec<u8>> = HashSet::new();
        self.monitor.enter(2, limit);
        while found.merges.len() < limit {
            self.monitor.done(found.merges.len())?;
            let Some(number) = self.best() else {
                if self.threshold <= 1 {
                    return Ok(all);
                }
                self.begin(Some(self.next_threshold(found.merges.len(), limit)))?;
                continue;
            };
            let Pair { left, right, frequency } = self.pairs[number as usize];
            let mut piece = self.texts.get(left).to_vec();
            piece.extend_from_slice(self.texts.get(right));
            if frequency == 0 {
                // Only here can a text be a piece already.
                if made.is_empty() {
                    made.extend(found.merges.iter().cloned());
                }
                if !made.insert(piece.clone()) {
                    continue;
                }
            }
            let mut symbols = found.symbols.last().copied().unwrap_or(0);
            if frequency > 0 {
                symbols -= self.merge(number)?;
            }
            found.merges.push(piece);
            found.frequencies.push(frequency);
            found.symbols.push(symbols);
        }
        Ok(true)
    }
}

/// Learn merges from words.
pub fn learn(words: &Words, spec: &Spec, threads: usize, monitor: &Monitor) -> Result<Learned, Failure> {
    monitor.enter(0, words.len());
    let counts = count_characters(words, monitor)?;
    let mut found = accept(&counts, spec);
    drop(counts);
    let taken = if spec.auto_coverage { 0 } else { found.characters.len() };
    let limit = spec.vocab_size.saturating_sub(spec.meta_pieces).saturating_sub(taken);
    if limit == 0 {
        return Ok(found);
    }
    monitor.enter(1, words.len());
    // Several parts cost a fifth more where merges are small, which they are while there is little text.
    let threads = if words.len() < spec.parts_from { 1 } else { threads.max(1) };
    if words.len() > u32::MAX as usize {
        return Err(Failure::TooLong);
    }
    let order = by_count(words);
    let expected = order.get(limit / 4 * 3).map_or(0, |&at| words.count(at as usize) / 4 * 5);
    for all in [false, true] {
        let parts = lay_out(words, &order, &found.characters, threads, monitor)?;
        let symbols: usize = parts.iter().map(Part::len).sum();
        let all = all || symbols < spec.small;
        let mut learner = Learner::new(spec, &found.characters, parts, monitor);
        learner.expected = expected;
        if learner.run(limit, all, &mut found)? {
            break;
        }
        // Too few: begin anew, and watch every pair.
        found.merges.clear();
        found.frequencies.clear();
        found.symbols.truncate(1);
    }
    Ok(found)
}
