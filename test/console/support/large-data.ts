import { definePlugin } from '@svc/core'
import { type Json, Routes, Store, type StoreOp } from '@svc/core/contracts'

const AT_ONCE = 1_000
const hex = (at: number, length: number) => at.toString(16).padStart(length, '0')

/** A trace with so many spans in a tree. Every hundredth is an error; its names count them. */
function* traceOps(trace: string, count: number): Generator<StoreOp> {
  const begin = Date.now() - count - 1_000
  const root = hex(1, 16)
  const span = (at: number) => ({
    s: hex(at + 1, 16),
    ...(at === 0 ? {} : { p: hex(at % 10 === 1 ? 1 : at, 16) }),
    n: at === 0 ? 'a large request' : `span ${at}`,
    a: begin + at,
    e: begin + at + 20,
    g: '@svc/plugin-chat',
    ...(at > 0 && at % 100 === 0 ? { f: 'TOO_LATE' } : {}),
    x: { 'svc.number': at },
  })
  for (let from = 0; from < count; from += AT_ONCE)
    yield {
      op: 'append',
      log: 'trace_spans',
      id: `${trace}.${root}`,
      values: [Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => span(from + at))],
    }
  yield {
    op: 'put',
    collection: 'trace_roots',
    key: `${trace}.${root}`,
    value: {
      trace,
      span: root,
      name: 'a large request',
      kind: 'server',
      start: begin,
      end: begin + count + 20,
      status: 'unset',
      principal: 'anonymous',
      request: 'large',
      plugin: '@svc/plugin-http',
      worker: '1',
      models: [],
      input: 0,
      output: 0,
      spans: count,
      errors: count / 100,
      size: count * 100,
    },
  }
}

type LogEntry = {
  readonly t: string
  readonly s?: string
  readonly f?: string
  readonly children?: readonly { readonly key: string }[]
}

const isOf = (item: number) => (entry: LogEntry) => (entry.s ?? entry.f ?? '').startsWith(`each/${item}/`)
const movedTo = (entry: LogEntry, from: number, to: number): LogEntry => {
  const moved = (path: string) => path.replace(`each/${from}/`, `each/${to}/`)
  return {
    ...entry,
    ...(entry.s === undefined ? {} : { s: moved(entry.s) }),
    ...(entry.f === undefined ? {} : { f: moved(entry.f) }),
  }
}

/** The log of a run over two items, the second of which failed, as that of a run over so many items. */
function* multiplied(log: readonly LogEntry[], count: number): Generator<LogEntry> {
  const [good, bad] = [log.filter(isOf(0)), log.filter(isOf(1))]
  const first = log.findIndex(entry => isOf(0)(entry) || isOf(1)(entry))
  for (const entry of log.slice(0, first))
    yield entry.children
      ? { ...entry, children: Array.from({ length: count }, (_, at) => ({ ...entry.children![0]!, key: String(at) })) }
      : entry
  for (let at = 0; at < count - 1; at++) for (const entry of good) yield movedTo(entry, 0, at)
  for (const entry of bad) yield movedTo(entry, 1, count - 1)
  for (const entry of log.slice(first)) if (!isOf(0)(entry) && !isOf(1)(entry)) yield entry
}

/** Writes into the store of its server what would take the server minutes to record. */
export default definePlugin({
  requires: { store: Store },
  setup(scope, { store }) {
    scope.add(Routes, 'large_trace', {
      method: 'POST',
      path: '/large/trace/:count',
      summary: 'Stores a trace',
      handle: async ({ params }, ctx) => {
        const trace = hex(Date.now(), 32)
        for (const op of traceOps(trace, Number(params.count))) await store.batch([op], {}, ctx)
        return { body: { trace } }
      },
    })
    scope.add(Routes, 'large_run', {
      method: 'POST',
      path: '/large/run/:id/:count',
      summary: 'Stores a run like that one, with more items',
      handle: async ({ params }, ctx) => {
        const { id = '', count } = params
        const record = await store.get('workflow_runs', id, ctx)
        const read = await store.read('workflow_log', id, { limit: 1_000 }, ctx)
        const log = read.map(({ value }) => value as unknown as LogEntry)
        const last = id.slice(-1) === '0' ? '1' : '0'
        const copy = `${id.slice(0, -1)}${last}`
        const entries = [...multiplied(log, Number(count))]
        for (let from = 0; from < entries.length; from += AT_ONCE) {
          const values = entries.slice(from, from + AT_ONCE) as unknown as Json[]
          await store.batch([{ op: 'append', log: 'workflow_log', id: copy, values }], {}, ctx)
        }
        await store.batch([{ op: 'put', collection: 'workflow_runs', key: copy, value: record!.value }], {}, ctx)
        return { body: { id: copy } }
      },
    })
  },
})
