//! How far two texts are the same.

/// How many bytes two texts have in common at their beginnings. (Eight at a time: words and keys that begin alike may
/// share hundreds of bytes.)
#[inline]
pub fn common_length(left: &[u8], right: &[u8]) -> usize {
    let mut same = 0;
    while let (Some(a), Some(b)) = (left[same..].first_chunk::<8>(), right[same..].first_chunk::<8>()) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + left[same..].iter().zip(&right[same..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_the_first_difference_or_the_end_of_one() {
        let text = [b'a'; 30];
        for length in 0..30 {
            assert_eq!(common_length(&text[..length], &text), length);
            assert_eq!(common_length(&text, &text[..length]), length);
            let mut other = text;
            other[length] = b'b';
            assert_eq!(common_length(&text, &other), length);
        }
    }
}
