import { parentPort, workerData } from 'node:worker_threads'
import type { FromThread, GuestTask, ThreadData, ToThread } from '../messages.ts'
import { createEngine, type Engine } from './engine.ts'
import { type GuestRun, startRun } from './run.ts'

// A thread for guests. It runs one at a time, and keeps the engines of recent tenants and one unused engine.

/** Number of tenants whose engines are kept. */
const KEPT_ENGINES = 4

const { engine: module, spareBytes } = workerData as ThreadData
const port = parentPort!
const send = (message: FromThread) => port.postMessage(message)
const engines = new Map<string, Engine>()
let spare: Engine | undefined
let running: GuestRun | undefined
let asks = 0

async function engineFor({ tenant, memoryBytes }: GuestTask): Promise<Engine> {
  const own = engines.get(tenant)
  engines.delete(tenant)
  if (own?.memoryBytes === memoryBytes) return own
  const fresh = spare?.memoryBytes === memoryBytes ? spare : undefined
  if (fresh) spare = undefined
  return fresh ?? createEngine(module, memoryBytes)
}

async function take(job: GuestTask): Promise<void> {
  const known = engines.get(job.tenant)
  const engine = await engineFor(job)
  running = startRun(engine, job, (name, json) => {
    send({ ask: ++asks, name, json })
    return asks
  })
  const { outcome, sound } = await running.end
  running = undefined
  if (sound) keep(job.tenant, engine)
  send({ done: outcome, tenants: [...engines.keys()] })
  // prepare the next run between runs: a world for a returning tenant, and an engine for a new one
  if (sound && known === engine) prepare(job.tenant, engine)
  await makeSpare()
}

function keep(tenant: string, engine: Engine): void {
  engines.set(tenant, engine)
  const [oldest] = engines.keys()
  if (engines.size > KEPT_ENGINES) engines.delete(oldest!)
}

/** Drops an engine without memory for the next world, so that its tenant cannot end the thread for others. */
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
  else running?.answer(message)
})
await makeSpare()
send({ ready: true })
