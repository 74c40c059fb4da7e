//! Samples of all formats with equal I/Os, as far as each format can represent them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use writecliff_traces::{Choice, NO_RESPONSE, Operation, Reader, Record, TraceError};

static FILES: AtomicU32 = AtomicU32::new(0);

/// Creates a file with these bytes and an arbitrary name.
pub(crate) fn file(bytes: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("writecliff-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("trace-{}", FILES.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Reads a whole trace and returns its records and the reader.
pub(crate) fn read(
    path: &std::path::Path,
    choice: Choice,
) -> Result<(Vec<Record>, Reader), TraceError> {
    let mut reader = Reader::open(path, choice)?;
    let (mut batch, mut records) = (Vec::new(), Vec::new());
    while reader.next(&mut batch)? {
        records.append(&mut batch);
    }
    Ok((records, reader))
}

pub(crate) fn read_bytes(bytes: &[u8]) -> Result<(Vec<Record>, Reader), TraceError> {
    let path = file(bytes);
    let outcome = read(&path, Choice::default());
    std::fs::remove_file(path).unwrap();
    outcome
}

/// Returns reads and writes of two volumes, a millisecond apart, whose response times are 100 µs
/// plus their number in µs.
pub(crate) fn ios(count: u32) -> Vec<Record> {
    let mut state = 1_u64;
    (0..count)
        .map(|n| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let operation = if state >> 60 < 6 { Operation::Write } else { Operation::Read };
            let mut record = Record::new(
                i64::from(n) * 1_000_000,
                operation,
                ((state >> 20) & 0xf_ffff) * 4096,
                4096 << ((state >> 50) & 3),
            );
            record.response_ns = 100_000 + 1000 * i64::from(n % 100);
            record.volume = ((state >> 33) & 1) as u32;
            record
        })
        .collect()
}

pub(crate) fn text(records: &[Record], line: impl Fn(&Record) -> String) -> String {
    records.iter().fold(String::new(), |mut all, record| {
        writeln!(all, "{}", line(record)).unwrap();
        all
    })
}

pub(crate) fn letter(record: &Record, read: &str, write: &str) -> String {
    if record.operation == Operation::Read { read.to_owned() } else { write.to_owned() }
}

pub(crate) fn msr(records: &[Record]) -> String {
    text(records, |record| {
        format!(
            "{},srv,{},{},{},{},{}",
            128_166_372_003_061_629 + record.time_ns / 100,
            record.volume,
            letter(record, "Read", "Write"),
            record.offset_bytes,
            record.length_bytes,
            record.response_ns / 100
        )
    })
}

pub(crate) fn systor(records: &[Record]) -> String {
    let rows = text(records, |record| {
        let ns = 1_455_592_202_053_823_000 + record.time_ns;
        format!(
            "{}.{:09},{:.9},{},{},{},{}",
            ns / 1_000_000_000,
            ns % 1_000_000_000,
            record.response_ns as f64 / 1e9,
            letter(record, "R", "W"),
            record.volume,
            record.offset_bytes,
            record.length_bytes
        )
    });
    format!("Timestamp,Response,IOType,LUN,Offset,Size\n{rows}")
}

pub(crate) fn alibaba(records: &[Record]) -> String {
    text(records, |record| {
        format!(
            "{},{},{},{},{}",
            record.volume,
            letter(record, "R", "W"),
            record.offset_bytes,
            record.length_bytes,
            1_577_808_144_360_767 + record.time_ns / 1000
        )
    })
}

pub(crate) fn tencent(records: &[Record]) -> String {
    text(records, |record| {
        format!(
            "{},{},{},{},{}",
            1_538_323_200 + record.time_ns / 1_000_000_000,
            record.offset_bytes / 512,
            record.length_bytes / 512,
            letter(record, "0", "1"),
            1283 + record.volume
        )
    })
}

pub(crate) fn spc(records: &[Record]) -> String {
    text(records, |record| {
        format!(
            "{},{},{},{},{:.6}",
            record.volume,
            record.offset_bytes / 512,
            record.length_bytes,
            letter(record, "R", "w"),
            record.time_ns as f64 / 1e9
        )
    })
}

pub(crate) fn disksim(records: &[Record]) -> String {
    text(records, |record| {
        format!(
            "{:.6} {} {} {} {}",
            record.time_ns as f64 / 1e6,
            record.volume,
            record.offset_bytes / 512,
            record.length_bytes / 512,
            letter(record, "1", "0")
        )
    })
}

pub(crate) fn fiu(records: &[Record]) -> String {
    text(records, |record| {
        format!(
            "{} 4892 syslogd {} {} {} 6 {} {:032x}",
            89_966_590_000_000 + record.time_ns,
            record.offset_bytes / 512,
            record.length_bytes / 512,
            letter(record, "R", "W"),
            record.volume,
            u128::from(record.offset_bytes + 1) << 64
        )
    })
}

pub(crate) fn etw(records: &[Record]) -> String {
    let rows = text(records, |record| {
        format!(
            "{:>20}, {:>10}, {:>23}, {:>10}, 0xfffffa8005dbd010, 0x{:09x}, 0x{:08x}, {:>8}, {:>8}, \
             0x060043, {:>8}, Normal, 0, 0xfffff8a00b3c8b60, \"C:\\pagefile.sys\"",
            letter(record, "DiskRead", "DiskWrite"),
            5_000_000 + (record.time_ns + record.response_ns) / 1000,
            "svchost.exe ( 344)",
            4012,
            record.offset_bytes,
            record.length_bytes,
            record.response_ns / 1000,
            record.volume,
            record.response_ns / 1000
        )
    });
    format!(
        "BeginHeader\n            DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID\n\
         EndHeader\nOS Version: 6.0.6001, Trace Size: 10240KB\n{rows}"
    )
}

pub(crate) fn fio_iolog(records: &[Record], version: u8) -> String {
    let mut last = 0;
    let mut all = format!("fio version {version} iolog\n");
    for file in ["sda", "sdb"] {
        let time = if version == 3 { "0 " } else { "" };
        write!(all, "{time}/dev/{file} add\n{time}/dev/{file} open\n").unwrap();
    }
    for record in records {
        let file = ["/dev/sda", "/dev/sdb"][record.volume as usize];
        let (us, action) = (record.time_ns / 1000, letter(record, "read", "write"));
        if version == 3 {
            write!(all, "{us} ").unwrap();
        } else if us > last {
            writeln!(all, "{file} wait {} 0", us - last).unwrap();
            last = us;
        }
        writeln!(all, "{file} {action} {} {}", record.offset_bytes, record.length_bytes).unwrap();
    }
    all
}

/// Returns the events of requests in time order: queued, created, issued, completed.
fn events(records: &[Record]) -> Vec<(i64, char, Record)> {
    let mut all: Vec<_> = records
        .iter()
        .flat_map(|&record| {
            [
                (record.time_ns, 'Q', record),
                (record.time_ns, 'G', record),
                (record.time_ns, 'I', record),
                (record.time_ns, 'D', record),
                (record.time_ns + record.response_ns, 'C', record),
            ]
        })
        .collect();
    all.sort_by_key(|event| event.0);
    all
}

pub(crate) fn blkparse(records: &[Record]) -> String {
    let mut all = String::new();
    for (n, (time_ns, action, record)) in events(records).into_iter().enumerate() {
        writeln!(
            all,
            "  8,{:<3} 1 {n:>8} {:>5}.{:09}  697  {action}  {} {} + {} [{}]",
            16 * record.volume,
            time_ns / 1_000_000_000,
            time_ns % 1_000_000_000,
            letter(&record, "RA", "WS"),
            record.offset_bytes / 512,
            record.length_bytes / 512,
            if action == 'C' { "0" } else { "kjournald" }
        )
        .unwrap();
    }
    all + "CPU0 (sda):\n Reads Queued:           5,       20KiB\nThroughput (R/W): 20KiB/s\n"
}

pub(crate) fn tracefs(records: &[Record]) -> String {
    let mut all =
        "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n".to_owned();
    for (time_ns, action, record) in events(records) {
        let Some((event, size, process)) = (match action {
            'G' => Some(("block_getrq", String::new(), "kjournald")),
            'D' => Some(("block_rq_issue", format!("{} () ", record.length_bytes), "kjournald")),
            'C' => Some(("block_rq_complete", "() ".to_owned(), "0")),
            _ => None,
        }) else {
            continue;
        };
        writeln!(
            all,
            "  kjournald-697 [001] d..2. {:>6}.{:06}: {event}: 8,{} {} {size}{} + {} [{process}]",
            77 + time_ns / 1_000_000_000,
            time_ns % 1_000_000_000 / 1000,
            16 * record.volume,
            letter(&record, "R", "WS"),
            record.offset_bytes / 512,
            record.length_bytes / 512,
        )
        .unwrap();
    }
    all
}

pub(crate) fn biosnoop(records: &[Record]) -> String {
    let rows = text(records, |record| {
        format!(
            "{:<11.6} {:<14} {:<7} {:<9} {} {:<10} {:<6} {:>7.3}",
            (record.time_ns + record.response_ns) as f64 / 1e9,
            "jbd2 sda1",
            697,
            ["sda", "sdb"][record.volume as usize],
            letter(record, "R", "W"),
            record.offset_bytes / 512,
            record.length_bytes,
            record.response_ns as f64 / 1e6
        )
    });
    format!("TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n{rows}")
}

pub(crate) fn vscsi(records: &[Record], version: u16) -> Vec<u8> {
    let mut all = Vec::new();
    for (n, record) in (1_u32..).zip(records) {
        let command: u16 = if record.operation == Operation::Read { 0x28 } else { 0x2a };
        let (length, ver) = (record.length_bytes as u32, (version << 8) | 1);
        let numbers = [n, length, 1].map(u32::to_le_bytes).concat();
        let words = [command, ver].map(u16::to_le_bytes).concat();
        all.extend(if version == 1 {
            [numbers, words].concat()
        } else {
            [words, numbers].concat()
        });
        let long = [record.offset_bytes / 512, 1_307_000_000 + record.time_ns as u64 / 1000];
        all.extend(long.map(u64::to_le_bytes).concat());
        if version == 2 {
            all.extend((record.response_ns as u64 / 1000).to_le_bytes());
        }
    }
    all
}

/// Returns an event in blktrace's binary format.
pub(crate) fn blktrace_event(
    time_ns: i64,
    action: u32,
    record: &Record,
    error: u16,
    pdu: &[u8],
) -> Vec<u8> {
    let mut all = Vec::new();
    all.extend(0x6561_7407_u32.to_le_bytes());
    all.extend(1_u32.to_le_bytes());
    all.extend((time_ns as u64).to_le_bytes());
    all.extend((record.offset_bytes / 512).to_le_bytes());
    let device = (8 << 20) | (16 * record.volume);
    for word in [record.length_bytes as u32, action, 697, device, 0] {
        all.extend(word.to_le_bytes());
    }
    all.extend(error.to_le_bytes());
    all.extend((pdu.len() as u16).to_le_bytes());
    all.extend(pdu);
    all
}

pub(crate) fn blktrace(records: &[Record]) -> Vec<u8> {
    let mut all =
        blktrace_event(0, 1 << 26, &Record::new(0, Operation::Read, 0, 0), 0, b"kjournald\0\0\0");
    for (time_ns, action, record) in events(records) {
        let (number, category) = match action {
            'Q' => (1, 1 << 4),
            'G' => (4, 1 << 4),
            'I' => (12, 1 << 4),
            'D' => (7, 1 << 6),
            _ => (8, 1 << 7),
        };
        let operation = if record.operation == Operation::Read { 1 } else { 1 << 1 };
        all.extend(blktrace_event(
            time_ns,
            number | ((category | operation) << 16),
            &record,
            0,
            &[],
        ));
    }
    all
}

/// Returns the records with the precision of a format: times in units of `unit_ns`, and no response
/// times if the format has none.
pub(crate) fn rounded(records: &[Record], unit_ns: i64, responses: bool) -> Vec<Record> {
    let keep = |record: &Record| Record {
        time_ns: record.time_ns / unit_ns * unit_ns,
        response_ns: if responses { record.response_ns / unit_ns * unit_ns } else { NO_RESPONSE },
        ..*record
    };
    records.iter().map(keep).collect()
}
