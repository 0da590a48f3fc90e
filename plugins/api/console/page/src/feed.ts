import { type ApiError, isApiError, type Schemas } from '@svc/client'
import { client, messageOf } from './api.ts'
import { createValue } from './value.ts'

export type ServerEvent = Schemas['CloudEvent']

/** The events of the server since the page was opened, newest first. */
export interface Feed {
  readonly state: 'connecting' | 'live' | 'paused' | 'failed'
  readonly events: readonly ServerEvent[]
  readonly error?: string
}

const MOST_EVENTS = 500
/** A hidden page closes its stream after this time. */
const HIDDEN_MS = 60_000

export const feed = createValue<Feed>({ state: 'connecting', events: [] })
const listeners = new Set<(events: readonly ServerEvent[]) => void>()

/** Calls `listener` with new events, at most once per frame. */
export function onEvents(listener: (events: readonly ServerEvent[]) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let position: string | undefined
/** The position before each event, from which a stream begins with it. */
const positions = new WeakMap<ServerEvent, string>()

/** The position before an event of the feed, for a link to the event. */
export const positionBefore = (event: ServerEvent): string | undefined => positions.get(event)

/** Reads an event that came before the page was opened. Returns null if the server no longer keeps it. */
export async function readEvent(id: string, after: string, signal: AbortSignal): Promise<ServerEvent | null> {
  try {
    for await (const event of client.events({}, { signal, after })) {
      if (event.id === id) return event
      // it begins with the number of events that are lost, or with the oldest one that the server keeps
      if (event.type !== EVENTS_LOST) return null
    }
  } catch (error) {
    if (!isApiError(error, 'CURSOR_INVALID')) throw error
  }
  return null
}

const EVENTS_LOST = 'svc.events_lost'

/** Follows the events until the signal aborts: one stream for the whole page, none while the page is hidden. */
export async function followEvents(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await whileVisible(read, signal, () => feed.set({ ...feed.get(), state: 'paused' }))
    } catch (error) {
      if (passes(error)) await waitFor(Math.min(error.retryAfterMs ?? AGAIN_MS, LONGEST_WAIT_MS), signal)
      else if (!recovers(error)) return feed.set({ ...feed.get(), state: 'failed', error: messageOf(error) })
    }
  }
}

/** Reads a stream until the signal aborts, but not while the page is hidden. Throws what `stream` throws. */
export async function whileVisible(
  stream: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  onHidden: () => void = () => {}
): Promise<void> {
  while (!signal.aborted) {
    const hiding = new AbortController()
    const stop = stopWhenHidden(hiding)
    try {
      return await stream(AbortSignal.any([signal, hiding.signal]))
    } catch (error) {
      if (signal.aborted) return
      if (!hiding.signal.aborted) throw error
    } finally {
      stop()
    }
    if (document.hidden) {
      onHidden()
      await visible(signal)
    }
  }
}

/** A timer of a browser takes no more than 24 days, and ends at once beyond. */
const [AGAIN_MS, LONGEST_WAIT_MS] = [5_000, 60_000]
const PASSING = { codes: ['CONNECTION_FAILED', 'REQUEST_TIMEOUT', 'STREAM_CUT'], statuses: [429, 502, 503, 504] }

/** The server cannot be reached, or cannot answer at present. The client gives up if that is so at first, or if it is to wait long. */
const passes = (error: unknown): error is ApiError =>
  isApiError(error) && (PASSING.codes.includes(error.code) || PASSING.statuses.includes(error.status))

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  feed.set({ ...feed.get(), state: 'connecting' })
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    const onAbort = () => {
      clearTimeout(timer)
      resolve()
    }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** The position is older than what the server keeps: begin at the present. */
function recovers(error: unknown): boolean {
  if (!isApiError(error, 'CURSOR_INVALID') || position === undefined) return false
  position = undefined
  return true
}

async function read(signal: AbortSignal): Promise<void> {
  const stream = client.events({}, { signal, ...(position === undefined ? {} : { after: position }) })
  feed.set({ ...feed.get(), state: 'live' })
  let fresh: ServerEvent[] = []
  let isPlanned = false
  const flush = () => {
    isPlanned = false
    const news = fresh.toReversed()
    fresh = []
    feed.set({ state: 'live', events: [...news, ...feed.get().events].slice(0, MOST_EVENTS) })
    for (const listener of listeners) listener(news)
  }
  for await (const event of stream) {
    position = stream.lastEventId
    if (stream.previousEventId !== undefined) positions.set(event, stream.previousEventId)
    fresh.push(event)
    if (isPlanned) continue
    isPlanned = true
    requestAnimationFrame(flush)
  }
}

function stopWhenHidden(hiding: AbortController): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    timer = document.hidden ? setTimeout(() => hiding.abort(), HIDDEN_MS) : undefined
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
  }
}

const visible = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
