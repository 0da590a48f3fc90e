import { systemUse } from '@svc/core'
import { createSqliteStore } from '../src/store.ts'
import { rmSync } from 'node:fs'
const use = systemUse(new AbortController().signal)
rmSync('/tmp/bench/s', {recursive:true, force:true})
const store = createSqliteStore({path:'/tmp/bench/s/svc.db'})
await store.open({name:'chat',version:1,collections:{conv:{indexes:{by_owner:['owner','at']}}},logs:['msgs']}, use)
const one=async(i:number)=>{await store.batch([{op:'put',collection:'conv',key:'k'+i,value:{owner:'o'+i%100,at:i,title:'hello'}},{op:'append',log:'msgs',id:'k'+i,values:[{role:'user',text:'x'.repeat(200)},{role:'assistant',text:'y'.repeat(300)}]}],{},use)}
let N=20000, i=0
for (let r=0;r<2;r++) { i = r*N; const end=i+N; const t=performance.now(); const c=process.cpuUsage()
await Promise.all(Array.from({length:64},async()=>{while(i<end) await one(i++)}))
const el=performance.now()-t, eu=performance.eventLoopUtilization(); console.log('64 in flight', (N/el*1000).toFixed(0),'/s', 'cpu us/batch', ((process.cpuUsage(c).user+process.cpuUsage(c).system)/N).toFixed(1), 'elu', eu.utilization.toFixed(2)) }
const lat=[]; for(let k=0;k<1000;k++){const s=performance.now(); await one(1e6+k); lat.push(performance.now()-s)} lat.sort((a,b)=>a-b); console.log('serial p50 us', (lat[500]*1000).toFixed(0), 'p99', (lat[990]*1000).toFixed(0))
let t=performance.now(); for(let k=0;k<20000;k++) await store.get('conv','k'+k,use); console.log('get us', (performance.now()-t)/20)
t=performance.now(); for(let k=0;k<20000;k++) await store.read('msgs','k'+k,{limit:20},use); console.log('read us', (performance.now()-t)/20)
const lt=[]; for(let k=0;k<500;k++){const s=performance.now(); const l=await store.acquire('c'+k,{holder:'h',ttlMs:1000,waitMs:1000},use); lt.push(performance.now()-s); await store.release(l,use); } lt.sort((a,b)=>a-b); console.log('acquire p50 us', (lt[250]*1000)|0)
await store[Symbol.asyncDispose]()
