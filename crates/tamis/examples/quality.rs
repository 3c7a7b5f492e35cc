use tamis::*;
fn mix(mut z: u64) -> u64 { z = z.wrapping_add(0x9e3779b97f4a7c15); z=(z^(z>>30)).wrapping_mul(0xbf58476d1ce4e5b9); z=(z^(z>>27)).wrapping_mul(0x94d049bb133111eb); z^(z>>31) }
fn go<F: Filter>(name:&str, f:&F, theory: f64, q: u64) {
    let mut hits=0u64; let mut found=vec![]; let mut h=vec![];
    for c in 0..q/65536 { h.clear(); for i in 0..65536u64 { h.push(f.hasher().hash(&mix(c*65536+i+(1<<40)))); } f.contains_hash_batch(&h,&mut found); hits+=found.iter().filter(|x| **x).count() as u64; }
    let n=(q/65536*65536) as f64; let e=f.stats().expected_fpr; let p=hits as f64/n; let z=(hits as f64-n*e)/(n*e*(1.0-e)).sqrt();
    println!("{name:24} theory {theory:.6e} expected {e:.6e} ({:+.3}%) measured {p:.6e} ({:+.3}%) z={z:+.2}", (e/theory-1.0)*100.0,(p/e-1.0)*100.0);
}
fn main(){
    let n: u64=std::env::args().nth(1).map_or(1_000_000,|x|x.parse().unwrap()); let q: u64=std::env::args().nth(2).map_or(100_000_000,|x|x.parse().unwrap());
    let keys:Vec<u64>=(0..n).map(mix).collect();
    for b in [8.0,10.0,12.0,16.0,20.0] {
        let mut f=Blocked::builder().items(n).bits_per_key(b).build().unwrap(); f.insert_batch(&keys); go(&format!("blocked512 {b} k={}",f.probes()),&f,f.stats().design_fpr,q);
        let mut f=Blocked::builder().items(n).block_bits(256).bits_per_key(b).build().unwrap(); f.insert_batch(&keys); go(&format!("blocked256 {b} k={}",f.probes()),&f,f.stats().design_fpr,q);
        let mut f=Split::builder().items(n).bits_per_key(b).build().unwrap(); f.insert_batch(&keys); go(&format!("split {b} k={}",f.probes()),&f,f.stats().design_fpr,q);
        let mut f=Bloom::builder().items(n).bits_per_key(b).build().unwrap(); f.insert_batch(&keys); go(&format!("bloom {b} k={}",f.probes()),&f,f.stats().design_fpr,q);
    }
}
