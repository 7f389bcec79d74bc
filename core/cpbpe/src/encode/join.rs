//! Copies many parts to one place.

use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use crate::watch::may_start_threads;

/// Fewer items than this are copied by one thread: to start another takes longer.
const MANY: usize = 1 << 18;

/// Copy parts, one after the other, to `place`, which is as long as all of them.
///
/// If the place is new memory, most of the time goes into touching it first; the threads share that work.
pub fn join<T: Copy + Send + Sync>(parts: &[&[T]], place: &mut [MaybeUninit<T>], threads: usize) {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert_eq!(total, place.len(), "the place is as long as the parts");
    let threads = if total < MANY || !may_start_threads() { 1 } else { threads.max(1) };
    type Copy<'a, T> = (&'a mut [MaybeUninit<T>], &'a [T]);
    let mut shares: Vec<Vec<Copy<T>>> = (0..threads).map(|_| Vec::new()).collect();
    let mut rest = place;
    let mut done = 0;
    for part in parts {
        let (here, more) = rest.split_at_mut(part.len());
        rest = more;
        shares[(done * threads / total.max(1)).min(threads - 1)].push((here, part));
        done += part.len();
    }
    let shares = Mutex::new(shares);
    let copy = || loop {
        let share = shares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(share) = share else { break };
        for (here, part) in share {
            for (here, item) in here.iter_mut().zip(part) {
                here.write(*item);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If no thread can be started, this one does everything.
            let _ = std::thread::Builder::new().spawn_scoped(scope, copy);
        }
        copy();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_one_after_the_other() {
        let numbers: Vec<u32> = (0..2 * MANY as u32).collect();
        for (length, threads) in [(0, 3), (1000, 3), (numbers.len(), 1), (numbers.len(), 3)] {
            let parts: Vec<&[u32]> = numbers[..length].chunks(777).collect();
            let mut place = vec![MaybeUninit::new(0); length];
            join(&parts, &mut place, threads);
            // SAFETY: all of it was initialized when it was made.
            assert!(place.iter().zip(&numbers).all(|(item, number)| unsafe { item.assume_init() } == *number));
        }
    }
}
