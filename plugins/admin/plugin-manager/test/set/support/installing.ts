// Installs, or restores a bundle, up to a step where it stands still: node installing.ts <home> <spec> <step>. Killed by crash.spec.ts.
import { writeSync } from 'node:fs'
import { planChange, planRestore } from '@svc/plugin-manager/set'

const [home, spec, until] = process.argv.slice(2) as [string, string, string]

/** No timer, no promise and no child of it goes on. */
function reach(step: string): void {
  if (step !== until) return
  writeSync(1, `${step}\n`)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

const options = { onProgress: ({ step }: { step: string }) => reach(step) }
const install = [{ spec, scripts: true }]
await using change = await (spec.endsWith('bundle.tgz')
  ? planRestore(home, spec, options)
  : planChange(home, { install }, options))
const { plugins } = await change.build()
await change.commit(plugins, async () => {
  reach('trial')
  return true
})
reach('committed')
