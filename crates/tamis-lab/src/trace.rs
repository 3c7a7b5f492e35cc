//! Flows of packets: reading captures, and a generated one.

use std::collections::HashSet;
use std::error::Error;
use std::io::Read;
use std::path::Path;

use etherparse::{LaxNetSlice, LaxSlicedPacket, PacketBuilder};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError};

use crate::simulation::Keys;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of the largest block of a capture: a packet of 256 KiB, the largest
/// that tcpdump records.
const MAX_BLOCK: usize = 1 << 19;

/// Source and destination address, ports and protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    /// Source before destination, in network order.
    addresses: [u128; 2],
    ports: [u16; 2],
    protocol: u8,
    version: u8,
}

/// The distinct flows of a capture, in the order of their first packets.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(crate) packets: u64,
    /// Packets that are neither IPv4 nor IPv6.
    pub(crate) skipped: u64,
    pub(crate) flows: Vec<Flow>,
    seen: HashSet<Flow>,
}

/// Thomas Wang's mix of 64 bits, a bijection.
pub(crate) fn wang(mut key: u64) -> u64 {
    key = (!key).wrapping_add(key << 21);
    key ^= key >> 24;
    key = key.wrapping_mul(265);
    key ^= key >> 14;
    key = key.wrapping_mul(21);
    key ^= key >> 28;
    key.wrapping_add(key << 31)
}

impl Flow {
    /// The flow as words.
    fn words(&self) -> [u64; 5] {
        let [from, to] = self.addresses;
        let ports = u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]);
        let rest = u64::from(self.protocol) << 8 | u64::from(self.version);
        let half = |address: u128| [(address >> 64) as u64, address as u64];
        let ([a, b], [c, d]) = (half(from), half(to));
        [a, b, c, d, ports << 16 | rest]
    }

    /// Hash of the flow in the run `seed`: every word passes through the
    /// mix.
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        self.words().iter().fold(wang(seed), |hash, word| wang(hash ^ word))
    }

    /// The flow of a packet without a link header, none if it is not IP.
    fn of(net: &LaxNetSlice<'_>) -> Option<Self> {
        let (addresses, version) = match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let word = |bytes| u128::from(u32::from_be_bytes(bytes));
                ([header.source(), header.destination()].map(word), 4)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let both = [header.source(), header.destination()];
                (both.map(u128::from_be_bytes), 6)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let payload = net.ip_payload_ref()?;
        // TCP, UDP, DCCP, SCTP and UDP-Lite begin with both ports. Packets
        // that capture or fragmentation cut have none.
        let has_ports = matches!(payload.ip_number.0, 6 | 17 | 33 | 132 | 136);
        let ports = match payload.payload {
            [a, b, c, d, ..] if has_ports && !payload.fragmented => {
                [[*a, *b], [*c, *d]].map(u16::from_be_bytes)
            }
            _ => [0; 2],
        };
        let protocol = payload.ip_number.0;
        Some(Self { addresses, ports, protocol, version })
    }
}

impl Capture {
    /// Reads a pcap or pcapng file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let named = |error: &dyn std::fmt::Display| {
            format!("{}: {error}", path.display())
        };
        let file = std::fs::File::open(path).map_err(|e| named(&e))?;
        Self::read(file).map_err(|error| named(&error).into())
    }

    /// Reads a capture of either format.
    pub(crate) fn read(source: impl Read + Send) -> Result<Self> {
        let mut reader = pcap_parser::create_reader(MAX_BLOCK, source)
            .map_err(|error| match error {
                PcapError::Eof => "the capture is empty".to_owned(),
                PcapError::ReadError => "cannot be read".to_owned(),
                _ => "neither a pcap nor a pcapng file".to_owned(),
            })?;
        let mut capture = Self::default();
        let mut links = Vec::new();
        loop {
            let consumed = match reader.next() {
                Ok((length, block)) => {
                    capture.add_block(&block, &mut links);
                    length
                }
                Err(PcapError::Eof) => break,
                Err(PcapError::Incomplete(_)) => {
                    reader.refill().map_err(|_| "cannot be read")?;
                    continue;
                }
                // A capture that was interrupted ends in a part of a packet.
                Err(PcapError::UnexpectedEof) if capture.packets > 0 => break,
                Err(error) => {
                    let packets = capture.packets;
                    return Err(format!(
                        "damaged after {packets} packets: {error}"
                    )
                    .into());
                }
            };
            reader.consume(consumed);
        }
        Ok(capture)
    }

    fn add_block(
        &mut self,
        block: &PcapBlockOwned<'_>,
        links: &mut Vec<Linktype>,
    ) {
        let link = |number: usize| links.get(number).copied();
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                *links = vec![header.network];
            }
            PcapBlockOwned::Legacy(packet) => self.add(link(0), packet.data),
            PcapBlockOwned::NG(Block::SectionHeader(_)) => links.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                links.push(interface.linktype);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                self.add(link(packet.if_id as usize), packet.packet_data());
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                self.add(link(0), packet.packet_data());
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    /// Counts a packet and its flow.
    fn add(&mut self, link: Option<Linktype>, packet: &[u8]) {
        self.packets += 1;
        let sliced = link.and_then(|link| slice(link, packet));
        let net = sliced.as_ref().and_then(|sliced| sliced.net.as_ref());
        match net.and_then(Flow::of) {
            Some(flow) => {
                if self.seen.insert(flow.clone()) {
                    self.flows.push(flow);
                }
            }
            None => self.skipped += 1,
        }
    }
}

