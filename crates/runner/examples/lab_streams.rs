use writecliff_ftl::{gc::GcPolicy,placement::PlacementPolicy,spare::SparePolicy};
use writecliff_runner::validation::{WafCase,placement::*};
fn main(){
  let a:Vec<String>=std::env::args().collect();
  let n=|i:usize,d:f64|a.get(i).and_then(|x|x.parse().ok()).unwrap_or(d);
  let units=n(2,4096.) as u32; let slots=n(3,256.) as u32; let w=n(4,10.) as u32;let m=n(5,10.) as u32;
  for (op,f,r) in [(0.07,0.2,0.8),(0.07,0.1,0.9),(0.07,0.05,0.95),(0.28,0.2,0.8)] {
   let case=WafCase{policy:GcPolicy::Greedy,overprovision:op,units,slots,seed:1,warm_up:w,measured:m};
   let t=std::time::Instant::now();
   let own=PlacementPolicy::Own;
   for (name,how) in [("mixed",Treatment{streams:false,placement:own,spare:SparePolicy::Global}),("global",Treatment{streams:true,placement:own,spare:SparePolicy::Global}),("shared",Treatment{streams:true,placement:PlacementPolicy::Shared,spare:SparePolicy::Global}),("tuned",Treatment{streams:true,placement:own,spare:SparePolicy::SelfTuned})]{
    if a[1]!="all" && a[1]!=name {continue;}
    let row=placement(&case,Load::HotCold{data:f,writes:r},how).unwrap();
    println!("{op} {f}/{r} {name} {:.4} th {:.4} err {:+.3}% {:.1}s",row.waf_measured,row.waf_theory,100.*(row.waf_measured/row.waf_theory-1.),t.elapsed().as_secs_f64());
   }
  }
}
