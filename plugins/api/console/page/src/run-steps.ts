import { type ReplyOf, type Schemas } from '@svc/client'
import { useEffect, useState } from 'react'
import { client, connection } from './api.ts'
import { whileVisible } from './feed.ts'
import { createValue, useValue, type Value } from './value.ts'

export type Step = ReplyOf<'get', '/api/v1/workflows/{id}/steps'>['steps'][number]
type RunEvent = Schemas['WorkflowEvent']

/** The steps of a run, in the order in which they started. Without inputs and outputs: those are read one by one. */
export interface RunSteps {
  readonly steps: readonly Step[]
  readonly state: 'reading' | 'live' | 'over' | 'failed'
  readonly error?: unknown
  /** Changes with each event that changes more than steps: a pause, an end. */
  readonly changes: number
  /** What a running node has said last, by its step. */
  readonly progress: ReadonlyMap<string, string>
}

const PAGE = 5_000
const NONE: RunSteps = { steps: [], state: 'reading', changes: 0, progress: new Map() }

/** Reads the steps of a run and follows its events, over restarts of the worker and of the server. */
export function useRunSteps(id: string): RunSteps {
  const [value] = useState(() => createValue<RunSteps>(NONE))
  useEffect(() => {
    const ending = new AbortController()
    const begin = () => {
      value.set(NONE)
      whileVisible(signal => follow(id, value, signal), ending.signal).catch((error: unknown) =>
        value.set({ ...value.get(), state: 'failed', error })
      )
    }
    begin()
    // what failed while the server was away is read again
    const stop = connection.subscribe(() => {
      if (connection.get() === 'ok' && value.get().state === 'failed') begin()
    })
    return () => {
      stop()
      ending.abort()
    }
  }, [id, value])
  return useValue(value)
}

async function follow(id: string, value: Value<RunSteps>, signal: AbortSignal): Promise<void> {
  const log = new StepLog()
  // before its steps: those of a run that has ended by then are final
  const { status } = await client.runs.get(id, { signal })
  let last = 0
  let cursor: string | undefined
  do {
    const from = cursor === undefined ? {} : { cursor }
    const page = await client.get('/api/v1/workflows/{id}/steps', {
      path: { id },
      query: { detail: 'brief', limit: PAGE, ...from },
      signal,
    })
    // the events after the first page contain what the later ones already show: applied twice, they end the same
    last ||= page.last_event
    log.add(page.steps)
    value.set({ ...value.get(), steps: log.list() })
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  value.set({ ...value.get(), state: status === 'running' ? 'live' : 'over', changes: value.get().changes + 1 })
  if (status !== 'running') return
  let isPlanned = false
  let hasChange = false
  const flush = () => {
    isPlanned = false
    const { changes } = value.get()
    value.set({ ...value.get(), steps: log.list(), progress: new Map(log.progress), changes: changes + (hasChange ? 1 : 0) })
    hasChange = false
  }
  for await (const event of client.runs.events(id, { after: String(last), signal })) {
    log.apply(event)
    hasChange ||= event.type.startsWith('run_') || /^node_(waiting|woken)$/.test(event.type)
    if (isPlanned) continue
    isPlanned = true
    requestAnimationFrame(flush)
  }
  flush()
  value.set({ ...value.get(), state: 'over', changes: value.get().changes + 1 })
}

type Change = Partial<Step>

/** What an event changes of its step. */
const CHANGES: { readonly [type in RunEvent['type']]?: (event: Record<string, unknown>) => Change } = {
  node_waiting: () => ({ status: 'waiting' }),
  node_woken: () => ({ status: 'running' }),
  node_forked: () => ({ status: 'running' }),
  node_retrying: ({ error }) => ({ status: 'waiting', error: (error ?? null) as Step['error'] }),
  node_completed: ({ timestamp, branch, spent }) => ({
    status: 'completed',
    finished_at: String(timestamp),
    branch: typeof branch === 'string' ? branch : null,
    ...spentOf(spent),
  }),
  node_failed: ({ timestamp, error, spent }) => ({
    status: 'failed',
    finished_at: String(timestamp),
    error: (error ?? null) as Step['error'],
    ...spentOf(spent),
  }),
}

const spentOf = (spent: unknown): Change => {
  const { tool_calls: calls = 0, tokens = 0 } = (spent ?? {}) as { tool_calls?: number; tokens?: number }
  return { tool_calls: calls, tokens }
}

const isEnded = ({ status }: Step) => status === 'completed' || status === 'failed' || status === 'cancelled'

/** Steps by their names, kept in order. */
class StepLog {
  readonly #steps = new Map<string, Step>()
  readonly progress = new Map<string, string>()

  add(steps: readonly Step[]): void {
    for (const step of steps) this.#steps.set(step.step, step)
  }

  list(): readonly Step[] {
    return [...this.#steps.values()]
  }

  apply(event: RunEvent): void {
    if (event.type === 'run_completed' || event.type === 'run_failed') return this.#cancel(() => true)
    if (!('step' in event) || event.step === undefined) return
    const { step } = event
    if (event.type === 'node_cancelled') return this.#cancel(other => other === step || other.startsWith(`${step}/`))
    if (event.type === 'node_progress') {
      if (event.message !== undefined) this.progress.set(step, event.message)
      return
    }
    if (event.type === 'node_started') return this.#start(event)
    const known = this.#steps.get(step)
    const change = CHANGES[event.type]
    if (known && change) this.#steps.set(step, { ...known, ...change(event as unknown as Record<string, unknown>) })
  }

  #start({ step, node, node_type: type, attempt, timestamp }: Extract<RunEvent, { type: 'node_started' }>): void {
    const known = this.#steps.get(step)
    this.#steps.set(step, {
      step,
      node,
      type: type ?? known?.type ?? '',
      status: 'running',
      attempts: attempt ?? 1,
      input: null,
      output: null,
      output_file: null,
      branch: null,
      error: null,
      started_at: known?.started_at ?? timestamp,
      finished_at: null,
      tool_calls: 0,
      tokens: 0,
      cost: null,
    })
  }

  /** A run that ends, or a body that is left, ends what is open. */
  #cancel(isMeant: (step: string) => boolean): void {
    for (const [name, step] of this.#steps)
      if (isMeant(name) && !isEnded(step)) this.#steps.set(name, { ...step, status: 'cancelled' })
  }
}