/// The network layer of a packet; none if the link is not one of those that
/// carry IP.
fn slice(link: Linktype, packet: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let header = match link.0 {
        // Ethernet.
        1 => return LaxSlicedPacket::from_ethernet(packet).ok(),
        // Raw IP.
        12 | 14 | 101 | 228 | 229 => 0,
        // BSD loopback, PPP with address and control, Cisco HDLC.
        0 | 108 | 50 | 104 => 4,
        9 if packet.first() == Some(&0xff) => 4,
        9 => 2,
        // Linux cooked, versions 1 and 2.
        113 => 16,
        276 => 20,
        _ => return None,
    };
    LaxSlicedPacket::from_ip(packet.get(header..)?).ok()
}

/// A capture of `flows` flows as the bytes of a pcap file. The packets of a
/// flow follow a Pareto law of exponent 1.2, addresses a few popular
/// prefixes and many others, one flow in six is IPv6.
pub(crate) fn generated(flows: u64, seed: u64) -> Result<Vec<u8>> {
    const MOST_PACKETS: f64 = 200.0;
    let draw = |flow: u64, number: u64| {
        let keys = Keys::new(seed);
        keys.member(flow << 4 | number)
    };
    let unit = |x: u64| (x >> 11) as f64 / (1u64 << 53) as f64;
    // A flow occurs once for each of its packets, in random order.
    let mut order = Vec::new();
    for flow in 0..flows {
        let packets = (1.0 - unit(draw(flow, 0))).powf(-1.0 / 1.2);
        for packet in 0..packets.min(MOST_PACKETS) as u64 {
            order.push((wang(draw(flow, 1) ^ packet), flow));
        }
    }
    order.sort_unstable();
    // Magic number, version 2.4, no snapping of packets, Ethernet.
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0xffff, 1] {
        out.extend(word.to_le_bytes());
    }
    for (number, (_, flow)) in order.iter().enumerate() {
        let packet = packet(|number| draw(*flow, number))?;
        let time = [number as u32 / 100_000, number as u32 % 100_000 * 10];
        for word in time.into_iter().chain([packet.len() as u32; 2]) {
            out.extend(word.to_le_bytes());
        }
        out.extend(packet);
    }
    Ok(out)
}

