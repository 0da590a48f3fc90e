import { parentPort, workerData } from 'node:worker_threads'
import type { FromThread, Job, ThreadData, ToThread } from '../messages.ts'
import { createEngine, type Engine } from './engine.ts'
import { type Play, play } from './play.ts'

// A thread of guests: one at a time, an engine for each tenant of late, and one that nobody has used.

/** Tenants whose engine is kept. */
const KEPT = 4

const { engine: module, spareBytes } = workerData as ThreadData
const port = parentPort!
const tell = (message: FromThread) => port.postMessage(message)
const engines = new Map<string, Engine>()
let spare: Engine | undefined
let playing: Play | undefined
let asks = 0

async function engineFor({ tenant, memoryBytes }: Job): Promise<Engine> {
  const own = engines.get(tenant)
  engines.delete(tenant)
  if (own?.memoryBytes === memoryBytes) return own
  const fresh = spare?.memoryBytes === memoryBytes ? spare : undefined
  if (fresh) spare = undefined
  return fresh ?? createEngine(module, memoryBytes)
}

async function take(job: Job): Promise<void> {
  const known = engines.get(job.tenant)
  const engine = await engineFor(job)
  playing = play(engine, job, (name, json) => {
    tell({ ask: ++asks, name, json })
    return asks
  })
  const { outcome, sound } = await playing.end
  playing = undefined
  if (sound) keep(job.tenant, engine)
  tell({ done: outcome, tenants: [...engines.keys()] })
  // What the next one needs is made while nobody waits: for a tenant that came again, and for one that never came.
  if (sound && known === engine) prepare(job.tenant, engine)
  await makeSpare()
}

function keep(tenant: string, engine: Engine): void {
  engines.set(tenant, engine)
  const [oldest] = engines.keys()
  if (engines.size > KEPT) engines.delete(oldest!)
}

/** An engine that has no room for a next world is not kept: its tenant shall not end the thread for others. */
function prepare(tenant: string, engine: Engine): void {
  try {
    engine.prepare()
  } catch {
    engines.delete(tenant)
  }
}

async function makeSpare(): Promise<void> {
  spare ??= await createEngine(module, spareBytes)
  spare.prepare()
}

port.on('message', (message: ToThread) => {
  if ('job' in message) void take(message.job)
  else playing?.answer(message)
})
await makeSpare()
tell({ ready: true })
