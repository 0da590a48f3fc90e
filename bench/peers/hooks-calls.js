// The cost of calling a hook: `hooks-calls.js <ours|plain|tapable> <taps>`. For each number it receives, it calls the hook that
// often and returns nanoseconds of processor time per call.
import { AsyncSeriesHook } from 'tapable'

const [kind, count] = process.argv.slice(2)
const taps = Number(count)
const ctx = { signal: new AbortController().signal }
const look = async () => {}

/** tapable alone: no counting and no time limit. */
async function tapable() {
  const hook = new AsyncSeriesHook(['value', 'ctx'])
  for (let at = 0; at < taps; at++) hook.tapPromise(`tap-${at}`, look)
  return () => hook.promise(1, ctx)
}

/** A host in which one plugin owns the hook and others tap it. */
async function ours() {
  const { definePlugin, defineService, startHost } = await import('@svc/core')
  const Looked = defineService('looked', { api: 1, methods: {}, hooks: { look: 'series' } })
  let call
  const owner = definePlugin({
    provides: Looked,
    setup({ hooks }) {
      call = () => hooks.look(1, ctx)
      return {}
    },
  })
  const tapping = definePlugin({ setup: scope => void scope.tap(Looked.hooks.look, look) })
  const others = Array.from({ length: taps }, (_, at) => ({ use: tapping, name: `tap-${at}` }))
  const config = { host: { accounting: kind === 'ours' }, log: { level: 'silent' } }
  await startHost({ config, plugins: [{ use: owner, name: 'owner' }, ...others] })
  return call
}

const call = kind === 'tapable' ? await tapable() : await ours()

/** An empty hook is called without waiting, because `await` costs the same with any. */
async function run(calls) {
  if (taps === 0) for (let at = 0; at < calls; at++) void call()
  else for (let at = 0; at < calls; at++) await call()
}

process.on('message', async calls => {
  const before = process.cpuUsage()
  await run(calls)
  const { user, system } = process.cpuUsage(before)
  process.send(((user + system) * 1000) / calls)
})
process.send('ready')
