import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { onEvents, type ServerEvent } from './feed.ts'

/** What is shown follows the events, at most so often. */
const FRESHEN_MS = 1_000

interface Freshening {
  readonly key: QueryKey
  /** The events after which the server can answer otherwise. Default: all. */
  readonly isAbout?: (event: ServerEvent) => boolean
  readonly everyMs?: number
  /** Delays after which it is read once more. Default: never. */
  readonly againMs?: readonly number[]
}

/** After a reload: the worker that leaves can have answered the first time. */
export const RELOADED_MS: readonly number[] = [4_000, 15_000]
const NEVER: readonly number[] = []

/** Reads queries again after events, not by time: an idle page asks nothing. */
export function useFreshening({ key, isAbout, everyMs = FRESHEN_MS, againMs = NEVER }: Freshening): void {
  const queries = useQueryClient()
  const asked = useRef({ key, isAbout })
  asked.current = { key, isAbout }
  useEffect(() => {
    let soon: ReturnType<typeof setTimeout> | undefined
    let later: ReturnType<typeof setTimeout>[] = []
    const read = () => void queries.invalidateQueries({ queryKey: asked.current.key })
    const readSoon = () => {
      soon = undefined
      read()
    }
    const stop = onEvents(events => {
      if (!events.some(event => asked.current.isAbout?.(event) ?? true)) return
      soon ??= setTimeout(readSoon, everyMs)
      later.forEach(clearTimeout)
      later = againMs.map(ms => setTimeout(read, ms))
    })
    return () => {
      for (const timer of [soon, ...later]) clearTimeout(timer)
      stop()
    }
  }, [queries, everyMs, againMs])
}
