// What the sandbox holds for somebody who may make no control group: started as another user, prints what happened.
import { openSandbox } from './sandbox.ts'

const MIB = 1_048_576
const FORKS = `let there = 0
for (let i = 0; i < 60; i++) try { require('child_process').spawn('sleep', ['5']).on('error', () => {}).on('spawn', () => there++) } catch {}
setImmediate(() => setImmediate(() => { console.log(there); process.exit() }))`

await using box = await openSandbox()
const ability = await box.sandbox.probe(box.ctx)
const worked = async (script: string) => (await box.shell(script, { limits: { memoryBytes: 32 * MIB } })).code === 0
const allocated = async (mib: number) => {
  const { code } = await box.run(process.execPath, ['-e', `Buffer.alloc(${mib} * ${MIB}, 1)`], {
    limits: { memoryBytes: 256 * MIB },
  })
  return code === 0
}
const forks = await box.run(process.execPath, ['-e', FORKS], { node: false, limits: { pids: 30 } })
console.log(
  JSON.stringify({
    memory: ability.memory,
    pids: ability.pids,
    greedy: await worked('head -c 64M /dev/zero | tail -c 64M >/dev/null'),
    modest: await worked('head -c 8M /dev/zero | tail -c 8M >/dev/null'),
    greedyNode: await allocated(900),
    modestNode: await allocated(64),
    processes: Number(forks.out),
  })
)
