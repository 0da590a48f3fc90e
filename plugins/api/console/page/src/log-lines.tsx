import { isApiError, type QueryOf, type Schemas } from '@svc/client'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import { SearchLink, useAddress } from './address.tsx'
import { client } from './api.ts'
import { Json } from './message.tsx'
import { shortName } from './records.tsx'
import { Badge, Empty, Failure, Loading, type Tone } from './states.tsx'
import { visible } from './visible-text.ts'

type Line = Schemas['LogLine']
export type LogQuery = Pick<QueryOf<'get', '/api/v1/logs'>, 'level' | 'request_id' | 'text' | 'since'>

interface Followed {
  readonly lines: readonly Line[]
  readonly state: 'connecting' | 'live' | 'failed'
  readonly error?: unknown
}

const FIRST = 500
/** For a line of the address, which can be further back: what the server sends at most. */
const FIRST_LINKED = 1_000
const MOST_LINES = 5_000
const AGAIN_MS = 1_000

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

const isPassing = (error: unknown) => isApiError(error) && (error.status === 0 || error.status === 503)

/** The lines of all workers that the query selects, oldest first, and new ones as they are written. */
function useLines(query: LogQuery, first: number): Followed {
  const key = JSON.stringify(query)
  const count = useRef(first)
  const [followed, setFollowed] = useState<Followed>({ lines: [], state: 'connecting' })
  useEffect(() => {
    const ending = new AbortController()
    const { signal } = ending
    setFollowed({ lines: [], state: 'connecting' })
    void follow(JSON.parse(key) as LogQuery, count.current, setFollowed, signal)
    return () => ending.abort()
  }, [key])
  return followed
}

type Show = (change: (before: Followed) => Followed) => void

/** Reads until the signal aborts, first the last `limit` lines. Another connection begins with the lines of the last time that was seen. */
async function follow(query: LogQuery, limit: number, show: Show, signal: AbortSignal): Promise<void> {
  let since = query.since
  let known = new Set<string>()
  for (;;) {
    let fresh: Line[] = []
    let frame = 0
    const flush = () => {
      const lines = fresh
      fresh = []
      frame = 0
      show(before => ({ state: 'live', lines: [...before.lines, ...lines].slice(-MOST_LINES) }))
    }
    try {
      const filters = { ...query, ...(since === undefined ? {} : { since }), limit, follow: true }
      const stream = client.stream('get', '/api/v1/logs', { query: filters, signal })
      // a log without a line says nothing: it is read as well
      frame = requestAnimationFrame(flush)
      for await (const line of stream) {
        const text = JSON.stringify(line)
        if (known.has(text)) continue
        if (line.time !== since) known = new Set()
        known.add(text)
        since = line.time
        fresh.push(line)
        frame ||= requestAnimationFrame(flush)
      }
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error)) return show(before => ({ ...before, state: 'failed', error }))
      show(before => ({ ...before, state: 'connecting' }))
    } finally {
      if (signal.aborted) cancelAnimationFrame(frame)
    }
    await wait(AGAIN_MS, signal)
    if (signal.aborted) return
  }
}

const TONES: Readonly<Record<Line['level'], Tone>> = { debug: 'plain', info: 'plain', warn: 'warn', error: 'bad' }
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})
const LINE = 28
/** A reader this near to the end stays there. */
const NEAR = 60

/** Lines have no id: the time of a line and a hash of it name it in the address. */
const linkOf = (line: Line) => `${line.time} ${hashOf(JSON.stringify(line))}`
const isLinked = (line: Line, link: string) => link.startsWith(`${line.time} `) && link === linkOf(line)

/** FNV-1a, 32 bits. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(36)
}

interface LogLinesProps {
  readonly query: LogQuery
  /** Fills its place, instead of a part of a page. */
  readonly isWhole?: boolean
}

