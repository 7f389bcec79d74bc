//! The counts of words, by place in the text. Words with equal counts are side by side, so there are far fewer runs
//! of equal counts than words.

/// Words that have the same count.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where the first word begins.
    begin: u32,
    /// The count of each word.
    count: u64,
}

/// All runs of a text, in order.
#[derive(Default)]
pub struct Runs {
    runs: Vec<Run>,
}

impl Runs {
    /// Record that a word begins at the end of the text so far.
    pub fn push(&mut self, begin: u32, count: u64) {
        if self.runs.last().is_none_or(|run| run.count != count) {
            self.runs.push(Run { begin, count });
        }
    }

    /// The run that contains `place`, given a run that does not begin after it. If places ascend, the result is usually
    /// the given run.
    #[inline]
    pub fn find(&self, from: usize, place: u32) -> usize {
        match self.runs.get(from + 1) {
            Some(next) if next.begin <= place => self.find_after(from + 1, place),
            _ => from,
        }
    }

    /// The count of the words in a run.
    #[inline]
    pub fn count(&self, run: usize) -> u64 {
        self.runs[run].count
    }

    /// The same as `find`, with steps that double and then a binary search.
    fn find_after(&self, from: usize, place: u32) -> usize {
        let mut step = 1;
        while self.runs.get(from + step).is_some_and(|run| run.begin <= place) {
            step *= 2;
        }
        let low = from + step / 2;
        let high = self.runs.len().min(from + step);
        low + self.runs[low..high].partition_point(|run| run.begin <= place) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_run_of_any_place() {
        let mut runs = Runs::default();
        let mut end = 1;
        for count in (1..100).rev() {
            for _ in 0..count % 3 + 1 {
                runs.push(end, count);
                end += 3 + count as u32 % 2;
            }
        }
        for from in 0..runs.runs.len() {
            for place in runs.runs[from].begin..end {
                let expected = runs.runs.iter().rposition(|run| run.begin <= place).unwrap();
                assert_eq!(runs.find(from, place), expected);
            }
        }
    }
}
