//! `TraceReader` and `TraceWriter`, which convert block traces of other programs to columns and
//! back.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use writecliff_traces::{
    Choice, FORMATS, MeasureLimits, Measures, Operation, Reader, Record, Role, SIZE_UNITS,
    StepLength, TIME_UNITS, TraceError, WRITTEN, Writer, runs_of,
};

use crate::dict::{Dict, column, dict};
use crate::errors;
use crate::panics::locked;

/// Number of batches between two checks for interrupts, which take about 50 ms to process.
const BATCHES_AT_ONCE: u32 = 16;
const NAMES_MAX: u32 = 1 << 20;

pub(crate) fn config(error: &TraceError) -> PyErr {
    errors::config(&error.message, error.hint.as_deref())
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct TraceReader {
    path: PathBuf,
    reader: Mutex<Reader>,
}

impl TraceReader {
    /// Passes batches to `take` until some work is done; returns `false` at the end of the trace.
    pub(crate) fn each_batch(
        &self,
        mut take: impl FnMut(&[Record], &Reader) -> PyResult<()>,
    ) -> PyResult<bool> {
        let mut reader = locked(&self.reader);
        let mut batch = Vec::new();
        for _ in 0..BATCHES_AT_ONCE {
            if !reader.next(&mut batch).map_err(|error| config(&error))? {
                return Ok(false);
            }
            take(&batch, &reader)?;
        }
        Ok(true)
    }
}

#[pymethods]
impl TraceReader {
    #[new]
    #[pyo3(signature = (path, *, format = None, columns = None, member = None))]
    fn new(
        path: PathBuf,
        format: Option<String>,
        columns: Option<&str>,
        member: Option<String>,
    ) -> PyResult<Self> {
        let columns = columns.map(parsed).transpose()?.unwrap_or_default();
        let choice = Choice { format, columns, member };
        let reader = Reader::open(&path, choice).map_err(|error| config(&error))?;
        Ok(Self { path, reader: Mutex::new(reader) })
    }

    fn __repr__(&self) -> String {
        format!("TraceReader({})", self.path.display())
    }

    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut batch = Vec::new();
        let more = py.detach(|| locked(&self.reader).next(&mut batch));
        if !more.map_err(|error| config(&error))? {
            return Ok(None);
        }
        Ok(Some(dict! {
            py,
            "time_ns" = column(py, &batch, |io| io.time_ns),
            "volume" = column(py, &batch, |io| io.volume.cast_signed()),
            "operation" = column(py, &batch, |io| io.operation as u8),
            "offset_bytes" = column(py, &batch, |io| io.offset_bytes.cast_signed()),
            "length_bytes" = column(py, &batch, |io| io.length_bytes.cast_signed()),
            "response_ns" = column(py, &batch, |io| io.response_ns),
            "process" = column(py, &batch, |io| io.process.cast_signed()),
            "content" = column(py, &batch, |io| io.content)
        }))
    }

    #[getter]
    fn formats(&self) -> Vec<&'static str> {
        locked(&self.reader).formats.clone()
    }

    #[getter]
    fn members(&self) -> Vec<String> {
        locked(&self.reader).members.clone()
    }

    #[getter]
    fn passed_over(&self) -> Vec<String> {
        locked(&self.reader).passed_over.clone()
    }

    #[getter]
    fn volumes(&self) -> Vec<String> {
        locked(&self.reader).volumes().words.clone()
    }

    #[getter]
    fn processes(&self) -> Vec<String> {
        locked(&self.reader).processes().words.clone()
    }

    #[getter]
    fn late(&self) -> u64 {
        locked(&self.reader).late()
    }

    #[getter]
    fn span(&self) -> (u64, i64) {
        locked(&self.reader).span()
    }

    #[getter]
    fn read_of_file(&self) -> (u64, u64) {
        locked(&self.reader).read_of_file()
    }

    fn skipped(&self) -> Vec<(&'static str, u64, u64, bool)> {
        let reader = locked(&self.reader);
        let each = reader.skipped().reasons().iter();
        each.map(|lines| (lines.reason, lines.lines, lines.first_line, lines.expected)).collect()
    }
}

fn parsed(columns: &str) -> PyResult<Vec<writecliff_traces::Column>> {
    writecliff_traces::parse_columns(columns).map_err(|why| {
        let example = "for example time=ts:us,operation=op,offset=lba:sectors,length=size";
        errors::config(&format!("--columns: {why}"), Some(example))
    })
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct TraceWriter {
    path: PathBuf,
    writer: Mutex<Writer>,
}

#[pymethods]
impl TraceWriter {
    #[new]
    fn new(path: PathBuf, format: &str) -> PyResult<Self> {
        let writer = Writer::create(&path, format).map_err(|error| config(&error))?;
        Ok(Self { path, writer: Mutex::new(writer) })
    }

    fn __repr__(&self) -> String {
        format!("TraceWriter({})", self.path.display())
    }

    fn take(&self, py: Python<'_>, reader: &TraceReader) -> PyResult<bool> {
        py.detach(|| {
            let mut writer = locked(&self.writer);
            reader.each_batch(|batch, of| {
                writer
                    .add(batch, &of.volumes().words, &of.processes().words)
                    .map_err(|error| errors::state(&self.path, &error))
            })
        })
    }

    fn add(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        volumes: Vec<String>,
        processes: Vec<String>,
    ) -> PyResult<()> {
        let batch = batch_of(columns)?;
        py.detach(|| locked(&self.writer).add(&batch, &volumes, &processes))
            .map_err(|error| errors::state(&self.path, &error))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| locked(&self.writer).finish())
            .map_err(|error| errors::state(&self.path, &error))
    }

    fn counts<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let writer = locked(&self.writer);
        Ok(dict! { py, writer.{records, left_out, moved} })
    }
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct TraceMeasures(Mutex<Measures>);

