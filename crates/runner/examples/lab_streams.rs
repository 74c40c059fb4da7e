use writecliff_ftl::{gc::GcPolicy,placement::PlacementPolicy,spare::SparePolicy};
use writecliff_runner::validation::{WafCase,placement::*};
fn main(){
  let a:Vec<String>=std::env::args().collect();
  let n=|i:usize,d:f64|a.get(i).and_then(|x|x.parse().ok()).unwrap_or(d);
  let units=n(2,4096.) as u32; let slots=n(3,256.) as u32; let w=n(4,10.) as u32;let m=n(5,10.) as u32;
  let own=PlacementPolicy::Own;
  let g=SparePolicy::Global;
  let arms=[("rejoin",Treatment{streams:false,placement:PlacementPolicy::Rejoin,spare:g}),("mixed",Treatment{streams:false,placement:own,spare:g}),("global",Treatment{streams:true,placement:own,spare:g}),("shared",Treatment{streams:true,placement:PlacementPolicy::Shared,spare:g}),("tuned",Treatment{streams:true,placement:own,spare:SparePolicy::SelfTuned})];
  if a[1]=="fms" {
   for policy in [GcPolicy::Greedy,GcPolicy::Fifo] { for op in [0.07,0.127,0.145,0.20,0.28]{ for (nm,reading) in [("I1",Lifetimes::BySize),("I2",Lifetimes::ByRate)] { 
    let mut out=format!("{} {op} {nm}",policy.name());
    for request in [1,32] {
     let case=WafCase{policy,overprovision:op,units,slots,seed:1,warm_up:w,measured:m};
     for (name,how) in arms { if name=="mixed"||(name!="rejoin" && (request==1||policy!=GcPolicy::Greedy))||name=="global"{continue;}
      let row=placement(&case,Load::Sequential{reading,request},how).unwrap();
      out+=&format!(" {name}/{request} {:.3}",row.waf_measured);
     }}
    println!("{out}");
   }}}
   return;
  }
  if a[1]=="warp" {
   for ru in [256u32,128]{ for op in [0.03,0.05,0.07,0.10,0.14] {
    let user=224*1024/ru; let total=(f64::from(user)*(1.0+op)) as u32;
    let ope=f64::from(total-4)/f64::from(user)-1.0; let case=WafCase{policy:GcPolicy::Greedy,overprovision:ope,units:total,slots:slots*ru/256,seed:1,warm_up:w,measured:m};
    let mut out=format!("RU {ru} OP {op} units {total}");
    for (name,how) in arms {
     match placement(&case,Load::ThreeWriters,how){Ok(row)=>out+=&format!(" {name} {:.3}",row.waf_measured),Err(e)=>out+=&format!(" {name} {e}")}
    }
    println!("{out}");
   }}
   return;
  }
  for (op,f,r) in [(0.07,0.2,0.8),(0.07,0.1,0.9),(0.07,0.05,0.95),(0.28,0.2,0.8)] {
   let case=WafCase{policy:GcPolicy::Greedy,overprovision:op,units,slots,seed:1,warm_up:w,measured:m};
   let t=std::time::Instant::now();
   for (name,how) in arms {
    if a[1]!="all" && a[1]!=name {continue;}
    let row=placement(&case,Load::HotCold{data:f,writes:r},how).unwrap();
    println!("{op} {f}/{r} {name} {:.4} th {:.4} err {:+.3}% {:.1}s",row.waf_measured,row.waf_theory,100.*(row.waf_measured/row.waf_theory-1.),t.elapsed().as_secs_f64());
   }
  }
}
