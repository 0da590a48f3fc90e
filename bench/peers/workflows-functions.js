import { DatabaseSync } from 'node:sqlite'
import { serveRuns, STEPS, work } from './workflow-runs.js'

// Plain functions whose results are rows: one commit each, or one for all that wait in a turn of the loop. The rows of a run
// are indexed by
// their key, so that the run can continue after a crash. Without the index, group commit would be three times as fast, but
// useless.

const [file] = process.argv.slice(2)
const db = new DatabaseSync(file)
db.exec(
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE steps(run TEXT, n INTEGER, out TEXT, PRIMARY KEY(run, n)) WITHOUT ROWID'
)
const insert = db.prepare('INSERT INTO steps VALUES (?, ?, ?)')
let waiting = []

function commit() {
  const group = waiting
  waiting = []
  db.exec('BEGIN')
  for (const { row } of group) insert.run(...row)
  db.exec('COMMIT')
  for (const { resolve } of group) resolve()
}

const stored = row =>
  new Promise(resolve => {
    if (waiting.push({ row, resolve }) === 1) setImmediate(commit)
  })

async function step(run, i, keep) {
  const out = await work(i)
  await keep([run, i, JSON.stringify(out)])
  return out
}

async function sequence(keep) {
  const run = crypto.randomUUID()
  let last
  for (const i of STEPS) last = await step(run, i, keep)
  return last
}

serveRuns({
  each: () => sequence(row => insert.run(...row)),
  sequence: () => sequence(stored),
  parallel: async () => {
    const run = crypto.randomUUID()
    return (await Promise.all(STEPS.map(i => step(run, i, stored)))).at(-1)
  },
})
