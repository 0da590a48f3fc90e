import { systemUse } from '@svc/core'
import { createSqliteStore } from '/work/main/plugins/store-sqlite/src/store.ts'
import { createMemoryStore } from '/work/main/plugins/store-memory/src/store.ts'
import { rmSync } from 'node:fs'
const use = systemUse(new AbortController().signal)
rmSync('/tmp/smoke', {recursive:true, force:true})
for (const store of [createMemoryStore({maxRecords:1e6,maxBytes:1e9,evict:true}), createSqliteStore({path:'/tmp/smoke/svc.db'})]) {
  const t0=performance.now()
  console.log(await store.open({name:'chat',version:1,collections:{conv:{indexes:{by_owner:['owner','at']},watched:true}},logs:['msgs']}, use), performance.now()-t0)
  const ac = new AbortController()
  const w = store.watch('conv', {...use, signal: ac.signal})
  const it = w[Symbol.asyncIterator]()
  const n = it.next()
  console.log(await store.batch([{op:'put',collection:'conv',key:'a',value:{owner:'x',at:1}},{op:'append',log:'msgs',id:'a',values:[1,{b:2}]}],{},use))
  console.log(await n); ac.abort(); console.log(await it.next())
  console.log(await store.get('conv','a',use), await store.read('msgs','a',{limit:10},use), await store.read('msgs','a',{limit:1,reverse:true},use))
  console.log(await store.range('conv',{index:'by_owner',equals:['x'],limit:10},use))
  await store.batch([{op:'put',collection:'conv',key:'a',value:1,ifVersion:0}],{},use).catch(e=>console.log(e.code,e.details,e.message))
  const l = await store.acquire('l',{holder:'h',ttlMs:1000,waitMs:0},use); console.log(l)
  const p = store.acquire('l',{holder:'h2',ttlMs:1000,waitMs:5000},use); await store.release(l,use); const l2=await p; console.log(l2.fence>l.fence)
  await store.batch([{op:'put',collection:'conv',key:'b',value:1}],{fence:l},use).catch(e=>console.log(e.code))
  console.log(await store.probe(use))
  // bench
  const one=async(i:number)=>{await store.batch([{op:'put',collection:'conv',key:'k'+i,value:{owner:'o'+i%100,at:i,title:'hello'}},{op:'append',log:'msgs',id:'k'+i,values:[{role:'user',text:'x'.repeat(200)},{role:'assistant',text:'y'.repeat(300)}]}],{},use)}
  let N=20000, t=performance.now(), i=0
  await Promise.all(Array.from({length:64},async()=>{while(i<N) await one(i++)}))
  console.log('64 in flight', (N/(performance.now()-t)*1000).toFixed(0),'/s')
  const lat=[]; for(let k=0;k<1000;k++){const s=performance.now(); await one(1e6+k); lat.push(performance.now()-s)} lat.sort((a,b)=>a-b); console.log('serial p50 us', (lat[500]*1000).toFixed(0), 'p99', (lat[990]*1000).toFixed(0))
  t=performance.now(); for(let k=0;k<20000;k++) await store.get('conv','k'+k,use); console.log('get us', (performance.now()-t)/20)
  t=performance.now(); for(let k=0;k<5000;k++) await store.range('conv',{index:'by_owner',equals:['o5'],reverse:true,limit:20},use); console.log('range20 us', (performance.now()-t)/5)
  t=performance.now(); for(let k=0;k<20000;k++) await store.read('msgs','k'+k,{limit:20},use); console.log('read us', (performance.now()-t)/20)
  const lt=[]; for(let k=0;k<500;k++){const s=performance.now(); const l=await store.acquire('c'+k,{holder:'h',ttlMs:1000,waitMs:1000},use); await store.release(l,use); lt.push(performance.now()-s)} lt.sort((a,b)=>a-b); console.log('lease p50 us', lt[250]*1000)
  await store[Symbol.asyncDispose]()
}
