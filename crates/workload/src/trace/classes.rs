//! Classes of rows: those that agree in all that tells where a write comes from.
//!
//! A trace has millions of rows and a few thousand classes, so whatever rules and labels depend on
//! is decided once a class.

use super::TraceError;

/// Columns of equal length: numbers of words, the hint (-1 if there is none), a class of file
/// sizes.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    pub path: &'a [i32],
    pub thread: &'a [i32],
    pub process: &'a [i32],
    pub hint: &'a [i8],
    /// Empty: all the same.
    pub size: &'a [u16],
}

/// The classes in the order in which they appear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    pub of_row: Vec<u32>,
    /// First row of each.
    pub first: Vec<u32>,
}

/// Words of threads, and of processes.
const WORDS_MAX: i32 = 1 << 20;

impl Classes {
    pub fn of(labels: &Labels<'_>) -> Result<Self, TraceError> {
        let Labels { path, thread, process, hint, size } = *labels;
        let rows = path.len();
        let equal = [thread.len(), process.len(), hint.len()].iter().all(|&length| length == rows);
        if !equal || (size.len() != rows && !size.is_empty()) || u32::try_from(rows).is_err() {
            return Err(TraceError::Trace(
                "its columns differ in length, or are too long".to_owned(),
            ));
        }
        // By path the few classes that its rows are of: what is left of the key, and the class.
        let paths = path.iter().max().map_or(0, |&most| most.max(0) as usize + 1);
        let mut by_path: Vec<Vec<(u64, u32)>> = vec![Vec::new(); paths];
        let mut found = Self { of_row: Vec::with_capacity(rows), first: Vec::new() };
        let words = |row: usize| (0..WORDS_MAX).contains(&thread[row]) && process[row] >= 0;
        for row in 0..rows {
            if path[row] < 0 || !words(row) || process[row] >= WORDS_MAX {
                let message = "the number of its path, thread or process is out of range";
                return Err(TraceError::Row { row, message: message.to_owned() });
            }
            let size = size.get(row).copied().unwrap_or(0);
            let rest = u64::from(thread[row] as u32) << 44
                | u64::from(process[row] as u32) << 24
                | u64::from(hint[row] as u8) << 16
                | u64::from(size);
            let known = &mut by_path[path[row] as usize];
            let class = if let Some(&(_, class)) = known.iter().find(|&&(key, _)| key == rest) {
                class
            } else {
                let class = found.first.len() as u32;
                found.first.push(row as u32);
                known.push((rest, class));
                class
            };
            found.of_row.push(class);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_agree_in_everything_are_of_one_class() {
        let labels = Labels {
            path: &[0, 0, 1, 0, 0, 0, 0],
            thread: &[0, 0, 0, 1, 0, 0, 0],
            process: &[0, 0, 0, 0, 1, 0, 0],
            hint: &[-1, -1, -1, -1, -1, 2, -1],
            size: &[0, 0, 0, 0, 0, 0, 1],
        };
        let found = Classes::of(&labels).unwrap();
        assert_eq!(found.of_row, [0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(found.first, [0, 2, 3, 4, 5, 6]);
        assert_eq!(Classes::of(&Labels { size: &[], ..labels }).unwrap().first.len(), 5);
    }

    #[test]
    fn columns_that_cannot_be_are_refused() {
        let labels =
            Labels { path: &[0, 1], thread: &[0, 0], process: &[0, 0], hint: &[0, 0], size: &[] };
        assert!(matches!(
            Classes::of(&Labels { thread: &[0], ..labels }),
            Err(TraceError::Trace(_))
        ));
        for wrong in [
            Labels { path: &[0, -1], ..labels },
            Labels { thread: &[0, 1 << 20], ..labels },
            Labels { process: &[0, -1], ..labels },
        ] {
            assert!(matches!(Classes::of(&wrong), Err(TraceError::Row { row: 1, .. })));
        }
    }
}