/** The log, live: it stays at its end until the reader scrolls up. */
export function LogLines({ query, isWhole = false }: LogLinesProps) {
  const [{ line: linked }, change] = useAddress()
  const { lines, state, error } = useLines(query, linked === undefined ? FIRST : FIRST_LINKED)
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(linked === undefined)
  const opened = linked === undefined ? undefined : lines.find(line => isLinked(line, linked))
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    overscan: 20,
  })
  useEffect(() => {
    if (isAtEnd.current && lines.length > 0) rows.scrollToIndex(lines.length - 1, { align: 'end' })
  }, [lines.length, rows])
  const sought = useRef(linked)
  useEffect(() => {
    if (sought.current === undefined || !opened) return
    sought.current = undefined
    rows.scrollToIndex(lines.indexOf(opened), { align: 'center' })
  }, [opened, lines, rows])
  const onScroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {}
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR
  }
  const open = (line: Line) => change({ line: linkOf(line) })
  const close = () => change({ line: undefined })
  return (
    <div className={isWhole ? 'log-box log-whole' : 'log-box'}>
      <p className="log-state muted small" role="status">
        <Badge tone={STATES[state][0]}>{STATES[state][1]}</Badge> {lines.length === 1 ? '1 line' : `${lines.length} lines`}
      </p>
      {error !== undefined && <Failure error={error} />}
      {lines.length === 0 && <NoLines state={state} />}
      {lines.length > 0 && (
        <div className="log-lines" ref={box} tabIndex={0} role="log" aria-live="off" aria-label="Log" onScroll={onScroll}>
          <ul className="events-list" style={{ height: rows.getTotalSize() }}>
            {rows.getVirtualItems().map(({ index, key, start }) => (
              <LineRow key={key} line={lines[index]!} top={start} onOpen={open} isOpen={lines[index] === opened} />
            ))}
          </ul>
        </div>
      )}
      {opened && <LineDetail line={opened} onClose={close} />}
      {linked !== undefined && !opened && state === 'live' && <NotThere />}
    </div>
  )
}

const STATES: Readonly<Record<Followed['state'], readonly [Tone, string]>> = {
  connecting: ['plain', 'connecting'],
  live: ['ok', 'live'],
  failed: ['bad', 'stopped'],
}

function NoLines({ state }: Pick<Followed, 'state'>) {
  if (state === 'connecting') return <Loading rows={6} />
  return state === 'live' && <Empty title="No line yet">New lines appear here as they are written.</Empty>
}

const NotThere = () => (
  <p className="note note-flat" role="status">
    The line of this address is not among these. <SearchLink change={{ line: undefined }}>Close</SearchLink>
  </p>
)

interface LineRowProps {
  readonly line: Line
  readonly top: number
  readonly isOpen: boolean
  readonly onOpen: (line: Line) => void
}

function LineRow({ line, top, isOpen, onOpen }: LineRowProps) {
  return (
    <li className="log-line" style={{ transform: `translateY(${top}px)` }} data-current={isOpen || undefined}>
      <button type="button" className="log-button" onClick={() => onOpen(line)} aria-expanded={isOpen}>
        <time className="muted" dateTime={line.time} title={new Date(line.time).toLocaleString()}>
          {clock.format(Date.parse(line.time))}
        </time>
        <span className={`log-level level-${TONES[line.level]}`}>{line.level}</span>
        <span className="clip muted only-wide">{line.plugin === null ? line.worker : shortName(line.plugin)}</span>
        <span className="clip">
          {visible(line.message)} <span className="muted">{factsText(line)}</span>
        </span>
      </button>
    </li>
  )
}

const LONGEST_FACT = 80
const LONGEST_MESSAGE = 5_000

/** The plain fields of a line: `request` alone says little. */
function factsText({ fields }: Line): string {
  return Object.entries(fields)
    .flatMap(([name, value]) => (isPlain(value) ? [visible(`${name}=${String(value).slice(0, LONGEST_FACT)}`)] : []))
    .join(' ')
}
const isPlain = (value: unknown) => typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

function LineDetail({ line, onClose }: { readonly line: Line; readonly onClose: () => void }) {
  const shown = useMemo(() => ({ ...line.fields, worker: line.worker, plugin: line.plugin, principal: line.principal }), [line])
  return (
    <section className="span-detail" aria-label="The selected line">
      <div className="row spread">
        <h3 className="section-title grow wrap">{visible(line.message, LONGEST_MESSAGE)}</h3>
        <span className="row">
          {line.request_id !== null && (
            <SearchLink change={{ request: line.request_id }} className="button">
              Only this request
            </SearchLink>
          )}
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
        </span>
      </div>
      <Json value={shown} label="Fields of the line" />
    </section>
  )
}
