//! The engines under one interface.

use std::error::Error;
use std::path::Path;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A key: 16 bytes.
pub(crate) type Key = [u8; 16];

/// Memory that an engine may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Write buffer or memtable.
    pub(crate) buffer: u64,
    /// Cache of blocks or pages, where the engine has its own.
    pub(crate) cache: u64,
}

/// Names of the engines, ours first.
pub(crate) const ENGINES: &[&str] = &[
    "tamis",
    "tamis-mapped",
    "tamis-direct",
    "tamis-threads",
    "tamis-direct-threads",
    "redb",
    "fjall",
    "lmdb",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
];

/// The engine whose store this one reads, if it is a form of reading.
pub(crate) fn form_of(name: &str) -> Option<&'static str> {
    name.starts_with("tamis-").then_some("tamis")
}

/// An open store.
pub(crate) trait Engine {
    /// Reads a value, and calls `check` with it.
    fn get(&self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Reads the values of several keys.
    fn get_many(
        &self,
        keys: &[Key],
        check: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, &mut |value| check(i, value))?;
        }
        Ok(())
    }

    /// Writes and deletes. Durable on return if `sync`.
    fn write(
        &mut self,
        operations: &[(Key, Option<Vec<u8>>)],
        sync: bool,
    ) -> Result<()>;

    /// Makes all durable and does the work that was put off.
    fn settle(&mut self) -> Result<()>;

    /// Adds records to an empty store, in the way that suits it best.
    fn load(&mut self, records: &[(Key, Option<Vec<u8>>)]) -> Result<()> {
        self.write(records, false)
    }
}

pub(crate) fn open(
    name: &str,
    dir: &Path,
    memory: Memory,
    create: bool,
) -> Result<Box<dyn Engine>> {
    Ok(match name {
        _ if name.starts_with("tamis") => {
            Box::new(Tamis::open(name, dir, memory, create)?)
        }
        "redb" => Box::new(Redb::open(dir, memory)?),
        "fjall" => Box::new(Fjall::open(dir, memory)?),
        "lmdb" => Box::new(Lmdb::open(dir)?),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Box::new(Rocks::open(dir, memory)?),
        _ => return Err(format!("no engine `{name}`").into()),
    })
}

struct Tamis {
    store: tamis_store::Store,
    loader: Option<tamis_store::Loader>,
}

impl Tamis {
    fn open(
        name: &str,
        dir: &Path,
        memory: Memory,
        create: bool,
    ) -> Result<Self> {
        use tamis_store::{
            Durability, Options, Overlap, QueueState, ReadMode, Store,
        };
        let (mode, overlap) = match name {
            "tamis" => (ReadMode::Buffered, Overlap::Queue),
            "tamis-mapped" => (ReadMode::Mapped, Overlap::Queue),
            "tamis-direct" => (ReadMode::Direct, Overlap::Queue),
            "tamis-threads" => (ReadMode::Buffered, Overlap::Threads),
            "tamis-direct-threads" => (ReadMode::Direct, Overlap::Threads),
            _ => return Err(format!("no engine `{name}`").into()),
        };
        let options = Options::new()
            .ram(256 << 20)
            .buffer_bytes(memory.buffer)
            .absent_reads(0.001)
            .durability(Durability::None)
            .read_mode(mode)
            .overlap(overlap);
        let store = match create {
            true => Store::create(dir, &options)?,
            false => Store::open(dir, &options)?,
        };
        if let QueueState::Refused(error) = store.stats()?.queue {
            eprintln!("{name} reads in threads: {error}");
        }
        Ok(Self { store, loader: None })
    }
}

impl Engine for Tamis {
    fn get(&self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.store.get(key)?;
        if let Some(value) = &value {
            check(value);
        }
        Ok(value.is_some())
    }

