import { createSession } from '/work/main/plugins/store-sqlite/src/session.ts'
import { rmSync } from 'node:fs'
rmSync('/tmp/bench/p', {recursive:true, force:true})
const s = createSession('/tmp/bench/p/svc.db', [])
s.run([['open',{name:'chat',version:1,collections:{conv:{indexes:{by_owner:['owner','at']}}},logs:['msgs']}]])
let i=0
const job=()=>{const n=i++; return ['batch',[['put','conv','k'+n,JSON.stringify({owner:'o'+n%100,at:n,title:'hello'}),-1],['append','msgs','k'+n,[JSON.stringify({role:'user',text:'x'.repeat(200)}),JSON.stringify({role:'assistant',text:'y'.repeat(300)})],-1]],'',0] as any}
for (const g of [64,64,32]) { const t=performance.now(); const G=400; for(let k=0;k<G;k++) s.run(Array.from({length:g},job)); const el=(performance.now()-t)*1000; console.log('group',g,'us/group',(el/G)|0,'us/batch',(el/G/g).toFixed(1)) }
{ const l=[]; for(let k=0;k<1000;k++){const t=performance.now(); s.run([job()]); l.push(performance.now()-t)} l.sort((a,b)=>a-b); console.log('single run p50 us', l[500]*1000|0) }
{ const l=[]; for(let k=0;k<1000;k++){const t=performance.now(); s.run([['acquire','l'+k,'h',1000]]); l.push(performance.now()-t)} l.sort((a,b)=>a-b); console.log('acquire run p50 us', l[500]*1000|0) }
s.close()
import { statSync } from 'node:fs'
const { DatabaseSync } = await import('node:sqlite')
for (const cp of [1000, 4000, 16000]) {
  rmSync('/tmp/bench/p', {recursive:true, force:true})
  const orig = DatabaseSync.prototype.exec
  DatabaseSync.prototype.exec = function(sql){ return orig.call(this, sql.replace('PRAGMA journal_size_limit', `PRAGMA wal_autocheckpoint=${cp}; PRAGMA journal_size_limit`)) }
  const s = createSession('/tmp/bench/p/svc.db', [])
  s.run([['open',{name:'chat',version:1,collections:{conv:{indexes:{by_owner:['owner','at']}}},logs:['msgs']}]])
  i=0
  const times=[]; let w0=statSync('/tmp/bench/p/svc.db-wal').size
  s.run(Array.from({length:64},job)); console.log('pages first', (statSync('/tmp/bench/p/svc.db-wal').size-w0)/4120)
  const t=performance.now()
  for(let k=0;k<300;k++){const a=performance.now(); s.run(Array.from({length:64},job)); times.push(performance.now()-a)}
  const el=performance.now()-t; times.sort((a,b)=>a-b)
  console.log('autocheckpoint',cp,'ms/group avg',(el/300).toFixed(2),'p50',times[150].toFixed(2),'p90',times[270].toFixed(2),'max',times[299].toFixed(1),'wal',statSync('/tmp/bench/p/svc.db-wal').size>>20)
  s.close()
  DatabaseSync.prototype.exec = orig
}
