//! The machine and the compiler of a measurement.

use std::fmt;
use std::fs::read_to_string;

/// The machine, as described by the operating system.
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    caches: Vec<String>,
    memory_gib: f64,
    kernel: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let of = |text: &str, name: &str| -> Option<String> {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let unknown = || "unknown".to_owned();
        let read = |path: &str| read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let family = of(&cpuinfo, "cpu family").unwrap_or_else(unknown);
        let model = of(&cpuinfo, "model\t").unwrap_or_else(unknown);
        let name = of(&cpuinfo, "model name").unwrap_or_else(unknown);
        let memory = of(&read("/proc/meminfo"), "MemTotal");
        let memory_kib = memory
            .and_then(|kib| kib.split(' ').next()?.parse::<f64>().ok())
            .unwrap_or_default();
        let cores = std::thread::available_parallelism();
        Self {
            processor: format!("{name} (family {family}, model {model})"),
            cores: cores.map_or(1, usize::from),
            caches: caches(),
            memory_gib: memory_kib / f64::from(1 << 20),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl Machine {
    /// The processor, its family and its model.
    pub(crate) fn processor(&self) -> &str {
        &self.processor
    }

    /// A short name of the processor, for file names: the first word and the
    /// numbers of [`processor`](Self::processor).
    pub(crate) fn key(&self) -> String {
        let text = self.processor.to_lowercase();
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let mut words = words.filter(|word| !word.is_empty());
        let name = words.next().unwrap_or("unknown").to_owned();
        let is_number = |word: &&str| word.parse::<u32>().is_ok();
        words.filter(is_number).fold(name, |key, word| key + "-" + word)
    }
}

/// Bytes of the largest cache, 0 if unknown.
pub(crate) fn largest_cache() -> usize {
    let sizes = caches().into_iter().filter_map(|cache| {
        let (_, size) = cache.split_once(' ')?;
        Some(size.strip_suffix('K')?.parse::<usize>().ok()? << 10)
    });
    sizes.max().unwrap_or_default()
}

/// Instruction set that tamis uses on this machine.
pub(crate) fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512vbmi2") {
            return "AVX-512";
        }
        if std::is_x86_feature_detected!("avx2") {
            return "AVX2";
        }
    }
    "no vectors"
}

/// Data caches of the first core, smallest first.
fn caches() -> Vec<String> {
    let mut caches = Vec::new();
    for index in 0..8 {
        let of = |name: &str| {
            let cache = "/sys/devices/system/cpu/cpu0/cache";
            let path = format!("{cache}/index{index}/{name}");
            read_to_string(path).map(|text| text.trim().to_owned())
        };
        let (Ok(level), Ok(kind), Ok(size)) =
            (of("level"), of("type"), of("size"))
        else {
            break;
        };
        if kind != "Instruction" {
            caches.push(format!("L{level} {size}"));
        }
    }
    caches
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, caches, memory_gib, kernel } = self;
        let caches = caches.join(", ");
        write!(
            f,
            "{processor}, {cores} cores, {caches}, {memory_gib:.0} GiB of \
             memory, Linux {kernel}"
        )
    }
}

/// The compiler.
pub(crate) const RUSTC: &str = env!("RUSTC_VERSION");

/// Version of a dependency, from the lock file.
pub(crate) fn version_of(name: &str) -> Option<&'static str> {
    const LOCK: &str = include_str!("../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let start = LOCK.find(&entry)? + entry.len();
    LOCK[start..].split('"').next()
}

/// Resident memory, and its part in huge pages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HugePages {
    huge_kib: u64,
    all_kib: u64,
}

impl HugePages {
    /// Current values of this process.
    pub(crate) fn got() -> Self {
        let maps = read_to_string("/proc/self/smaps").unwrap_or_default();
        let sum = |name: &str| {
            maps.lines()
                .filter_map(|line| line.strip_prefix(name))
                .filter_map(|kib| kib.split_whitespace().next())
                .filter_map(|kib| kib.parse::<u64>().ok())
                .sum()
        };
        Self { huge_kib: sum("AnonHugePages:"), all_kib: sum("Rss:") }
    }

    /// The one with more resident memory.
    pub(crate) fn larger(self, other: Self) -> Self {
        if other.all_kib > self.all_kib { other } else { self }
    }
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { huge_kib, all_kib } = *self;
        let share = 100.0 * huge_kib as f64 / all_kib.max(1) as f64;
        let (huge, all) = (huge_kib >> 10, all_kib >> 10);
        write!(
            f,
            "huge pages requested for large allocations; got {huge} of {all} MiB \
             ({share:.0} %)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(version_of("qfilter").is_some());
        assert_eq!(version_of("no-such-crate"), None);
    }
}
