// The store and the runs of svc in PostgreSQL, without a server. Arguments: the URL of the database.
import { setTimeout as sleep } from 'node:timers/promises'
import { startHost, systemContext } from '@svc/core'
import { Counts, Store, Workflows } from '@svc/core/contracts'
import { loaded, nextKey, RECORD, serve, spread } from './cluster-load.js'
import runs from './cluster-runs.js'

const [url] = process.argv.slice(2)
const ctx = systemContext(new AbortController().signal)
const log = { destination: { write() {} } }
const plugin = name => `@svc/plugin-${name}`
const open = (names, more = []) =>
  startHost({ plugins: [...names.map(plugin), ...more], from: [import.meta.url], config: { store: { url } }, log })
const SPACE = {
  name: 'bench',
  version: 1,
  collections: { plain: {}, indexed: { indexes: { by_owner: ['owner'] } }, watched: { watched: true } },
  logs: ['lines'],
}

const host = await open(['store-postgres', 'queue-pgboss', 'workflow-nodes', 'workflows'], [{ name: 'bench', use: runs }])
const other = await open(['store-postgres'])
const [store, watching] = [host.service(Store), other.service(Store)]
for (const one of [store, watching]) await one.open(SPACE, ctx)
const counts = host.service(Counts)
const workflows = host.service(Workflows)
const put = (collection, key, value = RECORD) => ({ op: 'put', collection, key, value })

const KEPT = 5_000
/** A change that takes longer was not seen. */
const SEEN_MS = 5_000
async function fill() {
  for (let from = 0; from < KEPT; from += 500)
    await store.batch(
      Array.from({ length: 500 }, (_, at) => put('plain', `kept-${from + at}`)),
      {},
      ctx
    )
}

async function runOne() {
  const { id } = await workflows.start({ workflow: 'one' }, ctx)
  const { status } = await workflows.settled(id, 60_000, ctx)
  if (status !== 'completed') throw new Error(status)
}

/** From the call that writes until the watcher of another store has the change. */
async function watch({ ms, everyMs }) {
  const ending = new AbortController()
  const begun = new Map()
  const times = []
  let isWatching = false
  const reading = (async () => {
    for await (const { key } of watching.watch('watched', { ...ctx, signal: ending.signal })) {
      isWatching = true
      const at = begun.get(key)
      if (at !== undefined) times.push(performance.now() - at)
      begun.delete(key)
    }
  })().catch(() => {})
  const write = async () => {
    const key = nextKey()
    begun.set(key, performance.now())
    await store.batch([put('watched', key, 1)], {}, ctx)
  }
  // the watch begins at a moment that only a change shows
  for (; !isWatching; await sleep(everyMs)) await store.batch([put('watched', 'first', 1)], {}, ctx)
  for (const until = performance.now() + ms; performance.now() < until; await sleep(everyMs)) await write()
  for (const until = performance.now() + SEEN_MS; begun.size > 0 && performance.now() < until; ) await sleep(everyMs)
  ending.abort()
  await reading
  if (begun.size > 0) throw new Error(`${begun.size} changes were not seen`)
  return { perSecond: times.length / (ms / 1000), ...spread(times) }
}

await fill()
let reads = 0
serve({
  put: load => loaded(() => store.batch([put('plain', nextKey())], {}, ctx), load),
  mixed: load => {
    const write = () => {
      const key = nextKey()
      return store.batch([put('indexed', key), { op: 'append', log: 'lines', id: key, values: [{ n: 1 }] }], {}, ctx)
    }
    return loaded(write, load)
  },
  get: load =>
    loaded(async () => {
      const found = await store.get('plain', `kept-${(reads += 7) % KEPT}`, ctx)
      if (found?.value.owner !== RECORD.owner) throw new Error('the record is not there')
    }, load),
  count: load => loaded(() => counts.count('hot', [{ ms: 3_600_000, limit: 1e9 }], ctx), load),
  runs: load => loaded(runOne, load),
  watch,
})
