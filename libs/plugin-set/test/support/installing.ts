// Installs, and tells each step: node installing.ts <home> <spec>. Killed by crash.spec.ts.
import { planChange } from '@svc/plugin-set'

const [home, spec] = process.argv.slice(2) as [string, string]
const tell = (word: string) => process.stdout.write(`${word}\n`)

await using change = await planChange(home, { install: [{ spec }] }, { onProgress: ({ step }) => tell(step) })
const { plugins } = await change.build()
await change.commit(plugins)
tell('committed')
setTimeout(() => {}, 60_000)
await new Promise(() => {})
