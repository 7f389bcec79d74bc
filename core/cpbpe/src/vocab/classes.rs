//! Which ASCII characters can be joined, in a form for vector instructions; see `machine.rs`.

use crate::memory::boxed;

/// How many classes of left characters there are: a bit of a byte each, in a few pairs of tables.
const CLASSES: usize = 8 * GROUPS;
/// How many pairs of tables there are.
pub const GROUPS: usize = 4;

/// A superset of the joinable pairs of ASCII characters: characters are joinable if the bytes of both have a bit in
/// common in one of the pairs of tables.
///
/// Each character belongs, on the left, to one class. Characters of a class count as joinable with all that any of them
/// can be joined with. So no joinable pair is missed, and the result is exact: a cut that is not made is only slower.
/// There are less than a hundred classes before any are united, and those united are of rare characters.
pub struct Classes {
    /// For each pair of tables the class of each left character, and the classes of left characters that each right
    /// character can be joined with.
    pub tables: Box<[[[u8; 128]; 2]; GROUPS]>,
}

/// Some left characters, and the right ones that they can be joined with.
type Class = (Vec<usize>, u128);

impl Classes {
    /// The classes of this relation: for `x y` at `x | y << 8`, 0 if joinable. `weights`: how often characters occur,
    /// about.
    pub fn new(cuts: &[u8; 1 << 16], weights: &[u32; 128]) -> Classes {
        // 1. A class for each left character that can be joined with any.
        let row = |x: usize| (0..128).fold(0, |row, y| row | u128::from(cuts[x | y << 8] == 0) << y);
        let mut classes: Vec<Class> = (0..128).map(|x| (vec![x], row(x))).filter(|&(_, row)| row != 0).collect();
        // 2. Unite the two that add the fewest pairs, until there are few enough. (The costs are kept: to compute all of
        //    them for every two took 60 ms.)
        let weight = |mut of: u128| {
            let mut sum = 0;
            while of != 0 {
                sum += u64::from(weights[of.trailing_zeros() as usize]);
                of &= of - 1;
            }
            sum
        };
        let left = |xs: &[usize]| xs.iter().map(|&x| u64::from(weights[x])).sum::<u64>();
        let cost = |(xs, row): &Class, (others, other): &Class| {
            left(xs) * weight(other & !row) + left(others) * weight(row & !other)
        };
        let mut costs: Vec<Vec<u64>> =
            classes.iter().map(|class| classes.iter().map(|other| cost(class, other)).collect()).collect();
        while classes.len() > CLASSES {
            let pairs = (0..classes.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let Some((gone, kept)) = pairs.min_by_key(|&(i, j)| costs[i][j]) else { break };
            let (xs, row) = classes.swap_remove(gone);
            costs.swap_remove(gone);
            for row in &mut costs {
                row.swap_remove(gone);
            }
            classes[kept].0.extend(xs);
            classes[kept].1 |= row;
            for other in 0..classes.len() {
                costs[kept][other] = cost(&classes[kept], &classes[other]);
                costs[other][kept] = costs[kept][other];
            }
        }
        // 3. Write the tables.
        let mut tables = boxed([[0; 128]; 2]);
        for (class, (xs, row)) in classes.iter().enumerate() {
            let [left, right] = &mut tables[class / 8];
            let bit = 1 << (class % 8);
            xs.iter().for_each(|&x| left[x] |= bit);
            right.iter_mut().enumerate().filter(|(y, _)| row >> y & 1 != 0).for_each(|(_, byte)| *byte |= bit);
        }
        Classes { tables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_joinable_pair_is_missed() {
        for seed in 1..20u64 {
            let mut cuts = boxed(1u8);
            let mut state = seed;
            for pair in cuts.iter_mut() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                *pair = u8::from((state >> 33) % 20 < seed);
            }
            let classes = Classes::new(&cuts, &[1; 128]);
            let mut exact = 0;
            for x in 0..128 {
                for y in 0..128 {
                    let joinable = classes.tables.iter().any(|[left, right]| left[x] & right[y] != 0);
                    assert!(joinable || cuts[x | y << 8] != 0);
                    exact += usize::from(joinable == (cuts[x | y << 8] == 0));
                }
            }
            assert!(exact > 0);
        }
    }
}
