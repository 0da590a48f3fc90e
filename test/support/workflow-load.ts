import { join } from 'node:path'
import { wait } from './wait.ts'
import { createClient } from './client.ts'
import type { SentEvent } from './events.ts'
import { callsIn, effectsIn } from './workflow-host.ts'
import { EFFECTS } from './workflow-work.ts'

const PATH = '/api/v1/workflows'
const LIST = [1, 2, 3, 4]
/** What a run of `work` does outside, each once. */
const STEPS = ['one', ...LIST.flatMap((_, at) => [`each/${at}/a`, `each/${at}/b`]), 'last']
const RESULT = { value: LIST.map(item => item * 2) }

const fresh = (url: string) => createClient(url, { keepAlive: false })
/** So often a request is made again whose worker was killed. */
const MOST = 100

/** Does what may be done again as often as its connection breaks. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await work()
    } catch (error) {
      if (times >= MOST) throw error
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

/** Begins a run, once however often it is asked for; its id. */
export async function beginRun(url: string, workflow: 'work' | 'held'): Promise<string> {
  const headers = { prefer: 'respond-async', 'idempotency-key': crypto.randomUUID() }
  const body = { workflow, input: { list: LIST } }
  const answer = await again(() => fresh(url).send({ method: 'POST', path: `${PATH}/run`, headers, body }))
  if (answer.status !== 200) throw new Error(answer.text)
  return (answer.body as { workflow_id: string }).workflow_id
}

/** Tells a run the event that it waits for, or will. */
export async function go(url: string, id: string): Promise<void> {
  const answer = await again(() => fresh(url).post(`${PATH}/${id}/events`, { name: 'go', data: null }))
  if (answer.status !== 200) throw new Error(answer.text)
}

export const statusOf = async (url: string, id: string) =>
  (await again(() => fresh(url).get(`${PATH}/${id}/status`))).body as {
    readonly status: string
    readonly error: string | null
    readonly result: object | null
    readonly waiting_for?: readonly object[]
  }

/** All events of a run up to its end: whoever is cut off comes back with the last that he has, to whichever worker. */
export async function follow(
  url: string,
  id: string
): Promise<{ readonly events: readonly SentEvent[]; readonly joins: number }> {
  const events: SentEvent[] = []
  for (let joins = 1; joins <= MOST; joins++) {
    try {
      const last = events.at(-1)?.id
      const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
      const stream = await fresh(url).stream({ method: 'GET', path: `${PATH}/${id}/events`, headers })
      for (let event = await stream.next(); event; event = await stream.next()) if (!event.comment) events.push(event)
    } catch {
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    if (/^run_(completed|failed)$/.test(events.at(-1)?.event ?? '')) return { events, joins }
  }
  throw new Error(`the events of ${id} do not end: ${events.at(-1)?.event}`)
}

/** What is wrong with runs of `work` that were told to go. */
export async function auditRuns(url: string, home: string, ids: readonly string[]): Promise<readonly string[]> {
  const problems = await Promise.all(ids.map(id => faultsOf(url, id)))
  const done = Map.groupBy(effectsIn(join(home, EFFECTS)), ({ run }) => run)
  const steps = ids.map(id => ({ id, did: (done.get(id) ?? []).map(({ step }) => step).toSorted() }))
  const wrong = steps.filter(({ did }) => did.join() !== STEPS.toSorted().join())
  return [...problems.flat(), ...wrong.map(({ id, did }) => `${id}: did ${did.join()}`)]
}

async function faultsOf(url: string, id: string): Promise<readonly string[]> {
  const { events } = await follow(url, id)
  const stored = events.flatMap(event => (event.id === '' ? [] : [Number(event.id)]))
  const { status, error, result } = await statusOf(url, id)
  return [
    ...(stored.every((seq, at) => at === 0 || seq > stored[at - 1]!) ? [] : [`${id}: ids of events do not grow`]),
    ...(status === 'completed' && JSON.stringify(result) === JSON.stringify(RESULT)
      ? []
      : [`${id}: ${status} ${error} ${JSON.stringify(result)}`]),
  ]
}

/** Calls of a step, of all runs. */
export const callsOf = (home: string, step: string) => callsIn(join(home, EFFECTS)).filter(call => call.step === step)

/** Answers once so many effects are there. */
export async function effectsReach(home: string, count: number): Promise<void> {
  while (effectsIn(join(home, EFFECTS)).length < count) await wait()
}
