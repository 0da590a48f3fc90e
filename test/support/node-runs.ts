import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createClient } from './client.ts'
import { until } from './wait.ts'

const PATH = '/api/v1/workflows'

/** The plugin of runs that several nodes execute. `TEST_RUNS_FILE` names the file that they share. */
export const LONG_RUNS = fileURLToPath(new URL('./long-runs.ts', import.meta.url))

const fresh = (url: string) => createClient(url, { keepAlive: false })

/** Begins a run; its id. With a key, it can be asked for again. */
export async function beginLong(
  url: string,
  workflow: 'long' | 'deaf' | 'filed' | 'filed-question' = 'long',
  key?: string
): Promise<string> {
  const headers = { prefer: 'respond-async', ...(key === undefined ? {} : { 'idempotency-key': key }) }
  const answer = await fresh(url).send({ method: 'POST', path: `${PATH}/run`, headers, body: { workflow, input: {} } })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return (answer.body as { workflow_id: string }).workflow_id
}

/** Lines of a kind in the file of the nodes, by run: the processes that wrote them. */
export function processesIn(file: string, what: 'begin' | 'end'): ReadonlyMap<string, readonly number[]> {
  const words = (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').map(line => line.split(' '))
  const found = Map.groupBy(
    words.filter(([kind]) => kind === what),
    ([, run]) => run!
  )
  return new Map([...found].map(([run, lines]) => [run, lines.map(([, , , pid]) => Number(pid))]))
}

interface RunState {
  readonly status: string
  readonly error: string | null
  readonly result: { readonly by: number } | null
}

const stateOf = async (url: string, id: string): Promise<RunState> =>
  (await fresh(url).get(`${PATH}/${id}/status`)).body as RunState

/** How a run has ended. */
export const endOf = (url: string, id: string): Promise<RunState> =>
  until(
    () => stateOf(url, id),
    ({ status }) => status !== 'running'
  )