#[pymethods]
impl TraceMeasures {
    /// Creates the trace metrics. If `steps`, also creates the time steps of an I/O capture, with
    /// length `length_s` or a length that depends on the duration.
    #[new]
    #[pyo3(signature = (*, steps = false, length_s = None))]
    fn new(steps: bool, length_s: Option<u64>) -> Self {
        let length =
            length_s.map_or(StepLength::ByDuration, |seconds| StepLength::Given { seconds });
        let limits = MeasureLimits { steps: steps.then_some(length), ..MeasureLimits::default() };
        Self(Mutex::new(Measures::new(limits)))
    }

    fn __repr__(&self) -> String {
        format!("TraceMeasures(ios={})", self.ios())
    }

    fn take(&self, py: Python<'_>, reader: &TraceReader) -> PyResult<bool> {
        py.detach(|| {
            let mut measures = locked(&self.0);
            reader.each_batch(|batch, of| {
                measures.add(batch, &of.volumes().words, &of.processes().words);
                Ok(())
            })
        })
    }

    fn add(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        volumes: Vec<String>,
        processes: Vec<String>,
    ) -> PyResult<()> {
        let batch = batch_of(columns)?;
        let most = batch.iter().map(|io| io.volume.max(io.process)).max().unwrap_or(0);
        if most >= NAMES_MAX {
            return Err(errors::config("too many volumes or processes", None));
        }
        py.detach(|| locked(&self.0).add(&batch, &volumes, &processes));
        Ok(())
    }

    #[getter]
    fn ios(&self) -> u64 {
        locked(&self.0).ios()
    }

    fn steps(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| locked(&self.0).steps().map(|steps| steps.to_string()))
    }

    fn result(&self, py: Python<'_>) -> String {
        py.detach(|| locked(&self.0).result().to_string())
    }
}

/// Converts the columns returned by `TraceReader.next` to I/Os.
pub(crate) fn batch_of(columns: &Bound<'_, PyDict>) -> PyResult<Vec<Record>> {
    fn column<T: numpy::Element + Copy>(of: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
        let missing = || errors::config(&format!("no column '{name}'"), None);
        let values: PyReadonlyArray1<'_, T> = of.get_item(name)?.ok_or_else(missing)?.extract()?;
        Ok(values.as_array().to_vec())
    }
    let unsigned = |name: &str| -> PyResult<Vec<u64>> {
        let checked = column::<i64>(columns, name)?.into_iter().map(u64::try_from);
        let negative = |_| errors::config(&format!("{name} is negative"), None);
        checked.collect::<Result<_, _>>().map_err(negative)
    };
    let (time_ns, response_ns) =
        (column::<i64>(columns, "time_ns")?, column(columns, "response_ns")?);
    let (offset, length) = (unsigned("offset_bytes")?, unsigned("length_bytes")?);
    let (volume, process) = (column::<i32>(columns, "volume")?, column::<i32>(columns, "process")?);
    let (operation, content) = (column::<u8>(columns, "operation")?, column(columns, "content")?);
    let lengths = [volume.len(), operation.len(), offset.len(), length.len()];
    let further_lengths = [process.len(), response_ns.len(), content.len()];
    if lengths.iter().chain(&further_lengths).any(|&length| length != time_ns.len()) {
        return Err(errors::config("columns differ in length", None));
    }
    let record = |n: usize| {
        let record = Record {
            time_ns: time_ns[n],
            volume: volume[n].cast_unsigned(),
            operation: *Operation::ALL.get(usize::from(operation[n])).ok_or("unknown operation")?,
            offset_bytes: offset[n],
            length_bytes: length[n],
            response_ns: response_ns[n],
            process: process[n].cast_unsigned(),
            content: content[n],
        };
        record.check().map(|()| record)
    };
    let invalid = |row, reason| errors::config(&format!("row {row}: {reason}"), None);
    (0..time_ns.len()).map(|n| record(n).map_err(|reason| invalid(n, reason))).collect()
}

#[pyfunction]
pub(crate) fn trace_formats() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.name, format.title, format.columns, format.units)).collect()
}

#[pyfunction]
pub(crate) fn trace_formats_written() -> Vec<&'static str> {
    WRITTEN.to_vec()
}

#[pyfunction]
pub(crate) fn trace_columns(text: &str) -> PyResult<Vec<(&'static str, String, u64)>> {
    Ok(parsed(text)?
        .into_iter()
        .map(|column| (column.role.name(), column.name, column.unit))
        .collect())
}

#[pyfunction]
pub(crate) fn trace_column_words() -> (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>) {
    let names = |of: &[(&'static str, u64)]| of.iter().map(|unit| unit.0).collect();
    (Role::ALL.map(Role::name).to_vec(), names(&TIME_UNITS), names(&SIZE_UNITS))
}

#[pyfunction]
pub(crate) fn trace_operation(word: &str) -> PyResult<u8> {
    let operation = writecliff_traces::operation_of(word.as_bytes());
    operation.map(|operation| operation as u8).map_err(|why| errors::config(why, None))
}

#[pyfunction]
pub(crate) fn trace_runs<'py>(py: Python<'py>, columns: &Bound<'py, PyDict>) -> Dict<'py> {
    let of = batch_of(columns)?;
    if u32::try_from(of.len()).is_err() {
        return Err(errors::config("too many I/Os", None));
    }
    let runs = py.detach(|| runs_of(&of));
    let [read, write] = runs.ranks;
    Ok(dict! {
        py,
        "run" = column(py, &runs.run, |&run| i64::from(run)),
        "back" = column(py, &runs.back, |&back| i64::from(back)),
        "read_ranks" = read,
        "write_ranks" = write
    })
}