    fn get_many(
        &self,
        keys: &[Key],
        check: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        for (i, value) in self.store.get_many(keys)?.into_iter().enumerate() {
            if let Some(value) = value {
                check(i, &value);
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        operations: &[(Key, Option<Vec<u8>>)],
        sync: bool,
    ) -> Result<()> {
        let mut batch = tamis_store::Batch::new();
        for (key, value) in operations {
            match value {
                Some(value) => batch.put(key, value)?,
                None => batch.delete(key)?,
            }
        }
        self.store.write_batch(&batch)?;
        if sync {
            self.store.flush()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        if let Some(loader) = self.loader.take() {
            loader.finish()?;
            return Ok(());
        }
        Ok(self.store.compact()?)
    }

    fn load(&mut self, records: &[(Key, Option<Vec<u8>>)]) -> Result<()> {
        let loader = match &mut self.loader {
            Some(loader) => loader,
            empty => empty.insert(self.store.loader()?),
        };
        for (key, value) in records {
            loader.put(key, value.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

struct Redb {
    db: redb::Database,
    /// A read transaction that serves until the next write.
    table: Option<redb::ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

const TABLE: redb::TableDefinition<&[u8], &[u8]> =
    redb::TableDefinition::new("t");

impl Redb {
    fn open(dir: &Path, memory: Memory) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let db = redb::Database::builder()
            .set_cache_size(memory.cache as usize)
            .create(dir.join("redb"))?;
        let mut this = Self { db, table: None };
        this.read_again();
        Ok(this)
    }

    fn read_again(&mut self) {
        use redb::ReadableDatabase as _;
        self.table = None;
        let read = self.db.begin_read().ok();
        self.table = read.and_then(|read| read.open_table(TABLE).ok());
    }
}

impl Engine for Redb {
    fn get(&self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = self.table.as_ref().ok_or("an empty store")?;
        let value = table.get(&key[..])?;
        if let Some(value) = &value {
            check(value.value());
        }
        Ok(value.is_some())
    }

    fn write(
        &mut self,
        operations: &[(Key, Option<Vec<u8>>)],
        sync: bool,
    ) -> Result<()> {
        self.table = None;
        let mut write = self.db.begin_write()?;
        write.set_durability(match sync {
            true => redb::Durability::Immediate,
            false => redb::Durability::None,
        })?;
        {
            let mut table = write.open_table(TABLE)?;
            for (key, value) in operations {
                match value {
                    Some(value) => {
                        table.insert(&key[..], &value[..])?;
                    }
                    None => {
                        table.remove(&key[..])?;
                    }
                }
            }
        }
        write.commit()?;
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.write(&[], true)?;
        self.read_again();
        Ok(())
    }
}

struct Fjall {
    db: fjall::Database,
    items: fjall::Keyspace,
}

impl Fjall {
    fn open(dir: &Path, memory: Memory) -> Result<Self> {
        let db =
            fjall::Database::builder(dir).cache_size(memory.cache).open()?;
        let items = db.keyspace("t", || {
            fjall::KeyspaceCreateOptions::default()
                .max_memtable_size(memory.buffer)
        })?;
        Ok(Self { db, items })
    }
}

impl Engine for Fjall {
    fn get(&self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.items.get(key)?;
        if let Some(value) = &value {
            check(value);
        }
        Ok(value.is_some())
    }

    fn write(
        &mut self,
        operations: &[(Key, Option<Vec<u8>>)],
        sync: bool,
    ) -> Result<()> {
        let mut batch = self.db.batch();
        for (key, value) in operations {
            match value {
                Some(value) => {
                    batch.insert(&self.items, &key[..], &value[..]);
                }
                None => batch.remove(&self.items, &key[..]),
            }
        }
        batch.commit()?;
        if sync {
            self.db.persist(fjall::PersistMode::SyncAll)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.items.rotate_memtable_and_wait()?;
        self.items.major_compact()?;
        self.db.persist(fjall::PersistMode::SyncAll)?;
        Ok(())
    }
}

struct Lmdb {
    env: heed::Env,
    db: heed::Database<heed::types::Bytes, heed::types::Bytes>,
    read: Option<heed::RoTxn<'static, heed::WithTls>>,
}

impl Lmdb {
    fn open(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(64 << 30);
        // SAFETY: no other process opens this environment, and the flag only
        // asks for random access.
        let env = unsafe {
            options.flags(heed::EnvFlags::NO_READ_AHEAD);
            options.open(dir)?
        };
        let mut write = env.write_txn()?;
        let db = env.create_database(&mut write, None)?;
        write.commit()?;
        let read = Some(env.clone().static_read_txn()?);
        Ok(Self { env, db, read })
    }
}

impl Engine for Lmdb {
    fn get(&self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let read = self.read.as_ref().ok_or("no read transaction")?;
        let value = self.db.get(read, key)?;
        if let Some(value) = value {
            check(value);
        }
        Ok(value.is_some())
    }

    fn write(
        &mut self,
        operations: &[(Key, Option<Vec<u8>>)],
        sync: bool,
    ) -> Result<()> {
        self.read = None;
        // SAFETY: this flag may change between transactions, and no other
        // thread uses the environment.
        unsafe {
            let mode = match sync {
                true => heed::FlagSetMode::Disable,
                false => heed::FlagSetMode::Enable,
            };
            self.env.set_flags(heed::EnvFlags::NO_SYNC, mode)?;
        }
        let mut write = self.env.write_txn()?;
        for (key, value) in operations {
            match value {
                Some(value) => self.db.put(&mut write, key, value)?,
                None => {
                    self.db.delete(&mut write, key)?;
                }
            }
        }
        write.commit()?;
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.env.force_sync()?;
        self.read = Some(self.env.clone().static_read_txn()?);
        Ok(())
    }
}

#[cfg(feature = "rocksdb")]
struct Rocks(rocksdb::DB);

#[cfg(feature = "rocksdb")]
impl Rocks {
    fn open(dir: &Path, memory: Memory) -> Result<Self> {
        let mut table = rocksdb::BlockBasedOptions::default();
        table.set_bloom_filter(10.0, false);
        let cache = rocksdb::Cache::new_lru_cache(memory.cache as usize)?;
        table.set_block_cache(&cache);
        table.set_cache_index_and_filter_blocks(false);
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        options.set_write_buffer_size(memory.buffer as usize);
        options.set_compression_type(rocksdb::DBCompressionType::None);
        options.set_block_based_table_factory(&table);
        options.set_advise_random_on_open(true);
        Ok(Self(rocksdb::DB::open(&options, dir)?))
    }
}

#[cfg(feature = "rocksdb")]
impl Engine for Rocks {
    fn get(&self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.get_pinned(key)?;
        if let Some(value) = &value {
            check(value);
        }
        Ok(value.is_some())
    }

    fn write(
        &mut self,
        operations: &[(Key, Option<Vec<u8>>)],
        sync: bool,
    ) -> Result<()> {
        let mut batch = rocksdb::WriteBatch::default();
        for (key, value) in operations {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        let mut options = rocksdb::WriteOptions::default();
        options.set_sync(sync);
        self.0.write_opt(batch, &options)?;
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.0.flush()?;
        self.0.compact_range::<&[u8], &[u8]>(None, None);
        Ok(())
    }
}