/// A packet of the flow whose random numbers are those of `draw`.
fn packet(draw: impl Fn(u64) -> u64) -> Result<Vec<u8>> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
    // The popular prefixes are those with small numbers.
    let address = |number: u64| {
        let (x, host) = (draw(number), draw(number + 1) as u32);
        let prefix = ((x as u32 >> 8) >> (x % 17)) as u16;
        (prefix, host)
    };
    let [(from, host), (to, peer)] = [address(2), address(4)];
    let builder = if draw(6) % 6 == 0 {
        let wide = |prefix: u16, host: u32| {
            (0x2001 << 112 | u128::from(prefix) << 80 | u128::from(host))
                .to_be_bytes()
        };
        builder.ipv6(wide(from, host), wide(to, peer), 60)
    } else {
        let short = |prefix: u16, host: u32| {
            (u32::from(prefix) << 16 | host & 0xffff).to_be_bytes()
        };
        builder.ipv4(short(from, host), short(to, peer), 60)
    };
    let [port, service] = [draw(7), draw(8)];
    let port = 1024 + (port % 64_000) as u16;
    let service = [443, 443, 80, 53, 25, 22, 123, 8080][service as usize % 8];
    let mut packet = Vec::new();
    if service == 53 || service == 123 {
        builder.udp(port, service).write(&mut packet, &[])?;
    } else {
        builder.tcp(port, service, 1, 1024).write(&mut packet, &[])?;
    }
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wangs_mix_is_a_bijection_of_the_published_steps() {
        // Each step is invertible; the published form shifts and adds.
        let published = |mut key: u64| {
            key = (!key).wrapping_add(key << 21);
            key ^= key >> 24;
            key = key.wrapping_add(key << 3).wrapping_add(key << 8);
            key ^= key >> 14;
            key = key.wrapping_add(key << 2).wrapping_add(key << 4);
            key ^= key >> 28;
            key.wrapping_add(key << 31)
        };
        for key in Keys::new(1).members(1000).chain(0..1000) {
            assert_eq!(wang(key), published(key));
        }
    }

    #[test]
    fn generated_captures_have_a_heavy_tail() {
        let bytes = generated(2000, 1).unwrap();
        let capture = Capture::read(&bytes[..]).unwrap();
        assert_eq!((capture.flows.len(), capture.skipped), (2000, 0));
        assert!(capture.packets > 4000);
        let wide = capture.flows.iter().filter(|flow| flow.version == 6);
        assert!((200..500).contains(&wide.count()));
        let mut hashes: Vec<u64> =
            capture.flows.iter().map(|flow| flow.hash(0)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 2000);
    }

    /// A block of a pcapng file.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    }

    #[test]
    fn both_formats_and_several_links_have_the_same_flows() {
        let bytes = generated(50, 2).unwrap();
        let flows = Capture::read(&bytes[..]).unwrap().flows;
        let words = |list: &[u32]| -> Vec<u8> {
            list.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let header = [0x1a2b_3c4d, 0x0000_0001, u32::MAX, u32::MAX];
        let mut file = block(0x0a0d_0d0a, &words(&header));
        // Interfaces: Ethernet, raw IP, and one that carries no IP.
        for link in [1, 101, 147] {
            file.extend(block(1, &words(&[link, 0])));
        }
        let mut at = 24;
        let mut number = 0;
        while at < bytes.len() {
            let length: [u8; 4] = bytes[at + 8..at + 12].try_into().unwrap();
            let length = u32::from_le_bytes(length);
            let packet = &bytes[at + 16..at + 16 + length as usize];
            let raw = number % 2;
            let packet = &packet[14 * raw..];
            let length = packet.len() as u32;
            let head = words(&[raw as u32, 0, 0, length, length]);
            file.extend(block(6, &[&head, packet].concat()));
            at += 16 + packet.len() + 14 * raw;
            number += 1;
        }
        let head = words(&[2, 0, 0, 4, 4]);
        file.extend(block(6, &[&head[..], &[1; 4]].concat()));
        let capture = Capture::read(&file[..]).unwrap();
        assert_eq!((&capture.flows, capture.skipped), (&flows, 1));
        assert_eq!(capture.packets, number as u64 + 1);
    }

    #[test]
    fn damaged_captures_are_errors_and_interrupted_ones_are_read() {
        let bytes = generated(50, 3).unwrap();
        let cut = Capture::read(&bytes[..bytes.len() - 7]).unwrap();
        assert!(cut.packets > 49);
        for (bytes, message) in
            [(&b""[..], "empty"), (b"not a capture", "neither")]
        {
            let error = Capture::read(bytes).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        // Any damage is an error or changes flows; none panics or hangs.
        for (number, position) in Keys::new(4).members(3000).enumerate() {
            let mut bytes = bytes[..bytes.len().min(4000)].to_vec();
            let place = position as usize % bytes.len();
            bytes[place] ^= 1 << (number % 8);
            bytes[(position >> 32) as usize % 40] = position as u8;
            let _ = Capture::read(&bytes[..]);
        }
    }
}
