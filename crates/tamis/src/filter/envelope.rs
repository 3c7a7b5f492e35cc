//! The part of a filter that is the same for every kind: hash function,
//! counts, memory and metadata; opened, copied, verified and written.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::{Error, Result};
use crate::format::{
    self, Counts, GeometryBytes, Header, Image, Kind, Metadata, SectionTag,
    Sections,
};
use crate::key::KeyHasher;
use crate::memory::Owned;

/// Everything around the blocks of a filter.
#[derive(Clone)]
pub(super) struct Envelope<D = Owned> {
    pub(super) hasher: KeyHasher,
    pub(super) counts: Counts,
    pub(super) data: D,
    /// Range of the blocks in `data`: behind a header if `data` is an image,
    /// from 0 on otherwise.
    pub(super) payload: Range<usize>,
    metadata: MetadataBytes,
}

/// The metadata section; empty without metadata.
#[derive(Clone)]
enum MetadataBytes {
    /// A range of `data`, which is an image.
    Stored(Range<usize>),
    Owned(Vec<u8>),
}

impl Envelope {
    /// Around zero bytes; `bytes` is `None` if their number overflows.
    pub(super) fn zeroed(
        bytes: Option<u64>,
        hasher: KeyHasher,
        counts: Counts,
    ) -> Result<Self> {
        let metadata = MetadataBytes::Owned(Vec::new());
        let none =
            Envelope { hasher, counts, data: (), payload: 0..0, metadata };
        none.resized(bytes, counts)
    }

    pub(super) fn clear(&mut self) {
        self.counts.items = 0;
        self.data.as_mut().fill(0);
    }

    /// Counts inserted keys.
    #[inline(always)]
    pub(super) fn add_items(&mut self, added: u64) {
        self.counts.items = self.counts.items.saturating_add(added);
    }
}

impl<D> Envelope<D> {
    /// Around zero bytes, with the hash function and the metadata of an
    /// envelope that is no view; `bytes` is `None` if their number overflows.
    pub(super) fn resized(
        &self,
        bytes: Option<u64>,
        counts: Counts,
    ) -> Result<Envelope> {
        let bytes = bytes.ok_or(Error::Allocation { bytes: u64::MAX })?;
        let data = Owned::zeroed(bytes)?;
        let payload = 0..data.as_ref().len();
        let Self { hasher, metadata, .. } = self;
        let (hasher, metadata) = (*hasher, metadata.clone());
        Ok(Envelope { hasher, counts, data, payload, metadata })
    }

    /// Around the same blocks in another form, in an envelope that is no view.
    #[cfg(feature = "std")]
    pub(super) fn map<E>(self, map: impl FnOnce(D) -> E) -> Envelope<E> {
        let Self { hasher, counts, data, payload, metadata } = self;
        let data = map(data);
        Envelope { hasher, counts, data, payload, metadata }
    }
}

impl<D: AsRef<[u8]>> Envelope<D> {
    /// Around an image with this header. `sections` are the tags and lengths
    /// of the kind's sections, blocks first; also returns the ranges of all.
    pub(super) fn view<const N: usize>(
        header: &Header,
        data: D,
        sections: [(SectionTag, Option<u64>); N],
    ) -> Result<(Self, [Range<usize>; N])> {
        let Sections { places, metadata } = Sections::find(header, sections)?;
        let envelope = Self {
            hasher: header.hasher,
            counts: header.counts,
            data,
            payload: places[0].clone(),
            metadata: MetadataBytes::Stored(metadata),
        };
        Ok((envelope, places))
    }

    /// Copies the blocks and the metadata.
    pub(super) fn into_owned(self) -> Result<Envelope> {
        let data = Owned::copy_of(self.blocks())?;
        let payload = 0..data.as_ref().len();
        let metadata = MetadataBytes::Owned(self.checked_metadata()?.to_vec());
        let Self { hasher, counts, .. } = self;
        Ok(Envelope { hasher, counts, data, payload, metadata })
    }

    #[inline(always)]
    pub(super) fn blocks(&self) -> &[u8] {
        &self.data.as_ref()[self.payload.clone()]
    }

    /// The metadata section, not checked.
    fn metadata_bytes(&self) -> &[u8] {
        match &self.metadata {
            MetadataBytes::Stored(place) => &self.data.as_ref()[place.clone()],
            MetadataBytes::Owned(bytes) => bytes,
        }
    }

    /// The metadata section, after a check of its checksum.
    fn checked_metadata(&self) -> Result<&[u8]> {
        match &self.metadata {
            MetadataBytes::Stored(place) if !place.is_empty() => {
                format::metadata_bytes(self.data.as_ref())
            }
            _ => Ok(self.metadata_bytes()),
        }
    }

    pub(super) fn metadata(&self) -> Result<Metadata<'_>> {
        Metadata::parse(self.checked_metadata()?)
    }

    pub(super) fn set_metadata(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<()> {
        let changed = self.metadata()?.with(name, value)?;
        self.metadata = MetadataBytes::Owned(changed);
        Ok(())
    }

    /// Checks the image, if the filter is a view of one, and the metadata.
    pub(super) fn verify(&self) -> Result<()> {
        self.verify_range(0..u64::MAX)?;
        self.metadata().map(|_| ())
    }

    /// Checks the chunks that overlap a range of the image, if the filter is
    /// a view of one.
    pub(super) fn verify_range(&self, range: Range<u64>) -> Result<()> {
        match self.payload.start {
            0 => Ok(()),
            _ => format::verify(self.data.as_ref(), range),
        }
    }

    /// The header of the image with this geometry and an overflow list of
    /// `list` bytes.
    pub(super) fn header(
        &self,
        kind: Kind,
        geometry: GeometryBytes,
        list: Option<usize>,
    ) -> Header {
        let metadata = self.metadata_bytes().len();
        let sections = [
            (SectionTag::BLOCKS, Some(self.payload.len())),
            (SectionTag::LIST, list),
            (SectionTag::METADATA, (metadata > 0).then_some(metadata)),
        ];
        let sections = sections.into_iter();
        Header::layout(
            (kind, self.hasher, self.counts),
            geometry,
            sections.filter_map(|(tag, len)| Some((tag, len? as u64))),
        )
    }

    /// The image, with this geometry and overflow list.
    pub(super) fn image<'a>(
        &'a self,
        kind: Kind,
        geometry: GeometryBytes,
        list: Option<Cow<'a, [u8]>>,
    ) -> Image<'a> {
        let list_bytes = list.as_ref().map(|list| list.len());
        let header = self.header(kind, geometry, list_bytes);
        let metadata = self.metadata_bytes();
        let metadata = (!metadata.is_empty()).then_some(metadata.into());
        let sections = [Some(self.blocks().into()), list, metadata];
        Image { header, sections: sections.into_iter().flatten().collect() }
    }
}

/// The methods of `Filter` that the field `envelope` answers.
macro_rules! envelope_methods {
    () => {
        #[inline]
        fn hasher(&self) -> &$crate::KeyHasher {
            &self.envelope.hasher
        }

        fn len(&self) -> u64 {
            self.envelope.counts.items
        }

        fn capacity(&self) -> u64 {
            self.envelope.counts.design_items
        }

        fn design_fpr(&self) -> f64 {
            self.envelope.counts.design_fpr
        }
    };
}
pub(super) use envelope_methods;
