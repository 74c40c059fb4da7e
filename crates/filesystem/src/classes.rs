//! Groups the rows of a trace into classes with the same labels: path, thread, process, hint, size.
//!
//! A trace has millions of rows but only a few thousand classes, so everything that rules and
//! labels depend on is evaluated once per class.

use super::TraceError;

/// Label columns of equal length: word numbers, write-lifetime hint (-1: none), file-size class.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Word number of the file path in each row.
    pub path: &'a [i32],
    /// Word number of the thread name in each row.
    pub thread: &'a [i32],
    /// Word number of the process name in each row.
    pub process: &'a [i32],
    /// Write-lifetime hint (`F_SET_RW_HINT`) of each row; -1 for none.
    pub hint: &'a [i8],
    /// File-size class of each row; empty if all rows have the same size class.
    pub size: &'a [u16],
}

/// Row classes, numbered in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Class of each row.
    pub of_row: Vec<u32>,
    /// First row of each class.
    pub first: Vec<u32>,
}

/// Limit on the word numbers of threads and processes.
const WORDS_MAX: i32 = 1 << 20;

impl Classes {
    /// Classifies the rows; fails if columns differ in length or word numbers are out of range.
    pub fn of(labels: &Labels<'_>) -> Result<Self, TraceError> {
        let Labels { path, thread, process, hint, size } = *labels;
        let rows = path.len();
        let equal = [thread.len(), process.len(), hint.len()].iter().all(|&length| length == rows);
        if !equal || (size.len() != rows && !size.is_empty()) || u32::try_from(rows).is_err() {
            return Err(TraceError::Trace(
                "the columns differ in length or are too long".to_owned(),
            ));
        }
        // The (key, class) pairs of each path; the key packs all other labels of a row.
        let paths = path.iter().max().map_or(0, |&most| most.max(0) as usize + 1);
        let mut by_path: Vec<Vec<(u64, u32)>> = vec![Vec::new(); paths];
        let mut classes = Self { of_row: Vec::with_capacity(rows), first: Vec::new() };
        let words = |row: usize| (0..WORDS_MAX).contains(&thread[row]) && process[row] >= 0;
        for row in 0..rows {
            if path[row] < 0 || !words(row) || process[row] >= WORDS_MAX {
                let message = "the path, thread or process number is out of range";
                return Err(TraceError::Row { row, message: message.to_owned() });
            }
            let size = size.get(row).copied().unwrap_or(0);
            let rest = u64::from(thread[row] as u32) << 44
                | u64::from(process[row] as u32) << 24
                | u64::from(hint[row] as u8) << 16
                | u64::from(size);
            let candidates = &mut by_path[path[row] as usize];
            let class = if let Some(&(_, class)) = candidates.iter().find(|&&(key, _)| key == rest)
            {
                class
            } else {
                let class = classes.first.len() as u32;
                classes.first.push(row as u32);
                candidates.push((rest, class));
                class
            };
            classes.of_row.push(class);
        }
        Ok(classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_equal_labels_share_a_class() {
        let labels = Labels {
            path: &[0, 0, 1, 0, 0, 0, 0],
            thread: &[0, 0, 0, 1, 0, 0, 0],
            process: &[0, 0, 0, 0, 1, 0, 0],
            hint: &[-1, -1, -1, -1, -1, 2, -1],
            size: &[0, 0, 0, 0, 0, 0, 1],
        };
        let classes = Classes::of(&labels).unwrap();
        assert_eq!(classes.of_row, [0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(classes.first, [0, 2, 3, 4, 5, 6]);
        assert_eq!(Classes::of(&Labels { size: &[], ..labels }).unwrap().first.len(), 5);
    }

    #[test]
    fn invalid_columns_are_rejected() {
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
