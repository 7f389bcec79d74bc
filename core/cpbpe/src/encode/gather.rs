//! Many texts -> all ids, one after the other, in one place.
//!
//! The ids of a run of texts are copied to the place as soon as it is known where they begin: when all runs before it
//! are done. Then they are still in the processor's nearest memory, and their buffer serves for the next run. (Joining
//! the runs in the end reads everything from far away: it took a tenth of the time of all.)
//!
//! How many ids there will be is estimated when some texts are done. If the place turns out to be too small, the runs
//! that are left keep their own memory, and the caller joins all.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::{current, ThreadId};

use crate::encode::batch::Consumer;
use crate::encode::encoder::Scratch;
use crate::encode::ends::Ends;
use crate::encode::engine::Engine;
use crate::encode::texts::{size, size_of, Texts};
use crate::error::Halt;
use crate::memory::with_room;
use crate::watch::Check;

/// The ids are estimated when this part of the text is done.
const SAMPLE: usize = 8;
/// For texts with fewer bytes there is no place: their ids are still near when they are joined, and to keep account of
/// many short runs takes up to a tenth of the time.
const FEW: usize = 1 << 18;

/// Memory for ids, not initialized.
pub type Place<'p> = &'p mut [MaybeUninit<u32>];

/// The ids of some texts: those in the place, and then those of the runs of texts that did not fit there.
pub struct GatheredTexts {
    /// How many ids are in the place.
    pub placed: usize,
    /// The others.
    pub rest: Vec<Vec<u32>>,
    /// How many ids each text has.
    pub lengths: Vec<usize>,
}

/// Ids that are to be copied, and where.
type Copy<'p> = (Place<'p>, Vec<u32>);

/// The runs of texts whose ids are in the place, or wait.
#[derive(Default)]
struct Runs<'p> {
    /// What is left of the place, if there is one.
    place: Option<Place<'p>>,
    /// How many ids are before it.
    placed: usize,
    /// The first text of the next run for the place.
    next: usize,
    /// The runs that wait for others, by their first text: the text after their last, who made them, and the ids.
    waiting: BTreeMap<usize, (usize, ThreadId, Vec<u32>)>,
    /// Those that need not wait any more. Whoever made them copies them.
    ready: Vec<(ThreadId, Copy<'p>)>,
    /// Buffers to use again.
    spare: Vec<Vec<u32>>,
}

impl<'p> Runs<'p> {
    /// Take the ids of a run.
    fn put(&mut self, texts: Range<usize>, ids: Vec<u32>) {
        self.waiting.insert(texts.start, (texts.end, current().id(), ids));
        self.advance();
    }

    /// Find out where the runs begin that need not wait any more.
    fn advance(&mut self) {
        while let Some(place) = self.place.take() {
            let Some((end, owner, ids)) = self.waiting.remove(&self.next) else {
                self.place = Some(place);
                return;
            };
            let count = ids.len();
            if count > place.len() {
                // The place is too small, and is given up.
                self.waiting.insert(self.next, (end, owner, ids));
                return;
            }
            let (here, more) = place.split_at_mut(count);
            self.ready.push((owner, (here, ids)));
            (self.place, self.next, self.placed) = (Some(more), end, self.placed + count);
        }
    }

    /// What this thread should copy.
    fn own(&mut self) -> Vec<Copy<'p>> {
        let me = current().id();
        self.ready.extract_if(.., |(owner, _)| *owner == me).map(|(_, copy)| copy).collect()
    }
}

/// Copy ids, and return their buffers.
fn copy(copies: Vec<Copy>) -> Vec<Vec<u32>> {
    let copy = |(here, mut ids): Copy| {
        for (here, id) in here.iter_mut().zip(&ids) {
            here.write(*id);
        }
        ids.clear();
        ids
    };
    copies.into_iter().map(copy).collect()
}

/// Collects how many ids the texts have, and makes the place.
struct Lengths<'a, 'p, T: ?Sized, A> {
    texts: &'a T,
    runs: &'a Mutex<Runs<'p>>,
    /// Makes the place, at most once.
    allocate: Option<A>,
    /// How many bytes all texts have, those that are done, and how many ids these have.
    bytes: [usize; 2],
    ids: usize,
    lengths: Vec<(usize, Vec<usize>)>,
}

impl<'p, T, A> Consumer<Vec<usize>> for Lengths<'_, 'p, T, A>
where
    T: Texts + ?Sized,
    A: FnOnce(usize) -> Option<Place<'p>>,
{
    fn take(&mut self, first: usize, lengths: Vec<usize>) -> bool {
        let [all, done] = &mut self.bytes;
        *done += size_of(self.texts, first..first + lengths.len());
        self.ids += lengths.iter().sum::<usize>();
        self.lengths.push((first, lengths));
        if *done >= *all / SAMPLE {
            if let Some(allocate) = self.allocate.take() {
                // (A sixteenth more, because texts differ.)
                let more = (self.ids as f64 / *done as f64 * (*all - *done) as f64 * (1.0 + 1.0 / 16.0)) as usize;
                let place = allocate(self.ids + more);
                let mut runs = lock(self.runs);
                runs.place = place;
                runs.advance();
            }
        }
        true
    }
}

fn lock<'a, 'p>(runs: &'a Mutex<Runs<'p>>) -> std::sync::MutexGuard<'a, Runs<'p>> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Put the ids of many texts into the place that `allocate` makes for about so many. It is called in this thread, at
    /// most once.
    pub fn gather_batch<'p>(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        ends: Ends,
        check: Check,
        allocate: impl FnOnce(usize) -> Option<Place<'p>>,
    ) -> Result<GatheredTexts, Halt> {
        let bytes = size(texts);
        if bytes < FEW {
            let mut runs = Vec::new();
            self.encode_batch(texts, threads, ends, check, &mut runs)?;
            runs.sort_unstable_by_key(|&(first, _)| first);
            let mut lengths = with_room(texts.count())?;
            runs.iter().for_each(|(_, run)| lengths.extend(&run.lengths));
            return Ok(GatheredTexts { placed: 0, rest: runs.into_iter().map(|(_, run)| run.ids).collect(), lengths });
        }
        let runs = Mutex::new(Runs::default());
        let encode = |run: Range<usize>, check: Check, scratch: &mut Scratch| {
            let mut lengths = with_room(run.len())?;
            let mut ids = lock(&runs).spare.pop().unwrap_or_default();
            for (text, valid) in run.clone().map(|index| texts.at(index)) {
                let before = ids.len();
                self.append_between(text, valid, ends, check, scratch, &mut ids)?;
                lengths.push(ids.len() - before);
            }
            let copies = {
                let mut runs = lock(&runs);
                runs.put(run, ids);
                runs.own()
            };
            let spare = copy(copies);
            lock(&runs).spare.extend(spare);
            Ok(lengths)
        };
        let mut consumer =
            Lengths { texts, runs: &runs, allocate: Some(allocate), bytes: [bytes, 0], ids: 0, lengths: Vec::new() };
        self.in_runs(texts, threads, check, encode, &mut consumer)?;
        let mut by_text = consumer.lengths;
        by_text.sort_unstable_by_key(|&(first, _)| first);
        let mut lengths = with_room(texts.count())?;
        by_text.into_iter().for_each(|(_, some)| lengths.extend(some));
        let Runs { placed, waiting, ready, .. } = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        copy(ready.into_iter().map(|(_, copy)| copy).collect());
        let rest = waiting.into_values().map(|(_, _, ids)| ids).collect();
        Ok(GatheredTexts { placed, rest, lengths })
    }
}
